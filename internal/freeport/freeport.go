// Package freeport chooses ports for processes that are about to be started.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that are chosen lie below those that systems give to outgoing connections and to whoever asks for any port (from 32768 on
// Linux, 49152 elsewhere): one of those may be given to somebody else between the choice and its use.
const (
	first = 10000
	last  = 29999
	tries = 100
)

// On is a port of a host, "127.0.0.1" for example, where nobody listens at the moment.
func On(host string) (int, error) {
	var err error
	for range tries {
		port := first + rand.IntN(last-first+1)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port of %s could be had in %d tries: %w", host, tries, err)
}

// Address is host and port of On.
func Address(host string) (string, error) {
	port, err := On(host)
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}
