// Package onstream is what engines between GPUs have in common: a call is work on a stream, which knows nothing of ranks, and a roll call on a
// control communicator, which does. Both must end well.
package onstream
