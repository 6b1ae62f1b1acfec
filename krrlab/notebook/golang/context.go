package golang

import (
	"context"
	"reflect"
	"sync/atomic"
)

// cellContext is the context that cells share until one of them is interrupted. It records whether any code has used it
// since the current cell began.
type cellContext struct {
	context.Context
	stop    context.CancelFunc
	wasUsed atomic.Bool // code of the current cell has called Done or Err
}

// Done returns the channel that an interrupt closes.
func (c *cellContext) Done() <-chan struct{} {
	c.wasUsed.Store(true)
	return c.Context.Done()
}

// Err returns nil until an interrupt cancels the context.
func (c *cellContext) Err() error {
	c.wasUsed.Store(true)
	return c.Context.Err()
}

func (c *cellContext) String() string { return "context of the cell" }

// cancel cancels the context and reports whether code of the current cell has called Done or Err.
func (c *cellContext) cancel() bool {
	c.stop()
	return c.wasUsed.Load()
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
	old.wasUsed.Store(false)
	if old.Context.Err() == nil {
		return old
	}
	renewed := newCellContext()
	s.ctx.Store(renewed)
	s.interp.ForEachVariable(func(_ string, v reflect.Value) {
		if v.Type() == reflect.TypeFor[context.Context]() && v.Interface() == context.Context(old) {
			v.Set(reflect.ValueOf(renewed))
		}
	})
	return renewed
}
