package tcp

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/internal/freeport"
)

// BenchmarkAllReduce sums float32 between two ranks over the loopback interface, both in this process. The rate counts the
// bytes of the buffer; each rank sends that much too (2N(n-1)/n with n = 2).
func BenchmarkAllReduce(b *testing.B) {
	const size = 2
	master, err := freeport.Address("127.0.0.1")
	require.NoError(b, err)
	comms := make([]*dtms.Communicator, size)
	var all sync.WaitGroup
	for r := range comms {
		all.Go(func() {
			c, err := Connect(context.Background(), Config{Rank: r, Size: size, Master: master, Token: "t", Silence: time.Minute})
			require.NoError(b, err)
			comms[r] = c
		})
	}
	all.Wait()
	for _, bytes := range []int{4, 1 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(bytes), func(b *testing.B) {
			b.SetBytes(int64(bytes))
			for _, c := range comms {
				all.Go(func() {
					m := dtms.Of(make([]float32, bytes/4))
					for range b.N {
						if err := c.AllReduce(context.Background(), m, m); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
	for _, c := range comms {
		all.Go(func() { c.Close() })
	}
	all.Wait()
}
