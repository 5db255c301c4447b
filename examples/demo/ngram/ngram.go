// Package ngram predicts bytes from tables of counts: the baseline a language model has to beat. It knows bytes only.
package ngram

import "math"

// Table predicts the next byte from up to Order bytes before it. The estimate of each order is interpolated with that of
// the order below, with Witten and Bell's weights (IEEE Transactions on Information Theory 37(4), 1991, method C):
//
//	p_k(b | context) = (count(context b) + distinct(context) * p_{k-1}(b | shorter context)) / (count(context) + distinct(context))
//
// and order -1 is uniform over the 256 bytes.
type Table struct {
	Order  int
	orders []counts // by length of context
}

type counts struct {
	follow  map[uint64]uint32  // context and next byte
	context map[uint64]context // context
}

type context struct{ total, distinct uint32 }

// Count makes a table of the text.
func Count(order int, text []byte) *Table {
	t := &Table{Order: order}
	for k := 0; k <= order; k++ {
		c := counts{map[uint64]uint32{}, map[uint64]context{}}
		for i := k; i < len(text); i++ {
			c.add(key(text[i-k:i]), text[i])
		}
		t.orders = append(t.orders, c)
	}
	return t
}

func (c *counts) add(ctx uint64, next byte) {
	n := c.follow[ctx<<8|uint64(next)]
	c.follow[ctx<<8|uint64(next)] = n + 1
	x := c.context[ctx]
	x.total++
	if n == 0 {
		x.distinct++
	}
	c.context[ctx] = x
}

// key packs a context of at most seven bytes.
func key(b []byte) uint64 {
	var k uint64
	for _, c := range b {
		k = k<<8 | uint64(c)
	}
	return k
}

// Loss is the mean negative log-likelihood of the text's bytes, in nats, by contexts of at most order bytes.
func (t *Table) Loss(order int, text []byte) float64 {
	sum := 0.0
	for i := range text {
		sum -= math.Log(t.probability(min(order, i), text, i))
	}
	return sum / float64(len(text))
}

func (t *Table) probability(order int, text []byte, i int) float64 {
	p := 1.0 / 256
	for k := 0; k <= order; k++ {
		ctx := key(text[i-k : i])
		x := t.orders[k].context[ctx]
		if x.total == 0 {
			break // longer contexts were not seen either
		}
		n := t.orders[k].follow[ctx<<8|uint64(text[i])]
		p = (float64(n) + float64(x.distinct)*p) / float64(x.total+x.distinct)
	}
	return p
}
