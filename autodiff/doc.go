// Package autodiff differentiates: reverse mode, as a source transform on the blu dialect. The backward pass it writes is
// ordinary IR. Then it builds, from a model and what its train block asks for, the named functions a training run calls:
// init, accumulate, apply, eval.
//
// It knows the blu dialect and nothing of kernels, memory, devices or precision: those come later and see only ordinary
// operations.
//
// One rule an operation, each in a small file with the algebra above it; rules.go lists them by name. An operation
// without a rule that blu can decompose is differentiated through its decomposition; so are the results of a composite
// that its rule doesn't speak of (the log-sum-exp of attention, say). That makes second order work: what first order
// writes is again made of operations with rules or decompositions.
//
// # Points where no derivative exists
//
//	abs, sign, floor      0 where they kink or jump
//	max, min of two       at ties the gradient goes to the second operand; so relu = max(x, 0) has derivative 0 at 0
//	reduce_max, _min      at ties the gradient is shared equally
//	sqrt                  0 at 0; so a norm built from primitives has gradient 0 at the zero vector
//	pow(a, b)             by a: 0 where b is 0; by b: 0 where a is 0, NaN where a is negative
//	softmax               0 for a row that is all -inf
//	cross_entropy         0 for rows whose target is ignored
//
// # Values not taken
//
// A select gives cotangent 0 to the side not taken. Where that zero meets an infinite derivative on its way back, as in
// select(x > 0.5, sqrt(x), 1) at 0, the product would be NaN. Below a select, therefore, elementwise operations give zero
// for a zero cotangent whatever their derivative. This holds up to the first operation that mixes elements (dot, softmax,
// a normalization), where zeros no longer tell what was selected.
//
// # Integers
//
// No gradient passes through an integer. Where one would have to, at a conversion from integers or truth values that
// depend on what is differentiated by, that is an error at the source line; stop_gradient says that none is wanted. The
// condition of a select and the indices of a gather get none, silently: their derivative is zero almost everywhere.
package autodiff
