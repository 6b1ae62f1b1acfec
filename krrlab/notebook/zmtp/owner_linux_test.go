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
	results := make(chan result)
	go func() {
		runtime.LockOSThread()
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		if errno != 0 {
			results <- result{nil, errno}
			return
		}
		conn, err := net.Dial("tcp", addr)
		results <- result{conn, err}
	}()
	dialed := <-results
	if dialed.err != nil {
		t.Skipf("cannot connect as another user: %v", dialed.err)
	}
	t.Cleanup(func() { dialed.conn.Close() })
	return dialed.conn
}

// TestOtherUsersAreRefused connects as several users of the machine, and checks that only root and the owner of the
// socket get an answer.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	socket := listenEcho(t, Options{Owner: 1234})
	for uid, isAccepted := range map[int]bool{0: true, 1234: true, 65534: false} {
		conn := dialAs(t, uid, socket.Addr().String())
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
		_, _ = conn.Write(greeting[:])
		if count, err := conn.Read(make([]byte, 64)); (count > 0) != isAccepted {
			t.Errorf("user %d: %d bytes, %v", uid, count, err)
		}
	}
}
