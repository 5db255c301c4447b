package blu

// PrecisionAttr names the mode a product is to be computed in: fp32, fp32-strict, tf32 or bf16. It stands on products for
// targets that choose by it how to compute them; evaluation is exact and does not look at it.
const PrecisionAttr = "blu.precision"
