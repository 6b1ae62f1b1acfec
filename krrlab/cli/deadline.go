package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/group"
)

// grace is the time that a command may still run after its context has ended, for example if the command waits for a
// pipe that nobody reads or writes. It is also the time that the message about the interruption may take. MPI ranks
// must end together and therefore have the longer rankGrace. Tests change both variables.
var grace, rankGrace = time.Second, 5 * time.Second

// deadline expires when a delay has passed since the end of a context.
type deadline struct {
	delay   time.Duration // time from the end of the context to the deadline
	expired chan struct{} // gets a value at the deadline
	release func() bool   // stops following the context; nil before the first call of follow
}

// newDeadline returns a deadline that follows no context yet.
func newDeadline(delay time.Duration) *deadline {
	return &deadline{delay: delay, expired: make(chan struct{}, 1)}
}

// follow makes the deadline depend on ctx, and no longer on the context of an earlier call, unless that context has
// already ended.
func (d *deadline) follow(ctx context.Context) {
	if d.release != nil {
		d.release()
	}
	d.release = context.AfterFunc(ctx, func() {
		time.AfterFunc(d.delay, func() {
			select {
			case d.expired <- struct{}{}:
			default:
			}
		})
	})
}

// abandon cleans up after a command that is still running at its deadline, and returns the exit code: it removes
// unfinished files and ends child processes. It reports the interruption, but waits at most the time grace if the error
// stream blocks too.
func (a *app) abandon() int {
	atomicfile.RemoveUnfinished()
	group.EndAll()
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		a.warnf("interrupted while it waited%s", cmp.Or(a.resumeHint(), "; files that are complete are kept"))
	}()
	select {
	case <-reported:
	case <-time.After(grace):
	}
	return exitInterrupted
}
