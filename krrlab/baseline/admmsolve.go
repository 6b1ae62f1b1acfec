package baseline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
)

// ADMMSolve are the options of ADMM.Solve. Zero values, and nil, mean the defaults.
type ADMMSolve struct {
	// Rho is ρ > 0, which the speed depends on and the answer does not; see TuneRho. Default 1.
	Rho float64
	// Tol is τ of the stopping test, on residuals relative to what they are residuals of:
	//
	//	‖z₁−z₂‖ ≤ τ·max(‖z₁‖, ‖z₂‖)  and  ‖z₂−z₂'‖ ≤ τ‖u‖,
	//
	// z₁ and z₂ being all variables after the proximal and the averaging step, z₂' those of
	// the iteration before and u the scaled duals. Default 1e-4.
	Tol float64
	// MaxIter is the most iterations. Default 1000.
	MaxIter int
	// Every is the number of iterations from one measurement of Objective and Dual to the
	// next; each costs as much as an iteration. They are measured at the end in any case.
	// Default 10.
	Every int
	// Monitor, if not nil, is called after each measurement. If it returns an error, Solve ends
	// with Status Stopped and that error.
	Monitor func(ADMMStep) error
}

// ADMMStep is what was measured after an iteration.
type ADMMStep struct {
	Iteration int
	Seconds   float64 // spent iterating, without measurements and the setup
	Objective float64 // F(W)
	Dual      float64 // a lower bound of F
	Primal    float64 // ‖z₁−z₂‖/max(‖z₁‖, ‖z₂‖)
	DualRes   float64 // ‖z₂−z₂'‖/‖u‖
}

// ADMMSeconds are the seconds that block ADMM spent.
type ADMMSeconds struct {
	Setup   ADMMSetup // NewADMM, once for all solves
	Iterate float64
	Total   float64 // of this solve
}

// ADMMResult is the answer of ADMM.Solve.
type ADMMResult struct {
	W          *mat.Dense  // s×t
	Map        feature.Map // φ
	Rho        float64
	Status     pcg.Status
	Iterations int
	Objective  float64 // F(W)
	Dual       float64 // a lower bound of F, ≥ 0, from the duals
	Gap        float64 // (Objective−Dual)/|Objective|, at most 1
	History    []ADMMStep
	Bytes      int64
	Seconds    ADMMSeconds
}

// Predict returns φ(x)ᵀW for all points, p×t, as FeatureResult.Predict.
func (r *ADMMResult) Predict(ctx context.Context, x points.Points) (*mat.Dense, error) {
	return predictFeatures(ctx, r.Map, r.W, x)
}

// Solve runs block ADMM from zero until the test of ADMMSolve.Tol is met. A nil o means
// the defaults. The result has the same bits for any number of threads.
//
// Work: an iteration reads Z once and takes 4nst + 2s²t/C flops; no vector is allocated for it.
//
// Not converging is a Status. An error is returned if ctx ends or Monitor returns one, with the
// result so far; its Objective is measured all the same. Solve panics if an option is negative.
func (a *ADMM) Solve(ctx context.Context, o *ADMMSolve) (*ADMMResult, error) {
	began := time.Now()
	opt := a.solveOptions(o)
	s := a.start(opt.Rho)
	res := &ADMMResult{Map: a.m, Rho: opt.Rho, Status: pcg.MaxIterations, Bytes: a.bytes}
	err := s.loop(ctx, res, opt)
	if err != nil {
		res.Status = pcg.Stopped
		if ctx.Err() != nil {
			res.Status = pcg.Canceled
		}
		if k := len(res.History); k == 0 || res.History[k-1].Iteration < res.Iterations {
			_ = s.measure(context.WithoutCancel(ctx), res)
		}
	}
	res.W = a.weights(s.x)
	res.Seconds.Setup, res.Seconds.Total = a.setup, time.Since(began).Seconds()
	return res, err
}

func (a *ADMM) solveOptions(o *ADMMSolve) ADMMSolve {
	opt := *cmp.Or(o, &ADMMSolve{})
	if !(opt.Rho >= 0) || !(opt.Tol >= 0) || opt.MaxIter < 0 || opt.Every < 0 {
		panic(fmt.Sprintf("baseline: ρ = %v, tolerance %v, %d iterations, measured every %d", opt.Rho, opt.Tol,
			opt.MaxIter, opt.Every))
	}
	opt.Rho, opt.Tol = cmp.Or(opt.Rho, 1), cmp.Or(opt.Tol, 1e-4)
	opt.MaxIter, opt.Every = cmp.Or(opt.MaxIter, 1000), cmp.Or(opt.Every, 10)
	return opt
}

