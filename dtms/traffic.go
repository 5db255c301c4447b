package dtms

// Volume counts calls of one operation and the bytes of elements that this rank sent to and received from other ranks for
// them. What engines add (headers, signs of life) is not counted; what a rank keeps for itself is not sent.
type Volume struct {
	Calls, Sent, Received int64
}

// Traffic is a volume for each operation.
//
// With N bytes in all (n ranks times the block where there are blocks), local, tcp and mpi send per rank, for N divisible by n:
//
//	all-reduce 2N(n-1)/n; reduce-scatter, all-gather, all-to-all N(n-1)/n; permute N, unless a rank keeps it;
//	broadcast 2N(n-1)/n from the root and N(n-2)/n from each other rank
type Traffic [opEnd]Volume

// Of is one operation's volume.
func (t Traffic) Of(o Op) Volume {
	if !o.Valid() {
		return Volume{}
	}
	return t[o]
}

// Total adds up all operations.
func (t Traffic) Total() Volume {
	var sum Volume
	for _, v := range t {
		sum.Calls += v.Calls
		sum.Sent += v.Sent
		sum.Received += v.Received
	}
	return sum
}
