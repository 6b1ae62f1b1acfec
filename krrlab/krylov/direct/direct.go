package direct

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// Precision is the precision of the factorization.
type Precision int

const (
	Float64        Precision = iota // float64, 8n² bytes
	Float32Refined                  // float32, 4n² bytes; refined with residuals in float64
)

// String returns "float64" or "float32-refined".
func (p Precision) String() string { return enum.Name([]string{"float64", "float32-refined"}, p) }

// Options are the options of Solve. Zero values, and nil, mean the defaults.
type Options struct {
	// Precision is the precision of the factorization. Default Float64.
	Precision Precision
	// Tol is the tolerance for ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ of every column, including rounding. Default 1e-8.
	Tol float64
	// Memory is the memory budget of Solve.
	Memory accel.Budget
	// Progress, if not nil, is called with the number of tiles of K that have been formed, and of all tiles.
	Progress func(completed, total int)
}

// Result is the result of Solve.
type Result struct {
	X          *mat.Dense  // C, n×t
	Status     pcg.Status  // Converged, Inaccurate or Stagnated
	Precision  Precision   // precision of the factor
	Tol        float64     // tolerance of the solve
	TrueRelRes []float64   // ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, with K in float64; 0 for y_j = 0
	Rounding   []float64   // certain bound of the error of TrueRelRes
	KError     float64     // certain bound of ‖E‖₂ for the matrix K+E used for TrueRelRes
	Rounds     int         // number of refinement rounds
	History    [][]float64 // TrueRelRes after each triangular solve: Rounds+1 rows
	Bytes      int64       // memory of the factor and the n×t blocks
	Seconds    Seconds
}

// Seconds are the times of the parts of Solve, in seconds.
type Seconds struct {
	Kernel   float64 // forming K
	Factor   float64 // LLᵀ = K+λI
	Solve    float64 // triangular solves
	Residual float64 // true residuals
	Total    float64
}

// Add adds the times of another solve.
func (s *Seconds) Add(other Seconds) {
	s.Kernel += other.Kernel
	s.Factor += other.Factor
	s.Solve += other.Solve
	s.Residual += other.Residual
	s.Total += other.Total
}

// MaxTrueRelRes returns the largest true residual, or NaN if one is NaN.
func (r *Result) MaxTrueRelRes() float64 { return slices.Max(r.TrueRelRes) }

// String describes the outcome and the times in one line.
func (r *Result) String() string {
	n, t := r.X.Dims()
	return fmt.Sprintf("cholesky %v, n = %d, t = %d: %v, true residual %.3g (asked %.3g) after %s of refinement; "+
		"kernel %.3g s, factor %.3g s, solve %.3g s, residual %.3g s",
		r.Precision, n, t, r.Status, r.MaxTrueRelRes(), r.Tol, plural.Count(r.Rounds, "round"), r.Seconds.Kernel,
		r.Seconds.Factor, r.Seconds.Solve, r.Seconds.Residual)
}

// MemoryNeeded returns the number of bytes that Solve uses for n points and t right-hand sides: the n×n array and four
// n×t blocks.
func MemoryNeeded(p Precision, n, t int) int64 {
	entryBytes := int64(8)
	if p == Float32Refined {
		entryBytes = 4
	}
	return entryBytes*int64(n)*int64(n) + 4*8*int64(n)*int64(t)
}

// FasterPrecision returns the precision that is likely to be faster for n points. largest is max k(x, x) over the
// points, and tol is the tolerance of the solve.
//
// Float32Refined saves half of the n³/3 flops, but computes a second true residual, which takes n²/2 kernel entries in
// float64. Float32Refined is faster beyond 2,000 points (at 10 ns an entry and 100 GFLOP/s in float32, n > 1,500) if
// one round of refinement is enough. Up to 4,000 points, it is chosen only if one round is certain to be enough and
// K+λI is certain to be positive definite in float32. Beyond 4,000 points it is always chosen, because it also saves
// memory.
func FasterPrecision(n int, largest, lambda, tol float64) Precision {
	// A float32 solve reduces the residual by this factor, √(κn)·u with κ ≤ 1+n·max k(x,x)/λ and u = 2⁻²⁴.
	residualFactor := 0x1p-24 * math.Sqrt(float64(n)*(1+float64(n)*largest/lambda))
	isDefinite := lambda >= float64(n)*0x1p-24*largest // certain, because K is semidefinite
	if n > 4000 || n > 2000 && residualFactor*residualFactor <= tol && isDefinite {
		return Float32Refined
	}
	return Float64
}

