package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab"
)

// progress shows one line that updates in place: stage, iteration or share,
// residual, time left.
type progress struct {
	w    io.Writer // nil shows nothing
	mu   sync.Mutex
	last time.Time
	wide int // characters on the line now
}

// every is the least time between two updates.
const every = 100 * time.Millisecond

func (a *app) newProgress() *progress {
	if a.quiet || !a.env.Terminal {
		return &progress{}
	}
	return &progress{w: a.env.Stderr}
}

// show is a krrlab.Config's Monitor.
func (p *progress) show(e krrlab.Event) error {
	p.say(e.String, e.Total > 0 && e.Done == e.Total)
	return nil
}

// say shows a text, unless another was shown just before; a last one is shown in any case.
func (p *progress) say(text func() string, last bool) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.last) >= every || last {
		p.last = now
		p.put(text())
	}
}

// clear removes the line.
func (p *progress) clear() {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put("")
	if p.wide == 0 {
		io.WriteString(p.w, "\r")
	}
}

func (p *progress) put(s string) {
	n := len([]rune(s))
	fmt.Fprintf(p.w, "\r%s%s", s, strings.Repeat(" ", max(0, p.wide-n)))
	p.wide = n
}
