package krrlab

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
)

// Solution is the answer C of (K+λI)C = Y with what is known about it.
type Solution struct {
	Model      *model.Model // f, with C; its Scaling is left to the caller
	Status     string       // how the solve ended
	Iterations int          // in all
	// TrueResidual holds ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ of every column j, recomputed
	// from the answer as ResidualKind says.
	TrueResidual []float64
	ResidualKind string
	// Rounding bounds the error of TrueResidual with certainty, that of recomputing K included;
	// nil where it was taken with K as stored. Converged means that the two together are at most τ.
	Rounding []float64
	// SampledResidual is TrueResidual against K itself, estimated from 256 rows drawn at random and
	// the 32 of largest norm, computed in float64; nil where TrueResidual is that already. Where K is
	// stored in an arithmetic that may fail for up to an eighth of the points, those far from the
	// origin, the rows of up to 1024 of them are looked at too.
	SampledResidual []float64
	// StorageResidual is ‖(K−K_stored)c_j‖₂/‖y_j‖₂ estimated from the same rows, with the rounding of
	// products: by how much at most TrueResidual is off. Converged means that TrueResidual and 1.15
	// times this, or 1.15 times SampledResidual, are at most τ: 15 % are three standard errors of what is
	// spread over all rows. What a few rows hold that were not looked at is not in it.
	StorageResidual []float64
	SampledRows     int         // that were looked at; 0 for none
	Kappa           float64     // estimate of κ(M⁻¹A) from PCG's α, β; NaN if there is none
	KappaBound      float64     // certain bound of it, with Nystrom and RPCholesky, of K itself and not as stored; +Inf: none; NaN otherwise
	Rank            int         // of Nystrom's and RPCholesky's factor, at most Features; 0 otherwise
	StatDim         float64     // s_{λ_p}(ZZᵀ) = ‖U‖_F²; NaN if there is no Z
	History         []HistRow   // of the solve
	Result          *pcg.Result // of PCG, BlockPCG or CG; nil for Direct, and from a Backend
	Storage         string      // of K
	Choice          string      // why
	KBound          float64     // predicted bound of ‖K_stored−K‖₂
	KBytes          int64       // of K
	Form            string      // of the preconditioner's inverse; "" if there is none
	Seconds         Seconds     // by stage
	Shared          []string    // stages taken from an earlier solve by Config.Shared
	Ranks           *Ranks      // what they sent; nil without ranks

	converged bool
	r         *mat.Dense        // of which TrueResidual are the norms
	store     *checkpoint.Store // of checkpoints, at the first rank; nil if there are none
	as        *gram.Choice      // how K was kept when the state that is resumed was written; nil if none is
	lab       *Lab
	remote    *Report // of the ranks of a Backend
}

// Converged reports whether every column met the tolerance.
func (s *Solution) Converged() bool { return s.converged }

// WorstResidual returns the largest true residual of the columns, NaN if there is one.
func (s *Solution) WorstResidual() float64 { return worst(s.TrueResidual) }

// Solve computes the coefficients with the configured solver. If ctx ends first it
// returns ctx's error.
func (l *Lab) Solve(ctx context.Context) (*Solution, error) {
	if l.cfg.Backend != nil {
		return l.solveRemote(ctx)
	}
	end, err := l.cfg.Shared.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	start := time.Now()
	sol := &Solution{lab: l, Kappa: math.NaN(), KappaBound: math.NaN(), StatDim: math.NaN(), KBound: math.NaN()}
	var c *mat.Dense
	if l.cfg.Solver == Direct {
		c, err = l.direct(ctx, sol)
	} else {
		c, err = l.iterate(ctx, sol)
	}
	if err != nil {
		return nil, err
	}
	l.settleSampled(sol)
	sol.Model = l.model(c, sol, start)
	sol.Seconds.Total = time.Since(start).Seconds()
	l.countWaiting(sol)
	return sol, nil
}

// model returns the model with the coefficients C that were begun at a time.
func (l *Lab) model(c *mat.Dense, sol *Solution, begun time.Time) *model.Model {
	return &model.Model{
		Kernel: l.cfg.Kernel, Lambda: l.cfg.Lambda, X: l.train.X, C: c, Labels: l.coding.Labels, Columns: l.train.Columns,
		Origin: model.Origin{
			Dataset: l.train.Name, Solver: l.cfg.Solver.String(), Status: sol.Status, Tol: l.cfg.Tol,
			TrueResidual: sol.WorstResidual(), Seed: l.cfg.Seed, Created: begun.UTC().Format(time.RFC3339),
		},
	}
}

// timed adds the seconds that f takes to *seconds.
func timed(seconds *float64, f func() error) error {
	t := time.Now()
	err := f()
	*seconds += time.Since(t).Seconds()
	return err
}

