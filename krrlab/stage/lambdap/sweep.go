package lambdap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Point is the result for one λ_p of a sweep. Its intervals are cut to those that follow from η (Bound).
type Point struct {
	pencil.Row
	Bound   float64 `json:"bound"`             // Bound for the upper end of η's interval
	Seconds float64 `json:"seconds_predicted"` // time of a solve for all right-hand sides with set-up; 0 if not known
}

// Sweep is the result for one Z, n×s, at each λ_p.
type Sweep struct {
	N                int               `json:"n"` // number n of points
	S                int               `json:"s"` // number of columns of Z
	Lambda           float64           `json:"lambda"`
	Eta              estimate.Interval `json:"eta"` // η = ‖K−ZZᵀ‖₂
	Points           []Point           `json:"points"`
	Best             int               `json:"best"`              // index of the point of least predicted time; −1: none
	SetUpSeconds     float64           `json:"seconds_set_up"`    // time to form Z and set up M
	IterationSeconds float64           `json:"seconds_iteration"` // time of an iteration with all right-hand sides
	EigenSeconds     float64           `json:"seconds_eigen"`     // time of the sweep's eigendecomposition
	TotalSeconds     float64           `json:"seconds"`           // time of the sweep, without forming Z
}

// measure measures ZZᵀ+λ_pI as a preconditioner of K+λI for a grid of λ_p. It measures η = ‖K−ZZᵀ‖₂, and for each λ_p
// an interval of κ and the iterations of PCG with the first right-hand sides of y, n×t. zSeconds is the time to form Z,
// for the predicted times. If ctx ends, measure returns the results so far together with ctx's error: intervals are
// valid, though wide, after any step. The work is ns² + 9s³ flops, and for each step or iteration a product of K with
// one column per λ_p.
func measure(ctx context.Context, a stage.Operator, z *points.Dense32, y *mat.Dense, zSeconds float64,
	o *Options) (*Sweep, error) {
	start := time.Now()
	s := &sweepState{Sweep: &Sweep{N: a.Dim(), S: z.D, Lambda: a.Lambda(), Best: -1}, a: a, z: z, y: y,
		zSeconds: zSeconds, options: o}
	var err error
	steps := []func(context.Context) error{s.decompose, s.measureEta, s.measureCost, s.measureKappas, s.countIterations}
	for _, step := range steps {
		if err == nil {
			err = step(ctx)
		}
	}
	s.predictSeconds()
	s.TotalSeconds = time.Since(start).Seconds()
	if err != nil && (ctx.Err() == nil || len(s.Points) == 0) {
		return nil, err
	}
	return s.Sweep, err
}

// sweepState is a sweep with the data that its steps share.
type sweepState struct {
	*Sweep
	a         stage.Operator  // A = K+λI
	z         *points.Dense32 // Z, n×s
	y         *mat.Dense      // right-hand sides, n×t
	zSeconds  float64         // time to form Z
	options   *Options
	eigenForm *precond.Woodbury // ZZᵀ+λI by an eigendecomposition of ZᵀZ, which gives M⁻¹ for every λ_p
	sets      []*pencil.Set     // rows of all λ_p, at most maxColumns in a set
}

// decompose computes the eigendecomposition of ZᵀZ.
func (s *sweepState) decompose(ctx context.Context) (err error) {
	clock := time.Now()
	s.eigenForm, err = precond.New(ctx, s.z, s.Lambda, &precond.Options{Form: precond.FormEigen, Comm: s.options.comm})
	s.EigenSeconds = stage.Lap(&clock)
	return err
}

// measureCost sets SetUpSeconds to the time to form Z and to set up M at λ_p = λ+η, and IterationSeconds to the time of
// a product with A and a solve with M. All ranks get these seconds and EigenSeconds from rank 0, so that all choose the
// same λ_p.
func (s *sweepState) measureCost(ctx context.Context) error {
	_, t := s.y.Dims()
	clock := time.Now()
	preconditioner, err := precond.New(ctx, s.z, s.Lambda+s.Eta.Value, &precond.Options{RHS: t, Comm: s.options.comm})
	if err != nil {
		return err
	}
	// The seconds are those of the set-up, an iteration and the eigendecomposition.
	seconds := []float64{s.zSeconds + stage.Lap(&clock), 0, s.EigenSeconds}
	for _, op := range []func(context.Context, *mat.Dense, *mat.Dense) error{s.a.MulTo, preconditioner.SolveTo} {
		applySeconds, err := pencil.ApplySeconds(ctx, op, s.y)
		if err != nil {
			return err
		}
		seconds[1] += applySeconds
	}
	err = comm.BroadcastFloats(ctx, s.options.comm, seconds, 0)
	s.SetUpSeconds, s.IterationSeconds, s.EigenSeconds = seconds[0], seconds[1], seconds[2]
	return err
}

