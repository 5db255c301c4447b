package rendezvous

import (
	"net"
	"syscall"
)

// ended reports whether the other side has ended a connection, without reading from it.
func ended(conn net.Conn) (over bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true // it is closed here
	}
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		over = n == 0 && err == nil || err == syscall.ECONNRESET
	})
	return over || err != nil
}
