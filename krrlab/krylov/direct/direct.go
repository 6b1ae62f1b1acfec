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

// Precision of the factorization.
type Precision int

const (
	Float64        Precision = iota // 8n² bytes
	Float32Refined                  // 4n² bytes; refined by float64 residuals
)

func (p Precision) String() string { return enum.Name([]string{"float64", "float32-refined"}, p) }

// Options of Solve. Zero values, and nil, mean the defaults.
type Options struct {
	// Precision of the factorization. Default Float64.
	Precision Precision
	// Tol asked of ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ for every column, rounding included. Default 1e-8.
	Tol float64
	// Memory is the number of bytes Solve may take, 0 for no limit.
	Memory int64
	// Progress, if not nil, is called as tiles of K are formed, done rising to total.
	Progress func(done, total int)
}

// Result is the answer of Solve.
type Result struct {
	X          *mat.Dense  // C, n×t
	Status     pcg.Status  // Converged, Inaccurate or Stagnated
	Precision  Precision   // of the factor
	Tol        float64     // asked
	TrueRelRes []float64   // ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, K in float64; 0 for y_j = 0
	Rounding   []float64   // certain bound of the error of TrueRelRes
	KError     float64     // certain bound of ‖E‖₂ of the K that TrueRelRes was taken with
	Rounds     int         // of refinement
	History    [][]float64 // TrueRelRes after each solve: Rounds+1 rows
	Bytes      int64       // of the factor and the n×t blocks
	Seconds    Seconds
}

// Seconds are those that Solve spent.
type Seconds struct {
	Kernel   float64 // forming K
	Factor   float64 // LLᵀ = K+λI
	Solve    float64 // triangular solves
	Residual float64 // true residuals
	Total    float64
}

// Add adds those of another solve.
func (s *Seconds) Add(o Seconds) {
	s.Kernel += o.Kernel
	s.Factor += o.Factor
	s.Solve += o.Solve
	s.Residual += o.Residual
	s.Total += o.Total
}

// MaxTrueRelRes returns the worst true residual, NaN if there is one.
func (r *Result) MaxTrueRelRes() float64 { return slices.Max(r.TrueRelRes) }

func (r *Result) String() string {
	n, t := r.X.Dims()
	return fmt.Sprintf("cholesky %v, n = %d, t = %d: %v, true residual %.3g (asked %.3g) after %s of refinement; "+
		"kernel %.3g s, factor %.3g s, solve %.3g s, residual %.3g s",
		r.Precision, n, t, r.Status, r.MaxTrueRelRes(), r.Tol, plural.Count(r.Rounds, "round"), r.Seconds.Kernel,
		r.Seconds.Factor, r.Seconds.Solve, r.Seconds.Residual)
}

// Need returns the bytes that Solve takes for n points and t right-hand sides: the n×n
// array and four n×t blocks.
func Need(p Precision, n, t int) int64 {
	entry := int64(8)
	if p == Float32Refined {
		entry = 4
	}
	return entry*int64(n)*int64(n) + 4*8*int64(n)*int64(t)
}

// Faster returns the precision that is likely to take less time: Float32Refined saves half of the n³/3 flops, and costs
// a second true residual, n²/2 entries in float64, which is less beyond 2,000 points (at 10 ns an entry and 100 GFLOP/s
// in float32, n > 1,500) if one round of refinement is enough. Up to 4,000 points that has to be sure, and that
// the factor is there; beyond, float32 saves memory, too.
func Faster(n int, largest, lambda, tol float64) Precision {
	// what a factor in float32 leaves of a residual: √(κn)·u, κ ≤ 1+n·max k(x,x)/λ, u = 2⁻²⁴
	left := 0x1p-24 * math.Sqrt(float64(n)*(1+float64(n)*largest/lambda))
	definite := lambda >= float64(n)*0x1p-24*largest // for certain, as K is semidefinite
	if n > 4000 || n > 2000 && left*left <= tol && definite {
		return Float32Refined
	}
	return Float64
}

// Solve solves (K+λI)C = Y, K_ij = k(x_i, x_j), Y n×t, by a dense Cholesky
// factorization; see the package doc. A nil o means the defaults. y and o are not
// changed. Work: n²d/2 multiply-adds and n²/2 kernel values for K, n³/3 for the factor,
// 2n²t for a solve, and n²d/2 with n²/2 kernel values for each true residual.
//
// It returns an error if k is not valid, λ is not positive, the data are not finite, the memory allowed is too little,
// K+λI is not positive definite in the precision asked, or ctx ends. Missing the tolerance, as of a y that is not
// finite, is a Status. It panics if y has not one row for each point, or an option is negative.
func Solve(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, o *Options) (*Result,
	error) {
	start := time.Now()
	d, err := newState(ctx, k, x, lambda, y, o)
	if err != nil {
		return nil, err
	}
	res := d.res
	at := start
	lap := func(sec *float64) { // adds the seconds since the last one
		now := time.Now()
		*sec += now.Sub(at).Seconds()
		at = now
	}
	if err := d.factor.form(ctx, d); err != nil {
		return nil, err
	}
	lap(&res.Seconds.Kernel)
	if !d.factor.cholesky() {
		return nil, d.notDefinite()
	}
	lap(&res.Seconds.Factor)
	r := mat.DenseCopyOf(y) // R = Y for C = 0
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d.factor.solve(r)   // Δ = (LLᵀ)⁻¹R
		res.X.Add(res.X, r) // C ← C + Δ
		lap(&res.Seconds.Solve)
		if err := d.residual(ctx, r); err != nil { // R = Y − (K+λI)C
			return nil, err
		}
		lap(&res.Seconds.Residual)
		if d.done() {
			break
		}
		res.Rounds++
	}
	res.Seconds.Total = time.Since(start).Seconds()
	return res, nil
}

