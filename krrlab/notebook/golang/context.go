package golang

import (
	"context"
	"fmt"
	"html"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
)

// cellContext is the context of the cells until one of them is interrupted. It knows whether
// someone has looked at it since the cell began.
type cellContext struct {
	context.Context
	stop    context.CancelFunc
	watched atomic.Bool
}

// Done returns the channel that an interrupt closes.
func (c *cellContext) Done() <-chan struct{} {
	c.watched.Store(true)
	return c.Context.Done()
}

// Err is nil until an interrupt.
func (c *cellContext) Err() error {
	c.watched.Store(true)
	return c.Context.Err()
}

func (c *cellContext) String() string { return "context of the cell" }

// cancel ends the context and reports whether it was watched.
func (c *cellContext) cancel() bool {
	c.stop()
	return c.watched.Load()
}

func newCellContext() *cellContext {
	ctx, stop := context.WithCancel(context.Background())
	return &cellContext{Context: ctx, stop: stop}
}

// renewContext gives the cell to come a context that is not canceled, in ctx and in all variables of cells that have
// the old one. What was canceled stays so: a cell left behind keeps it.
func (s *Session) renewContext() *cellContext {
	old := s.ctx.Load()
	old.watched.Store(false)
	if old.Context.Err() == nil {
		return old
	}
	now := newCellContext()
	s.ctx.Store(now)
	s.e.Variables(func(_ string, v reflect.Value) {
		if v.Type() == reflect.TypeFor[context.Context]() && v.Interface() == context.Context(old) {
			v.Set(reflect.ValueOf(now))
		}
	})
	return now
}

// progressLine is one line of a cell that updates in place, and the picture below it.
type progressLine struct {
	mu    sync.Mutex
	id    string
	start time.Time
	last  time.Time
	shown bool
	grown growth
}

// Progress returns a monitor that shows one line, stage, share or iteration, residual, time left, and below it, where a
// stage iterates, a picture that grows.
func (s *Session) Progress() func(krrlab.Event) error {
	return func(e krrlab.Event) error {
		now := time.Now()
		s.progress.CompareAndSwap(nil, &progressLine{id: fmt.Sprint("krrlab-progress-", now.UnixNano()), start: now})
		if p := s.progress.Load(); p != nil { // else the cell has ended
			p.event(s, e, now)
		}
		return nil
	}
}

// put shows the line, with a bar where an event knows its total, or what stands in its place.
func (p *progressLine) put(s *Session, e krrlab.Event, text, picture string) {
	bar := ""
	if e.Total > 0 {
		bar = fmt.Sprintf(`<progress max="%d" value="%d" style="width:12em"></progress> `, e.Total, e.Done)
	}
	d := withID(display.MakeData3(display.MIMETypeHTML, text,
		`<div style="white-space:nowrap;font-size:90%">`+bar+html.EscapeString(text)+`</div>`+picture), p.id)
	if p.shown {
		s.out.update(d)
	} else {
		s.out.show(d)
	}
	p.shown = true
}

// endProgress replaces the line by how long it took.
func (s *Session) endProgress() {
	if p := s.progress.Swap(nil); p != nil {
		p.end(s, time.Now())
	}
}