// lanczosOptions returns the options of a Lanczos process. Its interval may be wrong with half of the probability
// 1−Confidence, because η and κ have one process each. relativeWidth is the relative width of the interval at which the
// process ends.
func (s *sweepState) lanczosOptions(relativeWidth float64, stream string) lanczos.Options {
	return lanczos.Options{Steps: s.options.Steps, Tol: relativeWidth, Confidence: 1 - (1-s.options.Confidence)/2,
		Start: s.options.stream.Sub(stream)}
}

// measureEta sets Eta, by a Lanczos process for K−ZZᵀ.
func (s *sweepState) measureEta(ctx context.Context) error {
	options := s.lanczosOptions(0.05, "eta")
	options.Quantity, options.Monitor = lanczos.TwoNorm, func(result *lanczos.Result) error {
		s.options.notify(ctx, stage.Event{Stage: "eta", Done: result.Steps, Total: s.options.Steps, Remaining: -1})
		return nil
	}
	result, err := lanczos.Run(ctx, s.eigenForm.OuterProduct().SubtractFrom(s.a), &options)
	if result != nil {
		s.Eta = result.Norm().Widened(s.options.kError)
	}
	return err
}

// maxColumns is the largest number of λ_p that share products. A larger value takes fewer products with K, but more
// memory, and more time until a sweep ends after its context.
const maxColumns = 256

// measureKappas sets Points: the intervals of κ and of the extreme eigenvalues of M⁻¹A, for maxColumns λ_p of the grid
// together. If ctx ends, the points without a first step are removed. It returns an
// error if a process fails at its first step.
func (s *sweepState) measureKappas(ctx context.Context) error {
	grid := s.options.Grid
	if len(grid) == 0 {
		grid = defaultGrid(s.Lambda, s.Eta.Value, s.options.Points)
	}
	s.Points = make([]Point, len(grid))
	for i, lambdaP := range grid {
		row := pencil.NewRow(fmt.Sprintf("λ_p = %.4g", lambdaP))
		row.S, row.LambdaP = s.S, lambdaP
		s.Points[i] = Point{Row: row, Bound: Bound(s.Lambda, lambdaP, s.Eta.Hi)}
	}
	var err error
	for lo := 0; lo < len(grid) && err == nil; lo += maxColumns {
		hi := min(lo+maxColumns, len(grid))
		set := &pencil.Set{A: s.a, StorageError: s.options.kError / s.Lambda, Notify: s.options.notify}
		if set.M, err = s.eigenForm.WithLambdas(grid[lo:hi]); err != nil {
			return err
		}
		for i := range s.Points[lo:hi] {
			set.Rows = append(set.Rows, &s.Points[lo+i].Row)
		}
		s.sets = append(s.sets, set)
		err = set.Lanczos(ctx, s.lanczosOptions(s.options.Width, "kappa"), s.options.tol)
	}
	for i := range s.Points {
		point := &s.Points[i]
		if point.Steps == 0 && point.FailureReason != "" {
			return fmt.Errorf("%s: %s", point.Name, point.FailureReason)
		}
		point.ClipByEta(s.Lambda, s.Eta.Hi)
		for _, interval := range []*estimate.Interval{&point.Kappa, &point.Min, &point.Max} {
			// The confidence is lower than that of the Lanczos process, because the interval of η may be wrong too.
			interval.Confidence = s.options.Confidence
		}
	}
	if err != nil {
		s.Points = slices.DeleteFunc(s.Points, func(point Point) bool { return point.Steps == 0 })
	}
	return err
}

// countIterations counts the iterations of PCG with the first Options.Columns right-hand sides, for all λ_p of a set
// together.
func (s *sweepState) countIterations(ctx context.Context) error {
	if s.options.Columns == 0 {
		return nil
	}
	for _, set := range s.sets {
		if err := set.Solve(ctx, s.y.Slice(0, s.N, 0, s.options.Columns).(*mat.Dense),
			pcg.Options{Tol: s.options.tol, TolFraction: stage.TolFraction,
				MaxIter: s.options.MaxIter}); err != nil {
			return err
		}
	}
	return nil
}

// predictSeconds predicts the times, from counted iterations or else predicted ones. It sets Best to the point of least
// time, and among equal times to the point of smallest κ. A point whose counted iterations did not converge has no
// time.
func (s *sweepState) predictSeconds() {
	r := s.Sweep
	for i := range r.Points {
		point := &r.Points[i]
		iterations := point.Predicted
		if point.Iterations != nil {
			iterations = *point.Iterations
		}
		if iterations == 0 || point.Iterations != nil && point.Status != pcg.Converged {
			continue
		}
		point.Seconds = r.SetUpSeconds + float64(iterations)*r.IterationSeconds
		if r.Best < 0 || point.Seconds < r.Points[r.Best].Seconds || point.Seconds == r.Points[r.Best].Seconds &&
			point.Kappa.Value < r.Points[r.Best].Kappa.Value {
			r.Best = i
		}
	}
}

// At returns the point with the given λ_p, or nil if there is none.
func (s *Sweep) At(lambdaP float64) *Point {
	for i := range s.Points {
		if s.Points[i].LambdaP == lambdaP {
			return &s.Points[i]
		}
	}
	return nil
}
