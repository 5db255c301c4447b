package share

// A Span is how long a value is in a piece of memory: from the operation that begins to write it, First, to the last that reads
// it, through views too, by their numbers in the program. What is there before the program has First -1; what it leaves behind is
// read by its end.
type Span struct{ First, Last int }

// Admits reports whether a value may be put where others are at other times: none of them is read once it is begun, and it is
// not read once one of them is. The operation that reads one value last may write the next if it does both in one place:
// handsOver(i) says so of the i-th of the others and the new one, whichever comes first.
func Admits(others []Span, new Span, handsOver func(i int) bool) bool {
	for i, o := range others {
		earlier, later := o, new
		if new.First < o.First {
			earlier, later = new, o
		}
		if earlier.Last > later.First || earlier.Last == later.First && !handsOver(i) {
			return false
		}
	}
	return true
}
