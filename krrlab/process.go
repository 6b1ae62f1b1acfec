package krrlab

import (
	"context"
	"time"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/process"
)

const processPrefix = "process:"

// Process is M of another process, in any language, by the protocol of package process.
type Process struct {
	Command string        // for the shell
	Timeout time.Duration // of an answer; default: 5 minutes
}

// String returns what names it on a command line.
func (p Process) String() string { return processPrefix + p.Command }

// bytes returns 0: what the process holds is not known.
func (Process) bytes(int) int64 { return 0 }

// Make implements Preconditioner. It forms K first, starts the command and waits for M; the process ends with ctx.
func (p Process) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	k, err := l.matrix(ctx, 0, nil)
	if err != nil {
		return nil, err
	}
	m, err := process.Start(ctx, p.Command, k.it, process.Options{T: l.columns(), Seed: l.cfg.Seed, Timeout: p.Timeout})
	if err != nil {
		return nil, err
	}
	return m, nil
}
