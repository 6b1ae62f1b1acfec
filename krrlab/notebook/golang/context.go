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

// cellContext is the context that cells share until one of them is interrupted. It records whether any code has used it
// since the current cell began.
type cellContext struct {
	context.Context
	stop context.CancelFunc
	used atomic.Bool // code of the current cell has called Done or Err
}

// Done returns the channel that an interrupt closes.
func (c *cellContext) Done() <-chan struct{} {
	c.used.Store(true)
	return c.Context.Done()
}

// Err returns nil until an interrupt cancels the context.
func (c *cellContext) Err() error {
	c.used.Store(true)
	return c.Context.Err()
}

func (c *cellContext) String() string { return "context of the cell" }

// cancel cancels the context and reports whether code of the current cell has called Done or Err.
func (c *cellContext) cancel() bool {
	c.stop()
	return c.used.Load()
}

// newCellContext returns a context that is not canceled.
func newCellContext() *cellContext {
	ctx, stop := context.WithCancel(context.Background())
	return &cellContext{Context: ctx, stop: stop}
}

// renewContext returns a context for the next cell. If the old one was canceled, a new one replaces it in the session
// and in all variables of cells. An abandoned cell keeps the canceled context.
func (s *Session) renewContext() *cellContext {
	old := s.ctx.Load()
	old.used.Store(false)
	if old.Context.Err() == nil {
		return old
	}
	fresh := newCellContext()
	s.ctx.Store(fresh)
	s.interp.Variables(func(_ string, v reflect.Value) {
		if v.Type() == reflect.TypeFor[context.Context]() && v.Interface() == context.Context(old) {
			v.Set(reflect.ValueOf(fresh))
		}
	})
	return fresh
}

// progressLine is an output line of a cell that is updated in place, with a plot below it.
type progressLine struct {
	// mu protects the fields below. update and finish hold it while they call show.
	mu         sync.Mutex
	id         string // display_id of the line
	start      time.Time
	lastUpdate time.Time
	shown      bool           // the line is displayed, so that it can be updated
	curves     progressCurves // samples for the plot
}

// Progress returns a monitor that displays one line with the stage, the fraction done or the iteration, the residual
// and the remaining time. If the stage iterates, a plot of its progress appears below the line. A late event of a cell
// that has ended starts a new line.
func (s *Session) Progress() func(krrlab.Event) error {
	return func(e krrlab.Event) error {
		now := time.Now()
		s.progress.CompareAndSwap(nil, &progressLine{id: fmt.Sprint("krrlab-progress-", now.UnixNano()), start: now})
		if p := s.progress.Load(); p != nil { // nil if endProgress has just removed the line
			p.update(s, e, now)
		}
		return nil
	}
}

// show displays text and a picture as the progress line, replacing its previous contents. If e.Total is positive, a
// progress bar precedes the text.
func (p *progressLine) show(s *Session, e krrlab.Event, text, picture string) {
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

// endProgress replaces the progress line, if there is one, by the elapsed time.
func (s *Session) endProgress() {
	if p := s.progress.Swap(nil); p != nil {
		p.finish(s, time.Now())
	}
}
