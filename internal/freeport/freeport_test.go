package freeport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddress(t *testing.T) {
	address, err := Address("127.0.0.1")
	require.NoError(t, err)
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	require.GreaterOrEqual(t, port, first)
	require.LessOrEqual(t, port, last)

	_, err = On("192.0.2.1") // reserved for documentation: no machine's
	require.ErrorContains(t, err, "no port of 192.0.2.1 could be had in 100 tries")
}