// loop iterates until the tests are met or the iterations used up.
func (s *admmState) loop(ctx context.Context, res *ADMMResult, opt ADMMSolve) error {
	for k := 1; k <= opt.MaxIter; k++ {
		start := time.Now()
		if err := s.iterate(ctx); err != nil {
			return err
		}
		res.Seconds.Iterate += time.Since(start).Seconds()
		res.Iterations = k
		primal, dual := s.total.relative()
		met := primal <= opt.Tol && dual <= opt.Tol
		if met || k%opt.Every == 0 || k == opt.MaxIter {
			if err := s.measure(ctx, res); err != nil {
				return err
			}
			if opt.Monitor != nil {
				if err := opt.Monitor(res.History[len(res.History)-1]); err != nil {
					return err
				}
			}
			if met {
				res.Status = pcg.Converged
				return nil
			}
		}
	}
	return nil
}

// relative returns ‖z₁−z₂‖/max(‖z₁‖, ‖z₂‖) and ‖z₂−z₂'‖/‖u‖, 0 for 0/0.
func (r *residuals) relative() (primal, dual float64) {
	ratio := func(a, b float64) float64 {
		if a == 0 {
			return 0
		}
		return math.Sqrt(a / b)
	}
	return ratio(r.primal, max(r.z1, r.z2)), ratio(r.change, r.dual)
}

// measure appends to the history F(W) of the consensus and the best dual value of θu, 0 ≤ θ ≤ 1, that
// is known for the subgradients u of the losses at the proximal points: conjugates are convex and 0 at 0,
// so that
//
//	−θ·Σ loss*(y, u) − θ²‖Zᵀu‖_F²/(2λ) ≤ D(θu) = −Σ loss*(y, θu) − ‖Zᵀθu‖_F²/(2λ) ≤ min F   (Fenchel).
//
// At the optimum θ = 1; far from it D(u) may be below 0, which every loss is above.
func (s *admmState) measure(ctx context.Context, res *ADMMResult) error {
	zu := make([]float64, len(s.x))
	sum, err := s.pass(ctx, zu, s.measurePanel)
	if err != nil {
		return err
	}
	primal, dual := s.total.relative()
	res.Objective = sum.loss + s.a.lambda/2*floats.Dot(s.x, s.x)
	res.Dual = dualBound(sum.conj, floats.Dot(zu, zu)/s.a.lambda)
	res.Gap = 0
	if d := res.Objective - res.Dual; d > 0 {
		res.Gap = d / math.Abs(res.Objective)
	}
	res.History = append(res.History, ADMMStep{res.Iterations, res.Seconds.Iterate, res.Objective, res.Dual, primal,
		dual})
	return nil
}

// dualBound returns the maximum of −θc − θ²q/2 over 0 ≤ θ ≤ 1, q ≥ 0.
func dualBound(c, q float64) float64 {
	theta := 1.0
	if -c < q {
		theta = max(0, -c) / q
	}
	return -theta*c - theta*theta*q/2
}

// RhoGrid says how ρ was tuned: each of Rho was given the same number of iterations from zero.
type RhoGrid struct {
	Rho       []float64
	Objective []float64 // F(W) after them
	Best      float64   // the ρ of the least objective
}

// TuneRho runs the given number of iterations from zero for each ρ of the grid and returns what each has reached, or
// ctx's error. It panics if the grid is empty or not positive, or iterations < 1.
func (a *ADMM) TuneRho(ctx context.Context, grid []float64, iterations int) (*RhoGrid, error) {
	if len(grid) == 0 || !(slices.Min(grid) > 0) || iterations < 1 {
		panic(fmt.Sprintf("baseline: grid %v of ρ, %d iterations each", grid, iterations))
	}
	out := &RhoGrid{Rho: grid, Objective: make([]float64, len(grid))}
	for i, rho := range grid {
		res := &ADMMResult{}
		// Tol = -1 is never met: all have the same iterations.
		if err := a.start(rho).loop(ctx, res, ADMMSolve{Tol: -1, MaxIter: iterations, Every: iterations}); err != nil {
			return nil, err
		}
		out.Objective[i] = res.Objective
	}
	out.Best = grid[floats.MinIdx(out.Objective)]
	return out, nil
}
