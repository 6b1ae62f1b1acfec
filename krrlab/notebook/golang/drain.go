package golang

import "syscall"

// follow takes what is written to a pipe as it comes. It reads under the lock, so that
// nothing read is out of sight of drain.
func (c *capture) follow(stream int) {
	raw, err := c.ends[stream].SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { // ends when the pipe is closed
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.take(stream, fd)
	})
}

// drain takes all that is in the pipes; mu is held.
func (c *capture) drain() {
	for i, f := range c.ends {
		if c.closed {
			return
		}
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.take(i, fd) })
		}
	}
}

// take reads a pipe empty and reports whether there is more to come.
func (c *capture) take(stream int, fd uintptr) bool {
	var buf [64 << 10]byte
	for {
		n, err := syscall.Read(int(fd), buf[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return err == syscall.EAGAIN
		}
		c.add(stream, buf[:n])
	}
}
