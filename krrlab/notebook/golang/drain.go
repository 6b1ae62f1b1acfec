package golang

import "syscall"

// followPipe reads a pipe whenever data arrives, until it is closed. It reads while holding c.mu, so that drain never
// misses data that was read but not yet added.
func (c *capture) followPipe(stream int) {
	raw, err := c.readEnds[stream].SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { // ends when the pipe is closed
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.readAvailable(stream, fd)
	})
}

// drain reads all data that is in the pipes. The caller holds c.mu.
func (c *capture) drain() {
	for i, pipe := range c.readEnds {
		if c.isClosed {
			return
		}
		if raw, err := pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { c.readAvailable(i, fd) })
		}
	}
}

// readAvailable reads a pipe until it is empty, and adds its data. It returns true if the pipe may get more data, and
// false at its end or after an error. The caller holds c.mu.
func (c *capture) readAvailable(stream int, fd uintptr) bool {
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
