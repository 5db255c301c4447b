package verify

import (
	"math/rand/v2"
	"slices"

	"blutrain/ir"
	"blutrain/runtime/ref"
)

// Results of whole functions are held to the exact ones first, and those that are off to what roundings make of these: of float32 as in
// bound.go. Where products are of tf32 or bf16 roundings are larger, and move results in two ways.
//
// Choices fall otherwise: what is next to zero before a rectifier, or next to the largest of a window, passes its gradient on or doesn't, and
// one such term moves a sum of few by percents. A device's choices are those of its own roundings, and these are known: products
// read the nearest numbers of their precision. So results are held to such an evaluation (type narrow) instead of the exact one, all of a function
// to the same, within the same tolerance. What remains are choices that roundings of float32 decide: of 120 checks of a
// small convolutional network one met such. For these, further evaluations change what products read and give, and other results, by 1, 4, 16
// and 64 roundoffs of float32, twice each. Where the change is larger than what is missing to a tie, either side is as likely: a choice
// that takes 4 roundoffs is missed by all with a chance of 2^-6, so a right function is refused once in some 10^4 checks.
//
// And sums that cancel leave something, such as the gradient of a bias of attention's keys, which is zero. Their bound is twice the
// largest response to changes by the roundoff of the precision (type nearby) with choices held. Of 48 such gradients in an
// emulator the error was 0.6 of a single response at most, 0.2 as a rule. For what doesn't cancel it is no more than the tolerance, so that a wrong
// function stays wrong, whatever choices its roundings have changed.

// centers is how many narrow evaluations results are held to at most, and responses how many evaluations near each.
const (
	centers   = 9
	responses = 2
)

// settle holds results that are off to what roundings may have made of them. evaluate gives all results of an evaluation with changes; one
// that is nil is none of its.
func settle(results []result, random *rand.Rand, evaluate func(ref.Change) ([][]float64, error)) error {
	if countOff(results) == 0 {
		return nil
	}
	best := results
	for i := 0; i < centers && countOff(best) > 0; i++ {
		n := &narrow{random: random}
		if i > 0 {
			n.unit = roundoff * float64(int(1)<<(2*((i-1)%4)))
		}
		values, err := evaluate(n)
		if err != nil {
			return err
		}
		if !n.products {
			return settleFloat32(results, random, evaluate)
		}
		around := centered(results, values)
		if err := respond(around, n.choices, random, evaluate); err != nil {
			return err
		}
		if countOff(around) < countOff(best) {
			best = around
		}
	}
	copy(results, best)
	return nil
}

// settleFloat32 is settle for functions whose products are of float32.
func settleFloat32(results []result, random *rand.Rand, evaluate func(ref.Change) ([][]float64, error)) error {
	for i := 0; i < draws && countOff(results) > 0; i++ {
		r := &rounding{random: random, growth: 8, near: i == draws-1}
		values, err := evaluate(r)
		if err != nil {
			return err
		}
		addTo(results, values, r.growth)
	}
	return nil
}

// respond takes note of how results answer to roundings of products whose choices are held.
func respond(results []result, choices []*ir.Tensor, random *rand.Rand, evaluate func(ref.Change) ([][]float64, error)) error {
	for i := 0; i < responses && countOff(results) > 0; i++ {
		values, err := evaluate(&nearby{random: random, choices: choices})
		if err != nil {
			return err
		}
		addTo(results, values, 2)
	}
	return nil
}

// centered is results that are held to other values.
func centered(results []result, values [][]float64) []result {
	around := slices.Clone(results)
	for i, v := range values {
		if v != nil {
			around[i].want = &expected{value: v, tolerance: results[i].want.tolerance}
		}
	}
	return around
}

// addTo takes note of an evaluation with roundings.
func addTo(results []result, values [][]float64, growth float64) {
	for i, v := range values {
		if v != nil {
			results[i].want.growth = growth
			results[i].want.add(v)
		}
	}
}

func countOff(results []result) (n int) {
	for _, r := range results {
		if r.want.of(r.got).Off() {
			n++
		}
	}
	return n
}
