package passes

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory that is written as a number of bytes, or of KiB, MiB, GiB or TiB: 65536, 64KiB, 1.5GiB.
type Bytes int64

// units lists the units from large to small, for reading and writing.
var units = [...]struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads an amount.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, size := string(text), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, size = n, u.size
			break
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || x < 0 || x*float64(size) >= math.MaxInt64 || x != x || x > 0 && x*float64(size) < 1 {
		return fmt.Errorf("expected an amount of memory, as in 512MiB or 6GiB, not %q", text)
	}
	*b = Bytes(x * float64(size))
	return nil
}

// MarshalText writes the amount in the largest unit of which it is a whole number.
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range units {
		if b != 0 && int64(b)%u.size == 0 && u.size > 1 {
			return fmt.Appendf(nil, "%d%s", int64(b)/u.size, u.name), nil
		}
	}
	return strconv.AppendInt(nil, int64(b), 10), nil
}
