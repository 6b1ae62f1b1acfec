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

// Process is M of another process, in any language, by the protocol of package process.
type Process struct {
	Command string // for the shell
}

// String returns what names it on a command line.
func (p Process) String() string { return "process:" + p.Command }

// MaxBytes implements stage.FromK: what the process holds is not known.
func (Process) MaxBytes(int) int64 { return 0 }

// Make implements stage.Preconditioner. It forms K first, starts the command and waits for M; the process ends with ctx.
// On ranks each starts one, and all take what that of rank 0 answers.
func (p Process) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	problem := b.Problem()
	k, err := b.K(ctx, 0)
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
	return &shared{m, problem.Comm}, nil
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

func init() {
	stage.BuiltIn(stage.Kind{Name: "process:", Zero: Process{}, Broken: "krrlab compare --with 'process:…' says whether " +
		"M⁻¹ is symmetric and positive definite; if it is, try a larger --max-iter, or --solver direct"})
}
