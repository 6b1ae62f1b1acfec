package results

import "github.com/krrlab/lab/krrlab/internal/enum"

// Solver names a way to solve (K+λI)C = Y.
type Solver int

const (
	AutoSolver Solver = iota // what krrlab chooses
	PCG                      // conjugate gradients, preconditioned
	CG                       // without a preconditioner
	Direct                   // a dense Cholesky factorization
	BlockPCG                 // conjugate gradients in one space for all right-hand sides
)

var solverNames = []string{"auto", "pcg", "cg", "direct", "block-pcg"}

func (s Solver) String() string { return enum.Name(solverNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Solver) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Solver) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[Solver]("solver", solverNames, string(b))
	return err
}
