package krrlab

import (
	"cmp"
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
)

// Features is M = ZZᵀ+λ_pI with random features Z, the paper's preconditioner. Zero values mean the
// defaults.
type Features struct {
	S       int          // number of features, 1 ≤ s ≤ n; default: n/10, from 500 to 10,000, and at most n
	LambdaP float64      // λ_p > 0; default: λ
	Map     feature.Dist // their distribution, built-in or user-defined; default: the paper's choice for the kernel
	Form    precond.Form // of M⁻¹; default: the cheapest
}

// Nystrom is M = FFᵀ+λ_pI with the Nyström approximation FFᵀ of K from S landmarks, drawn uniformly or given. Zero
// values mean the defaults, those of Features.
type Nystrom struct {
	S       int // rank, 1 ≤ s ≤ n
	LambdaP float64
	Form    precond.Form
	// Spectral takes λ_p + σ_s² for λ_p, σ_s² being the least eigenvalue of FᵀF, and as much from the eigenvalues of
	// FFᵀ, which leaves M as it is in the range of F (precond.Spectral)
	Spectral bool
	// Landmarks are rows of the training points, from 0, all different: the first S of them, by default all.
	Landmarks []int
}

// RPCholesky is M = FFᵀ+λ_pI with FFᵀ ≈ K by randomly pivoted Cholesky of rank S. Zero values mean
// the defaults, those of Features and Nystrom.
type RPCholesky struct {
	S        int // rank, 1 ≤ s ≤ n
	LambdaP  float64
	Form     precond.Form
	Spectral bool
}

// None is M = I.
type None struct{}

func (f Features) String() string { return f.parts().String() }

// Make implements Preconditioner.
func (f Features) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, f)
}

func (f Features) settled(k kernel.Kernel, n int, lambda float64) (Preconditioner, error) {
	err := settle(&f.S, &f.LambdaP, n, lambda)
	if err == nil && f.Map == nil {
		f.Map, err = feature.For(k)
	}
	return f, err
}

func (f Features) parts() *stage.Approximation {
	return &stage.Approximation{Method: "features", S: f.S, LambdaP: f.LambdaP, Form: f.Form, Features: f.Map}
}

func (p Nystrom) String() string { return p.parts().String() }

// Make implements Preconditioner.
func (p Nystrom) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, p)
}

func (p Nystrom) settled(_ kernel.Kernel, n int, lambda float64) (Preconditioner, error) {
	p.S = cmp.Or(p.S, len(p.Landmarks))
	err := settle(&p.S, &p.LambdaP, n, lambda)
	return p, err
}

func (p Nystrom) parts() *stage.Approximation {
	return &stage.Approximation{Method: "nystrom", S: p.S, LambdaP: p.LambdaP, Form: p.Form, Spectral: p.Spectral,
		Landmarks: p.Landmarks}
}

func (p RPCholesky) String() string { return p.parts().String() }

// Make implements Preconditioner.
func (p RPCholesky) Make(ctx context.Context, l *Lab) (pcg.Preconditioner, error) {
	return l.woodbury(ctx, p)
}

func (p RPCholesky) settled(_ kernel.Kernel, n int, lambda float64) (Preconditioner, error) {
	err := settle(&p.S, &p.LambdaP, n, lambda)
	return p, err
}

func (p RPCholesky) parts() *stage.Approximation {
	return &stage.Approximation{Method: "rpcholesky", S: p.S, LambdaP: p.LambdaP, Form: p.Form, Spectral: p.Spectral}
}

func (None) String() string { return "none" }

// Make returns nil, which is M = I.
func (None) Make(context.Context, *Lab) (pcg.Preconditioner, error) { return nil, nil }

// Auto leaves the preconditioner to the plan (Lab.Plan), and the solver too unless it is set. What is not zero is
// held. It is what nil means with AutoSolver. Up to n = DirectBelow and with a Backend it is the fixed rule of
// AutoSolver, with Features.
type Auto struct {
	S       int     // rank
	LambdaP float64 // λ_p
	// Race are preconditioners to try beside what is planned: they iterate side by side, a product with K serving them
	// all, and the one that would be done first by its slope is taken. Of any number of points; not with a Backend or a
	// Checkpoint.
	Race []Preconditioner
}

func (Auto) String() string { return "auto" }

// Make is not called: the preconditioner that the plan chooses is made.
func (Auto) Make(context.Context, *Lab) (pcg.Preconditioner, error) {
	return nil, fmt.Errorf("krrlab: the preconditioner auto is chosen by New")
}

// usual returns what approximates a K where nothing is named: random features, or landmarks of a kernel without them.
func usual(k kernel.Kernel, s int, lambdaP float64) approximation {
	if k != nil && noFeatures(k) {
		return RPCholesky{S: s, LambdaP: lambdaP}
	}
	return Features{S: s, LambdaP: lambdaP}
}

// noFeatures reports whether there are no random features for a kernel.
func noFeatures(k kernel.Kernel) bool {
	_, err := feature.For(k)
	return err != nil
}

// settle sets the defaults of s and λ_p and checks them.
func settle(s *int, lambdaP *float64, n int, lambda float64) error {
	*s, *lambdaP = cmp.Or(*s, DefaultFeatures(n)), cmp.Or(*lambdaP, lambda)
	if err := checkRank(*s, n); err != nil {
		return err
	}
	return checkSize("λ_p", *lambdaP)
}

func checkRank(s, n int) error {
	if s < 1 || s > n {
		return fmt.Errorf("s = %d features for n = %d points: want 1 ≤ s ≤ n", s, n)
	}
	return nil
}

// checkSize is the door of a problem's numbers: targets, λ, λ_p, and y/λ, the size of coefficients. Squares of what
// comes in, and their sums, are normal numbers of float64, and nothing behind the door guards against others.
func checkSize(what string, v float64) error {
	if !inRange(v) {
		return fmt.Errorf("%s = %g: want a positive number from 1e-100 to 1e100", what, v)
	}
	return nil
}

func inRange(v float64) bool { return v >= 1e-100 && v <= 1e100 }

// plain reports whether M = I.
func (l *Lab) plain() bool { return l.cfg.Precond == Preconditioner(None{}) }
