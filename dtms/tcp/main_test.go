package tcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/enginetest"
)

// TestMain is also what the ranks of these tests run: processes of this binary with DTMS_ROLE set.
func TestMain(m *testing.M) {
	role := os.Getenv("DTMS_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(rank(role))
}

// report is what a rank prints last.
type report struct {
	Digest string
	Steps  int
	Error  string
	Faults dtms.RankErrors
}

// rank is one process of a job.
func rank(role string) int {
	var r report
	err := play(role, &r)
	if err != nil {
		r.Error, r.Faults = err.Error(), dtms.Faults(err)
	}
	text, _ := json.Marshal(r)
	fmt.Println(string(text))
	if err != nil {
		return 1
	}
	return 0
}

func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(err)
	}
	return n
}

func play(role string, r *report) error {
	ctx := context.Background()
	c, err := Connect(ctx, Config{
		Rank: number("DTMS_RANK"), Size: number("DTMS_SIZE"), Master: os.Getenv("DTMS_MASTER"), Token: os.Getenv("DTMS_TOKEN"),
		Join:    time.Duration(number("DTMS_JOIN_MS")) * time.Millisecond,
		Silence: time.Duration(number("DTMS_SILENCE_MS")) * time.Millisecond,
		Facts:   []dtms.Fact{{Name: "artifact", Value: os.Getenv("DTMS_ARTIFACT")}, {Name: "precision", Value: "fp32"}},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("connected")
	switch role {
	case "suite":
		r.Digest, err = enginetest.Run(ctx, c)
		return err
	case "work":
		return work(ctx, c, r)
	case "other":
		if c.Rank() == 1 {
			return c.Barrier(ctx)
		}
		return c.AllReduce(ctx, dtms.Of(make([]float32, 9)), dtms.Of(make([]float32, 9)))
	}
	return fmt.Errorf("unknown role %q", role)
}

// work calls collectives of all sizes for a minute at most.
func work(ctx context.Context, c *dtms.Communicator, r *report) error {
	random := rand.New(rand.NewPCG(1, 2)) // the same on all ranks
	for end := time.Now().Add(time.Minute); time.Now().Before(end); r.Steps++ {
		n := int64(random.IntN(1 << random.IntN(20)))
		a, b := make([]float32, n), make([]float32, n)
		first := c.Start(ctx, dtms.Call{Op: dtms.AllReduce, In: dtms.Of(a), Out: dtms.Of(a)})
		if err := c.Broadcast(ctx, dtms.Of(b), random.IntN(c.Size())); err != nil {
			return err
		}
		if err := first.Wait(); err != nil {
			return err
		}
	}
	return nil
}
