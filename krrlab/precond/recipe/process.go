package recipe

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/process"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Process is a preconditioner that another program computes, in any language, with the protocol of package process.
type Process struct {
	Command string // shell command that starts the program
}

// String returns the name of the preconditioner on command lines.
func (p Process) String() string { return "process:" + p.Command }

// MaxBytes implements stage.KernelPreconditioner. The memory of the other process is unknown and not counted.
func (Process) MaxBytes(int) int64 { return 0 }

// Make implements stage.Preconditioner. It forms K first, starts the command and waits until M is ready. The process
// ends when ctx ends. In an MPI run each rank starts a process, and all ranks use the answers of the process of rank 0.
func (p Process) Make(ctx context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	problem := bench.Problem()
	k, err := bench.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	m, err := process.Start(ctx, p.Command, k.Matrix, process.Options{T: problem.T, Seed: problem.Seed,
		Timeout: problem.ProcessTimeout})
	if err = comm.Agree(ctx, problem.Comm, err); err != nil {
		return nil, err
	}
	if problem.Comm.Size() == 1 {
		return m, nil
	}
	return &replicated{m, problem.Comm}, nil
}

// replicated is an M with a process on each rank. It broadcasts the answers of rank 0, because answers of different
// processes may differ: sums in the last bits, random draws in all digits.
type replicated struct {
	*process.Preconditioner
	ranks comm.Comm
}

// SolveTo sets dst = M⁻¹r.
func (m *replicated) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return m.broadcast(ctx, dst, m.Preconditioner.SolveTo(ctx, dst, r))
}

// NormalTo sets the columns of dst to draws of the normal distribution with covariance M.
func (m *replicated) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	err := m.Preconditioner.NormalTo(ctx, dst, g)
	if errors.Is(err, errors.ErrUnsupported) { // the error is the same on all ranks
		return err
	}
	return m.broadcast(ctx, dst, err)
}

// broadcast replaces dst on all ranks by the dst of rank 0. It returns an error on all ranks if err is not nil on any
// rank.
func (m *replicated) broadcast(ctx context.Context, dst *mat.Dense, err error) error {
	if err = comm.Agree(ctx, m.ranks, err); err != nil {
		return err
	}
	return comm.BroadcastFloats(ctx, m.ranks, dst.RawMatrix().Data, 0)
}

func init() {
	stage.RegisterBuiltIn(stage.Kind{Name: "process:", Zero: Process{}})
}
