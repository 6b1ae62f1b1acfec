package golang

import (
	"fmt"
	"html"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
)

const (
	progressAfter = 700 * time.Millisecond // what is over sooner shows nothing
	progressEvery = 200 * time.Millisecond
)

// progressLine is one line of a cell that updates in place.
type progressLine struct {
	mu    sync.Mutex
	id    string
	start time.Time
	last  time.Time
	shown bool
}

var progressNow struct {
	sync.Mutex
	line *progressLine
	n    int
}

// Progress returns a monitor that shows one line: stage, share or iteration, residual,
// time left.
func (s *Session) Progress() func(krrlab.Event) error {
	return func(e krrlab.Event) error {
		progressNow.Lock()
		p := progressNow.line
		if p == nil {
			progressNow.n++
			p = &progressLine{id: fmt.Sprintf("krrlab-progress-%d-%d", time.Now().UnixNano(), progressNow.n), start: time.Now()}
			progressNow.line = p
		}
		progressNow.Unlock()
		p.event(s, e)
		return nil
	}
}

// event shows an event if it is time to.
func (p *progressLine) event(s *Session, e krrlab.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	p.put(s, e.String(), share(e))
}

// put shows the line, or what stands in its place.
func (p *progressLine) put(s *Session, text string, part float64) {
	bar := ""
	if part >= 0 {
		bar = fmt.Sprintf(`<progress max="1" value="%.3f" style="width:12em"></progress> `, part)
	}
	d := withID(display.MakeData3(display.MIMETypeHTML, text, `<div style="white-space:nowrap;font-size:90%">`+bar+html.EscapeString(text)+`</div>`), p.id)
	first := !p.shown
	p.shown = true
	s.out.ordered(func(o Output) {
		if first {
			o.Display(d)
		} else {
			o.Update(d)
		}
	})
}

// endProgress leaves in place of the line how long it took.
func (s *Session) endProgress() {
	progressNow.Lock()
	p := progressNow.line
	progressNow.line = nil
	progressNow.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.put(s, fmt.Sprintf("%.1f seconds", time.Since(p.start).Seconds()), -1)
	}
}

// share is how much of a stage is done, −1 if that is not known.
func share(e krrlab.Event) float64 {
	if e.Total > 0 {
		return float64(e.Done) / float64(e.Total)
	}
	return -1
}
