package prim

// A UnaryOp is a function of one float32. The error is the largest found over all
// float32 (every 61st in the short test), in units in the last place of the result, against
// float64; see TestUnaryError, which holds the bounds.
type UnaryOp uint8

const (
	Neg       UnaryOp = iota // exact
	Abs                      // exact
	Square                   // x*x, correctly rounded
	Sqrt                     // correctly rounded
	Rsqrt                    // 1/sqrt(x)
	Recip                    // 1/x, correctly rounded
	Exp                      // denormal results included
	Expm1                    // exp(x) - 1
	Log                      // natural; denormal operands included
	Log1p                    // log(1 + x)
	Tanh                     //
	Erf                      //
	Sigmoid                  // 1/(1 + exp(-x))
	Sin                      // of any float32, however large
	Cos                      // likewise
	Floor                    // exact, as the next three
	Ceil                     //
	Trunc                    // towards zero
	RoundEven                // to the nearest integer, ties to even
	Sign                     // -1, 1, or x itself if it is a zero or NaN
	Relu                     // 0 if x < 0, else x; NaN stays NaN
	Silu                     // x sigmoid(x)
	GeluTanh                 // x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2
	GeluErf                  // x (1 + erf(x/sqrt 2))/2
	DSilu                    // derivative of Silu at x
	DGeluTanh                // derivative of GeluTanh at x
	DGeluErf                 // derivative of GeluErf at x
	RoundBF16                // to the nearest bfloat16, ties to even, as float32
	numUnary
)

// A BinaryOp is a function of two float32.
type BinaryOp uint8

const (
	Add      BinaryOp = iota
	Sub               // x - y
	Mul               //
	Div               // x / y
	Max               // NaN if either is; of two zeros, either
	Min               // likewise
	CopySign          // |x| with the sign of y
	numBinary
	Pow // x^y, as math.Pow defines it, in float64 and rounded
)

// An IntOp is a function of two int32; arithmetic wraps around.
type IntOp uint8

const (
	AddI IntOp = iota
	SubI
	MulI
	MaxI
	MinI
	AndI
	OrI
	XorI
	numInt
)

// A CompareOp compares x with y. With a NaN, Ne is true and the others are false.
type CompareOp uint8

const (
	Eq CompareOp = iota
	Ne
	Lt
	Le
	Gt
	Ge
	numCompare
)