// state is that of one Solve.
type state struct {
	k      kernel.Kernel
	p      points.Panel      // as the tiles of the factor have them
	arith  kernel.Arithmetic // of these
	y      *mat.Dense
	n, t   int
	lambda float64
	opt    Options
	exact  *gram.Matrix
	factor factor
	res    *Result
}

func newState(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, y *mat.Dense, o *Options) (*state,
	error) {
	d := &state{k: k, y: y, lambda: lambda}
	if o != nil {
		d.opt = *o
	}
	d.n, _ = x.Dims()
	_, d.t = y.Dims()
	if !(d.opt.Tol >= 0) || d.opt.Memory < 0 || d.opt.Precision < Float64 || d.opt.Precision > Float32Refined {
		panic(fmt.Sprintf("direct: tolerance %v, memory %d, precision %v", d.opt.Tol, d.opt.Memory, d.opt.Precision))
	}
	d.opt.Tol = cmp.Or(d.opt.Tol, 1e-8)
	if !(lambda > 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("direct: λ = %v, want a positive number", lambda)
	}
	if rows, _ := y.Dims(); rows != d.n {
		panic(fmt.Sprintf("direct: %d points, %d rows of targets", d.n, rows))
	}
	need, err := d.need()
	if err != nil {
		return nil, err
	}
	if once := 4 * int64(d.n) * int64(d.n+tileSize); kernel.Costly(k) &&
		(d.opt.Memory == 0 || need+once <= d.opt.Memory) {
		need += once
		d.exact, err = gram.New(ctx, k, x, lambda, &gram.Options{Storage: gram.Float64, Progress: d.opt.Progress})
	} else {
		d.exact, err = gram.NewExact(k, x, lambda, d.opt.Tol*lambda/20, nil) // ‖Ec‖₂ ≤ τ/20·‖y‖₂
	}
	if err != nil {
		return nil, err
	}
	// the factor's ‖E‖₂ ≤ λ/10: refinement contracts
	place, arith := kernel.NewPlacement(k, x).Accurate(k, lambda/10/d.exact.Trace())
	d.p, d.arith = place.Panel, arith
	if d.opt.Precision == Float64 {
		d.factor = &factorOf[float64]{n: d.n, t: d.t, tile: kernel.Tile64, potrf: accel.Dpotrf}
	} else {
		d.factor = &factorOf[float32]{n: d.n, t: d.t, tile: kernel.Tile32, potrf: accel.Spotrf}
	}
	d.res = &Result{
		X: mat.NewDense(d.n, d.t, nil), Precision: d.opt.Precision, Tol: d.opt.Tol, Bytes: need,
		KError: d.exact.Choice().Error,
	}
	return d, nil
}

// need returns the bytes that are needed, and an error if they are not allowed.
func (d *state) need() (int64, error) {
	need := Need(d.opt.Precision, d.n, d.t)
	if d.opt.Memory == 0 || need <= d.opt.Memory {
		return need, nil
	}
	hint := "take an iterative solver"
	if single := Need(Float32Refined, d.n, d.t); d.opt.Precision == Float64 && single <= d.opt.Memory {
		hint = fmt.Sprintf("float32-refined (%s) fits", accel.Bytes(single))
	}
	return need, fmt.Errorf("direct: the Cholesky factor with %d points in %v needs %s, %s is allowed; %s",
		d.n, d.opt.Precision, accel.Bytes(need), accel.Bytes(d.opt.Memory), hint)
}

// residual sets R = Y − (K+λI)C and records the relative norms of its columns.
func (d *state) residual(ctx context.Context, r *mat.Dense) error {
	rel, rounding, err := pcg.TrueResidual(ctx, r, d.exact, d.y, d.res.X) // R = Y − (K+λI)C
	if err != nil {
		return err
	}
	d.res.TrueRelRes, d.res.Rounding = rel, rounding
	d.res.History = append(d.res.History, rel)
	return nil
}

// done judges the last residual: met, or not worth another round as the last one did not halve it.
func (d *state) done() bool {
	h := d.res.History
	last, met := slices.Max(h[len(h)-1]), true
	slow := len(h) > 1 && !(last < slices.Max(h[len(h)-2])/2)
	for j, v := range d.res.TrueRelRes {
		met = met && v+d.res.Rounding[j] <= d.opt.Tol
	}
	switch {
	case met:
		d.res.Status = pcg.Converged
	case last <= d.opt.Tol && slow:
		d.res.Status = pcg.Inaccurate // rounding hides which side of the tolerance it is on
	case slow || math.IsNaN(last):
		d.res.Status = pcg.Stagnated
	default:
		return false
	}
	return true
}

// notDefinite says why the factorization failed and what to try.
func (d *state) notDefinite() error {
	unit, try := 0x1p-53, "a larger λ"
	if d.opt.Precision == Float32Refined {
		unit, try = 0x1p-24, "float64, or a larger λ"
	}
	top := max(0, slices.Max(d.exact.Diag()))
	return fmt.Errorf("direct: K+λI of %d points is not positive definite in %v at λ = %g (pivot %d): take %s (λ ≥ "+
		"n·u·max k(x,x) = %.2g is enough if the kernel %v is positive semidefinite)",
		d.n, d.opt.Precision, d.lambda, d.factor.badPivot(), try, float64(d.n)*unit*top, d.k)
}
