package golang

import (
	"context"
	"reflect"
	"sync"
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

// contexts has the context of the cell that runs. What was cancelled stays so: a cell left behind
// keeps it, and the cell after it has another one.
type contexts struct {
	*cellContext                 // of now
	mu           sync.Mutex      // guards the change to another one
	ctx          context.Context // that within: who looks at it does not count as watching
}

func newContexts() *contexts {
	c := &contexts{}
	c.another()
	return c
}

// another replaces the context; mu is held, or nobody else knows c yet.
func (c *contexts) another() {
	ctx, stop := context.WithCancel(context.Background())
	c.cellContext, c.ctx = &cellContext{Context: ctx, stop: stop}, ctx
}

// get returns the context of now.
func (c *contexts) get() *cellContext {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cellContext
}

// now returns the context of now for someone who watches it.
func (c *contexts) now() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched.Store(true)
	return c.ctx
}

// renew is called before each cell. It returns the context of before and that of the cell.
func (c *contexts) renew() (old, now *cellContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old = c.cellContext
	old.watched.Store(false)
	if c.ctx.Err() != nil {
		c.another()
	}
	return old, c.cellContext
}

// bindContext lets context.Background give cells the context of now.
func bindContext() {
	background := func() context.Context { return current.Load().ctx.get() }
	replace("context", map[string]any{"Background": background, "TO" + "DO": background})
}

// renewContext gives the cell to come a context that is not cancelled.
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
