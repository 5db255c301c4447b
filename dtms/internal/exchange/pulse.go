package exchange

import (
	"fmt"
	"time"

	"blutrain/dtms"
)

// pulse sends signs of life and looks for those of others. They come from a goroutine of their own: a rank that computes,
// or waits for a slow disk, still gives them, and one that is stopped or cut off does not.
func (n *Node) pulse() {
	interval := n.options.Silence / 8
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for r := range n.heard {
		n.Heard(r)
	}
	last := time.Now()
	for {
		select {
		case <-n.failed:
			return
		case <-n.done:
			return
		case <-ticker.C:
		}
		for _, l := range n.links {
			if l != nil {
				l.Post(Header{Kind: Beat}, nil)
			}
		}
		gap := time.Since(last)
		last = time.Now()
		if gap > n.options.Silence/2 {
			// This process itself stood still, so it can't tell how long the others have been silent.
			for r := range n.heard {
				n.Heard(r)
			}
			continue
		}
		n.listen(interval)
	}
}

// listen fails the job if a rank has been silent too long, naming also those that are about to be.
func (n *Node) listen(interval time.Duration) {
	now := time.Since(n.start)
	var errs dtms.RankErrors
	silent := false
	for r := range n.heard {
		if r == n.rank || n.HasLeft(r) {
			continue
		}
		quiet := now - time.Duration(n.heard[r].Load())
		silent = silent || quiet > n.options.Silence
		if quiet > n.options.Silence-2*interval {
			errs = append(errs, &dtms.RankError{Rank: r, Fault: dtms.Silent,
				What: fmt.Sprintf("gives no sign of life for %.1f s: it is stopped, hung, or cut off", quiet.Seconds())})
		}
	}
	if silent {
		n.fail(errs, nil)
	}
}