// Solve solves (K+λI)C = Y, K_ij = k(x_i, x_j), Y n×t, by a dense Cholesky factorization, as described in the package
// documentation. A nil o means the defaults. y and o are not changed. Work: n²d/2 multiply-adds and n²/2 kernel values
// for K, n³/3 for the factor, 2n²t for a solve, and n²d/2 with n²/2 kernel values for each true residual.
//
// Solve returns an error if k is not valid, λ is not positive, the data are not finite, the memory limit is too small,
// K+λI is not positive definite in the chosen precision, or ctx ends. If the answer misses the tolerance, for instance
// because y is not finite, Solve returns no error, but a Status other than Converged. Solve panics if the number of
// rows of y is not the number of points, or an option is out of range.
func Solve(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, o *Options) (*Result,
	error) {
	start := time.Now()
	s, err := newState(ctx, k, x, lambda, y, o)
	if err != nil {
		return nil, err
	}
	res := s.res
	lapStart := start
	lap := func(seconds *float64) { // adds the time since the previous call to seconds
		now := time.Now()
		*seconds += now.Sub(lapStart).Seconds()
		lapStart = now
	}
	if err := s.factor.form(ctx, s); err != nil {
		return nil, err
	}
	lap(&res.Seconds.Kernel)
	if !s.factor.cholesky() {
		return nil, s.notDefiniteError()
	}
	lap(&res.Seconds.Factor)
	r := mat.DenseCopyOf(y) // R = Y for C = 0
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.factor.solve(r)   // Δ = (LLᵀ)⁻¹R
		res.X.Add(res.X, r) // C ← C + Δ
		lap(&res.Seconds.Solve)
		if err := s.computeResidual(ctx, r); err != nil { // R = Y − (K+λI)C
			return nil, err
		}
		lap(&res.Seconds.Residual)
		if s.checkDone() {
			break
		}
		res.Rounds++
	}
	res.Seconds.Total = time.Since(start).Seconds()
	return res, nil
}

// state is the state of one call of Solve.
type state struct {
	k      kernel.Kernel
	panel  points.Panel      // the points in the form that the tiles of the factor use
	arith  kernel.Arithmetic // arithmetic of these tiles
	y      *mat.Dense
	n, t   int
	lambda float64
	opt    Options
	exact  *gram.Matrix // matrix for true residuals
	factor factor
	res    *Result
}

// newState checks the arguments of Solve, chooses the matrix for true residuals and the arithmetic of the factor, and
// returns the state before the factorization. It returns an error if the memory limit is too small.
func newState(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, o *Options) (*state,
	error) {
	s := &state{k: k, y: y, lambda: lambda}
	if o != nil {
		s.opt = *o
	}
	s.n, _ = x.Dims()
	_, s.t = y.Dims()
	if !(s.opt.Tol >= 0) || s.opt.Memory.Limit < 0 || s.opt.Precision < Float64 || s.opt.Precision > Float32Refined {
		panic(fmt.Sprintf("direct: tolerance %v, memory %d, precision %v", s.opt.Tol, s.opt.Memory.Limit,
			s.opt.Precision))
	}
	s.opt.Tol = cmp.Or(s.opt.Tol, 1e-8)
	if !(lambda > 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("direct: λ = %v, want a positive number", lambda)
	}
	if rows, _ := y.Dims(); rows != s.n {
		panic(fmt.Sprintf("direct: %d points, %d rows of targets", s.n, rows))
	}
	neededBytes := MemoryNeeded(s.opt.Precision, s.n, s.t)
	err := s.checkMemory(neededBytes)
	if err != nil {
		return nil, err
	}

	// An expensive kernel is evaluated once, and its matrix stored if it fits.
	if matrixBytes := 4 * int64(s.n) * int64(s.n+tileSize); kernel.IsExpensive(k) &&
		s.opt.Memory.Fits(neededBytes+matrixBytes) {
		neededBytes += matrixBytes
		s.exact, err = gram.New(ctx, k, x, lambda, &gram.Options{Storage: gram.Float64, Progress: s.opt.Progress})
	} else {
		s.exact, err = gram.NewExact(k, x, lambda, s.opt.Tol*lambda/20, nil) // ‖Ec‖₂ ≤ τ/20·‖y‖₂
	}
	if err != nil {
		return nil, err
	}
	// If ‖E‖₂ ≤ λ/10 for the error E of the factored matrix, each round of refinement reduces the error of the answer.
	placement, arith := kernel.NewPlacement(k, x).WithAccuracy(lambda / 10 / s.exact.Trace())
	s.panel, s.arith = placement.Panel, arith
	if s.opt.Precision == Float64 {
		s.factor = &factorOf[float64]{n: s.n, t: s.t, tile: kernel.Tile64, potrf: accel.Dpotrf}
	} else {
		s.factor = &factorOf[float32]{n: s.n, t: s.t, tile: kernel.Tile32, potrf: accel.Spotrf}
	}
	s.res = &Result{
		X: mat.NewDense(s.n, s.t, nil), Precision: s.opt.Precision, Tol: s.opt.Tol, Bytes: neededBytes,
		KError: s.exact.Choice().Error,
	}
	return s, nil
}

