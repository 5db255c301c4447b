package blu

// RowsAttr says, on a product whose result is logits that a loss alone needs, how many rows of them are computed at a time. Without it
// the target decides.
const RowsAttr = "blu.rows"