// iterate solves by (block) PCG or CG, once for each preconditioner.
func (l *Lab) iterate(ctx context.Context, sol *Solution) (*mat.Dense, error) {
	var a *gram.Matrix
	var m pcg.Preconditioner
	var answers []*mat.Dense
	short := pcg.MaxIterations.String() // how one that did not converge ended, as far as is known
	if err := l.checkMemory(ctx); err != nil {
		return nil, err
	}
	k, err := l.newKeeper(ctx, sol)
	if err != nil {
		return nil, err
	}
	defer k.close()
	for rep := range l.cfg.Repeat {
		c := k.answer(rep)
		if c != nil && rep+1 < l.cfg.Repeat { // the last one's M and K are needed all the same
			answers = append(answers, c)
			continue
		}
		if l.cfg.Precond == NoPrecond {
			var err error
			if a, err = l.matrix(ctx, sol, 0); err != nil {
				return nil, err
			}
		} else {
			w, err := l.prepare(ctx, sol, &a, rep)
			if err != nil {
				return nil, err
			}
			m = w
		}
		var exact *gram.Matrix
		if l.exact() {
			exact = a.Exact(l.exactness())
		}
		if c == nil {
			o := &pcg.Options{Tol: l.cfg.Tol}
			k.begin(rep, answers, sol, a, o)
			if c, err = l.pcg(ctx, sol, a, m, o, exact, exactKind); err != nil {
				return nil, err
			}
			if !sol.converged {
				short = sol.Status
			}
		}
		answers = append(answers, c)
	}
	if k.refining() {
		return l.refine(ctx, sol, k, a, m, answers, answers[0])
	}
	c := answers[0]
	if len(answers) > 1 {
		var err error
		if c, err = l.median(ctx, sol, a, answers, short); err != nil {
			return nil, err
		}
	}
	if l.exact() {
		return c, nil
	}
	rounding := sol.converged || sol.Status == pcg.Inaccurate.String() || sol.Status == pcg.Stagnated.String()
	if err = l.checkRows(ctx, sol, a, c); err != nil || !rounding || l.within(sol) {
		return c, err
	}
	return l.refine(ctx, sol, k, a, m, answers, c)
}

// refine takes the answer c of K as stored to where K itself meets the tolerance: by K as stored, if the
// rows checked leave half of the tolerance for it, else by what residuals can be taken with.
func (l *Lab) refine(ctx context.Context, sol *Solution, k *keeper, a *gram.Matrix, m pcg.Preconditioner, answers []*mat.Dense, c *mat.Dense) (*mat.Dense, error) {
	if sol.SampledResidual == nil { // resumed
		n, t := c.Dims()
		sol.r = mat.NewDense(n, t, nil)
		var err error
		if sol.TrueResidual, _, err = l.residual(ctx, a, c, sol.r); err != nil {
			return nil, err
		}
		if err := l.checkRows(ctx, sol, a, c); err != nil {
			return nil, err
		}
	}
	o := &pcg.Options{InitX: c, Tol: l.cfg.Tol - 1.2*l.slack()*worst(sol.StorageResidual)}
	var finer *gram.Matrix
	kind := storedKind
	if !(o.Tol >= l.cfg.Tol/2) {
		var err error
		if finer, kind, err = l.finer(ctx, a); err != nil || finer == nil {
			return c, err
		}
		if o.Tol = l.cfg.Tol; !finer.Choice().Certain { // leave room for what the rows will find
			o.Tol *= min(max(aim-3*share*finer.Choice().Error/(l.cfg.Lambda*l.cfg.Tol), 0.25), 0.75)
		}
	}
	k.begin(l.cfg.Repeat, answers, sol, a, o)
	c, err := l.pcg(ctx, sol, a, m, o, finer, kind)
	if err != nil || finer != nil && finer.Choice().Certain {
		sol.SampledResidual, sol.StorageResidual, sol.SampledRows = nil, nil, 0
		return c, err
	}
	return c, l.checkRows(ctx, sol, a, c)
}

// median picks the answer of least median A-norm distance to the others, column by
// column, and recomputes its residual. short is the status if that is not within τ.
func (l *Lab) median(ctx context.Context, sol *Solution, a *gram.Matrix, answers []*mat.Dense, short string) (*mat.Dense, error) {
	c, err := pcg.MedianByNorm(ctx, a, answers)
	if err != nil {
		return nil, err
	}
	check := a
	if l.exact() {
		check = a.Exact(l.exactness())
	}
	n, t := c.Dims()
	sol.r = mat.NewDense(n, t, nil)
	sol.TrueResidual, sol.Rounding, err = l.residual(ctx, check, c, sol.r)
	if err != nil {
		return nil, err
	}
	sol.converged = true
	for j, v := range sol.TrueResidual {
		if sol.Rounding != nil {
			v += sol.Rounding[j]
		}
		sol.converged = sol.converged && v <= l.cfg.Tol
	}
	if sol.Status = short; sol.converged {
		sol.Status = pcg.Converged.String()
	}
	return c, nil
}

// direct solves by a dense Cholesky factorization: in float64 up to n = DirectBelow or
// where float64 storage is asked for, beyond in float32 with refinement by float64
// residuals.
func (l *Lab) direct(ctx context.Context, sol *Solution) (*mat.Dense, error) {
	o := &baseline.DirectOptions{Tol: l.cfg.Tol, Progress: l.watch("kernel")}
	if l.cfg.Storage == gram.Float32 || l.cfg.Storage == gram.Auto && l.train.Len() > DirectBelow {
		o.Precision = baseline.Float32Refined
	}
	if l.cfg.Memory > 0 {
		o.Memory = max(1, l.cfg.Memory-pointBytes(l.train.X))
	}
	res, err := baseline.Direct(ctx, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.y, o)
	if err != nil {
		return nil, err
	}
	sol.Status, sol.converged = res.Status.String(), res.Converged()
	sol.TrueResidual, sol.Rounding, sol.ResidualKind = res.TrueRelRes, res.Rounding, exactKind
	sol.KBound = res.KError
	sol.Storage, sol.KBytes = "dense "+res.Precision.String(), res.Bytes
	sol.Seconds.Kernel, sol.Seconds.Factor = res.Seconds.Kernel, res.Seconds.Factor
	sol.Seconds.Solve, sol.Seconds.Residual = res.Seconds.Solve, res.Seconds.Residual
	for i, r := range res.History {
		sol.History = append(sol.History, HistRow{i, floats.Max(r), r})
	}
	return res.X, nil
}
