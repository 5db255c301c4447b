package blu

// RecomputedAttr marks, as a unit attribute, an operation that computes again what another one computed before, so that the
// value need not be kept until then. It stays where it is: it is neither merged with the other one nor computed together
// with what comes before it.
const RecomputedAttr = "blu.recomputed"
