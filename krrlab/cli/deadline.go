package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/group"
)

// grace is how long a command may still run when its context has ended. What it waits for then, such as a pipe that
// nobody writes or reads, is given up. Ranks, which end together, have rankGrace.
var grace, rankGrace = time.Second, 5 * time.Second

// deadline passes the grace after a context ends.
type deadline struct {
	grace   time.Duration
	passed  chan struct{} // gets a value at the deadline
	release func() bool   // stops following the context
}

func newDeadline(after time.Duration) *deadline {
	return &deadline{grace: after, passed: make(chan struct{}, 1)}
}

// follow makes the deadline that of a context, instead of one that it followed before.
func (d *deadline) follow(ctx context.Context) {
	if d.release != nil {
		d.release()
	}
	d.release = context.AfterFunc(ctx, func() {
		time.AfterFunc(d.grace, func() {
			select {
			case d.passed <- struct{}{}:
			default:
			}
		})
	})
}

// abandon ends a command that is still running after the grace. It says so, unless the stream of errors blocks, too.
func (a *app) abandon() int {
	atomicfile.Abandon()
	group.EndAll()
	said := make(chan struct{})
	go func() {
		defer close(said)
		a.say("interrupted while it waited%s", cmp.Or(a.goOnText(), "; files that are complete are kept"))
	}()
	select {
	case <-said:
	case <-time.After(grace):
	}
	return exitInterrupted
}
