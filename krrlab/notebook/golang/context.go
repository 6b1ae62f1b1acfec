package golang

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
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

// contexts has the context of the cell that runs. What was canceled stays so: a cell left behind
// keeps it, and the cell after it has another one.
type contexts struct{ of atomic.Pointer[cellContext] }

func newContexts() *contexts {
	c := &contexts{}
	c.of.Store(newCellContext())
	return c
}

func newCellContext() *cellContext {
	ctx, stop := context.WithCancel(context.Background())
	return &cellContext{Context: ctx, stop: stop}
}

// get returns the context of now.
func (c *contexts) get() *cellContext { return c.of.Load() }

// renew is called before each cell. It returns the context of before and that of the cell.
func (c *contexts) renew() (old, now *cellContext) {
	old = c.get()
	old.watched.Store(false)
	if old.Context.Err() != nil {
		c.of.Store(newCellContext())
	}
	return old, c.get()
}

// renewContext gives the cell to come a context that is not canceled.
func (s *Session) renewContext() *cellContext {
	old, now := s.ctx.renew()
	if old != now {
		s.setContext(old, now)
	}
	return now
}

// setContext puts a context into ctx, and into all variables of cells that have the old one.
func (s *Session) setContext(old, now context.Context) {
	env := s.ir.PrepareEnv()
	for c := s.ir.Comp; c != nil && env != nil; c, env = c.Outer, env.Outer {
		for _, b := range c.Binds {
			i := b.Desc.Index()
			if b.Desc.Class() != fast.VarBind || i < 0 || i >= len(env.Vals) || b.Type.ReflectType() != reflect.TypeFor[context.Context]() {
				continue
			}
			if v := env.Vals[i]; v.IsValid() && v.CanSet() && v.Interface() == old {
				v.Set(xreflect.ValueOf(now))
			}
		}
	}
}
