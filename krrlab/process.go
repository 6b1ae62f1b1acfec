package krrlab

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/process"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// Process is M of another process, in any language, by the protocol of package process.
type Process struct {
	Command string // for the shell
}

// String returns what names it on a command line.
func (p Process) String() string { return stage.ProcessPrefix + p.Command }

// bytes returns 0: what the process holds is not known.
func (Process) bytes(int) int64 { return 0 }

// Make implements Preconditioner. It forms K first, starts the command and waits for M; the process ends with ctx. On
// ranks each starts one, and all take what that of rank 0 answers.
func (p Process) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	k, err := l.matrix(ctx, 0, nil, false)
	if err != nil {
		return nil, err
	}
	m, err := process.Start(ctx, p.Command, k.a, process.Options{T: l.columns(), Seed: l.cfg.Seed,
		Timeout: l.cfg.ProcessTimeout})
	if err = comm.Agree(ctx, l.comm, err); err != nil {
		return nil, err
	}
	if l.comm.Size() == 1 {
		return m, nil
	}
	return &shared{m, l.comm}, nil
}

// shared is M of a process on each of some ranks: sums of theirs may differ in the last bits, or draws by more.
type shared struct {
	*process.Preconditioner
	ranks comm.Comm
}

func (m *shared) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return m.share(ctx, dst, m.Preconditioner.SolveTo(ctx, dst, r))
}

func (m *shared) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	err := m.Preconditioner.NormalTo(ctx, dst, g)
	if errors.Is(err, errors.ErrUnsupported) { // on all
		return err
	}
	return m.share(ctx, dst, err)
}

func (m *shared) share(ctx context.Context, dst *mat.Dense, err error) error {
	if err = comm.Agree(ctx, m.ranks, err); err != nil {
		return err
	}
	return comm.ShareNumbers(ctx, m.ranks, dst.RawMatrix().Data, 0)
}
