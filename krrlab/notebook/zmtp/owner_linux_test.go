package zmtp

import (
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// dialAs connects as another user of the machine. The thread that takes this user's identity ends with its goroutine.
func dialAs(t *testing.T, uid int, addr string) net.Conn {
	t.Helper()
	type result struct {
		conn net.Conn
		err  error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			out <- result{nil, e}
			return
		}
		c, err := net.Dial("tcp", addr)
		out <- result{c, err}
	}()
	r := <-out
	if r.err != nil {
		t.Skipf("cannot connect as another user: %v", r.err)
	}
	t.Cleanup(func() { r.conn.Close() })
	return r.conn
}

// TestOtherUsersAreRefused connects as several users of the machine, and checks that only root and the owner of the
// socket get an answer.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	s := listenEcho(t, Options{Owner: 1234})
	for uid, accepted := range map[int]bool{0: true, 1234: true, 65534: false} {
		c := dialAs(t, uid, s.Addr().String())
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
		_, _ = c.Write(greeting[:])
		if n, err := c.Read(make([]byte, 64)); (n > 0) != accepted {
			t.Errorf("user %d: %d bytes, %v", uid, n, err)
		}
	}
}
