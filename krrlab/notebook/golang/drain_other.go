//go:build !unix

package golang

// follow takes what is written to a pipe as it comes.
func (c *capture) follow(stream int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.ends[stream].Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.add(stream, buf[:n])
		c.mu.Unlock()
	}
}

// drain does nothing where a pipe cannot be read without waiting.
func (c *capture) drain() {}