// checkMemory returns an error if the needed bytes exceed the memory budget.
func (s *state) checkMemory(neededBytes int64) error {
	advice := "take an iterative solver, or allow more by --memory"
	if singleBytes := MemoryNeeded(Float32Refined, s.n, s.t); s.opt.Memory.Fits(singleBytes) {
		advice = fmt.Sprintf("float32-refined (%s) fits, or allow more by --memory", accel.FormatBytes(singleBytes))
	}
	return s.opt.Memory.Check(neededBytes, fmt.Sprintf("direct: the Cholesky factor with %d points in %v", s.n,
		s.opt.Precision), advice)
}

// computeResidual sets R = Y − (K+λI)C and records the relative norms of its columns.
func (s *state) computeResidual(ctx context.Context, r *mat.Dense) error {
	relRes, rounding, err := pcg.TrueResidual(ctx, r, s.exact, s.y, s.res.X) // R = Y − (K+λI)C
	if err != nil {
		return err
	}
	s.res.TrueRelRes, s.res.Rounding = relRes, rounding
	s.res.History = append(s.res.History, relRes)
	return nil
}

// checkDone sets the status and returns true if the residual, with the bound of its rounding error, meets the
// tolerance, if the last round did not halve it, or if it is NaN. Otherwise it returns false.
func (s *state) checkDone() bool {
	history := s.res.History
	worst, converged := slices.Max(history[len(history)-1]), true
	stalled := len(history) > 1 && !(worst < slices.Max(history[len(history)-2])/2)
	for j, relRes := range s.res.TrueRelRes {
		converged = converged && relRes+s.res.Rounding[j] <= s.opt.Tol
	}
	switch {
	case converged:
		s.res.Status = pcg.Converged
	case worst <= s.opt.Tol && stalled:
		s.res.Status = pcg.Inaccurate // the rounding error bound is too large to prove convergence
	case stalled || math.IsNaN(worst):
		s.res.Status = pcg.Stagnated
	default:
		return false
	}
	return true
}

// notDefiniteError explains why the factorization failed, and suggests what to change.
func (s *state) notDefiniteError() error {
	roundoff, advice := 0x1p-53, "a larger λ"
	if s.opt.Precision == Float32Refined {
		roundoff, advice = 0x1p-24, "float64, or a larger λ"
	}
	largest := max(0, slices.Max(s.exact.Diag()))
	return fmt.Errorf("direct: K+λI of %d points is not positive definite in %v at λ = %g (pivot %d): take %s (λ ≥ "+
		"n·u·max k(x,x) = %.2g is enough if the kernel %v is positive semidefinite)",
		s.n, s.opt.Precision, s.lambda, s.factor.badPivot(), advice, float64(s.n)*roundoff*largest, s.k)
}
