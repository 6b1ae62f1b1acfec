package lanczos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
)

const (
	rowBlock     = 2048    // number of rows of a task, and of a partial sum
	unitRoundoff = 0x1p-53 // unit roundoff of float64
	tailExponent = 30      // a correct draw of N(0, M) is rejected with probability at most 2e^−30 ≈ 2·10⁻¹³
)

// ErrStop is returned by Options.Monitor to end the processes without an error.
var ErrStop = errors.New("lanczos: stopped by Monitor")

// Run runs up to o.Steps steps of the Lanczos process with A from a start uniform on the sphere. It returns an error if
// the context ends (with the context's error), if A or o.Monitor returns an error, or if a number is not finite. In
// these cases the Result contains the completed steps, and is nil if there were none. Run panics for invalid options.
func Run(ctx context.Context, a Operator, o *Options) (*Result, error) {
	w := mat.NewDense(a.Dim(), 1, nil)
	cmp.Or(o, &Options{}).Start.Normals(w.RawMatrix().Data, 0)
	return singleResult(RunFrom(ctx, a, w, o))
}

// RunPencil is like Run for the pencil (A, M), and bounds the spectrum of M⁻¹A. It also returns an error if M is not
// positive definite. It panics if the orders differ.
func RunPencil(ctx context.Context, a Operator, m Metric, o *Options) (*Result, error) {
	return singleResult(RunMany(ctx, a, singleMetric{m}, 1, o))
}

// singleResult returns the result and the error of a run with a single process.
func singleResult(res []*Result, err error) (*Result, error) {
	r := res[0]
	if err == nil {
		err = r.Err
	}
	if r != nil && r.Steps == 0 {
		r = nil
	}
	return r, err
}

// RunMany is like RunPencil for several pencils (A, M_c), c = 0, …, count-1, that share products: one product of A with
// a block of vectors, and one call of m, serve all processes that have not converged. If M_c is not positive definite,
// or a number is not finite, only process c ends, and Result.Err contains the reason. If the run is interrupted, the
// results contain the completed steps, and are nil if there were none. Memory: 16nk·count bytes for k steps.
func RunMany(ctx context.Context, a Operator, m Metrics, count int, o *Options) ([]*Result, error) {
	if a.Dim() != m.Dim() || count < 1 {
		panic(fmt.Sprintf("lanczos: A of order %d with %d M of order %d", a.Dim(), count, m.Dim()))
	}
	w := mat.NewDense(a.Dim(), count, nil)
	if err := m.NormalColumnsTo(ctx, w, cmp.Or(o, &Options{}).Start); err != nil {
		return make([]*Result, count), err
	}
	return runAll(ctx, a, m, w, o)
}

// RunFrom is like Run with the columns of w as start vectors, and shares products as RunMany does. The intervals are
// valid if the starts are uniform on the sphere. Memory: 8nk bytes for each column and k steps.
func RunFrom(ctx context.Context, a Operator, w *mat.Dense, o *Options) ([]*Result, error) {
	return runAll(ctx, a, nil, w, o)
}

// singleMetric is a single metric as Metrics.
type singleMetric struct{ Metric }

// SolveColumnsTo implements Metrics.
func (m singleMetric) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, _ []int) error {
	return m.SolveTo(ctx, dst, r)
}

// NormalColumnsTo implements Metrics.
func (m singleMetric) NormalColumnsTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error {
	return m.NormalTo(ctx, dst, stream)
}

// process is the state of one Lanczos process.
type process struct {
	opt      *Options
	n        int
	identity bool // M = I
	res      *Result

	r, z              [][]float64 // r_j and z_j = M⁻¹r_j; the same vectors if M = I
	w, y              []float64   // the projected Az_j, and M⁻¹w
	h                 []float64   // projection coefficients z_iᵀw
	partialSums       []float64   // partial sums of dots
	alpha             float64     // α_j of the current step
	squaredDefect     float64     // sum of squares of the products that would be zero in exact arithmetic
	confirmedNegative bool        // a Rayleigh quotient confirms that the pencil has a negative eigenvalue
	refuted           bool        // a Rayleigh quotient refutes a negative Ritz value
	operatorNorm      float64     // largest ‖Az_j‖₂/‖z_j‖₂, a lower bound of ‖A‖₂
}

// group is the state of several processes that share products.
type group struct {
	a         Operator
	m         Metrics // nil means M = I
	opt       Options
	processes []*process
	active    []int // indices of the processes that have not ended
	startTime time.Time
}

// runAll runs processes from the columns of w. A nil m means M = I.
func runAll(ctx context.Context, a Operator, m Metrics, w *mat.Dense, o *Options) ([]*Result, error) {
	n, count := w.Dims()
	g := &group{a: a, m: m, opt: o.withDefaults(n), startTime: time.Now()}
	for c := range count {
		g.active = append(g.active, c)
		g.processes = append(g.processes, &process{
			opt: &g.opt, n: n, identity: m == nil, res: &Result{N: n, confidence: g.opt.Confidence},
			w: mat.Col(nil, c, w), y: make([]float64, n),
			h: make([]float64, g.opt.Steps), partialSums: make([]float64, (n+rowBlock-1)/rowBlock*g.opt.Steps),
		})
	}
	err := g.startVectors(ctx)
	for err == nil && len(g.active) > 0 {
		err = g.step(ctx)
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	results := make([]*Result, count)
	for c, p := range g.processes {
		if p.res.Steps > 0 || p.res.Err != nil {
			results[c] = p.res
		}
	}
	return results, err
}

// gather returns the given vectors of the active processes as the columns of a matrix.
func (g *group) gather(vector func(p *process) []float64) *mat.Dense {
	k := len(g.active)
	if k == 1 {
		return mat.NewDense(g.a.Dim(), 1, vector(g.processes[g.active[0]]))
	}
	x := mat.NewDense(g.a.Dim(), k, nil)
	for j, c := range g.active {
		x.SetCol(j, vector(g.processes[c]))
	}
	return x
}

// scatter copies the columns of x to the given vectors of the active processes.
func (g *group) scatter(x *mat.Dense, vector func(p *process) []float64) {
	for j, c := range g.active {
		mat.Col(vector(g.processes[c]), j, x)
	}
}

// startVectors computes r₁ and z₁, and ends the processes whose start is not valid: zero, not finite, or of a norm that
// a draw of N(0, M) has with a probability of at most 2e^−tailExponent.
func (g *group) startVectors(ctx context.Context) error {
	norms, err := g.norms(ctx)
	if err != nil {
		return err
	}
	active := g.active[:0:0]
	for j, c := range g.active {
		p := g.processes[c]
		squaredNorm, n := norms[j]*norms[j], float64(p.n)
		switch deviation := 2 * math.Sqrt(tailExponent*n); {
		case p.res.Err != nil:
		case squaredNorm == 0:
			p.res.Err = errors.New("lanczos: the start vector is zero")
		// Laurent and Massart 2000.
		case g.m != nil && (squaredNorm > n+deviation+2*tailExponent || squaredNorm < n-deviation):
			p.res.Err = fmt.Errorf("lanczos: xᵀM⁻¹x = %.3g for a draw x of N(0, M), n = %d: another covariance, or "+
				"an inaccurate M⁻¹", squaredNorm, p.n)
		}
		if p.res.Err == nil {
			p.appendVectors(norms[j])
			active = append(active, c)
		}
	}
	g.active = active
	return nil
}

// norms sets y = M⁻¹w and returns √(wᵀy) for all active processes. It sets Err of those for which it is not a number.
func (g *group) norms(ctx context.Context) ([]float64, error) {
	norms := make([]float64, len(g.active))
	if g.m != nil {
		y := mat.NewDense(g.a.Dim(), len(g.active), nil)
		w := g.gather(func(p *process) []float64 { return p.w })
		if err := g.m.SolveColumnsTo(ctx, y, w, g.active); err != nil {
			return nil, err
		}
		g.scatter(y, func(p *process) []float64 { return p.y })
	}
	for j, c := range g.active {
		var err error
		if norms[j], err = g.processes[c].norm(ctx); err != nil {
			return nil, err
		}
	}
	return norms, nil
}

// step runs one step of all active processes, and removes those that have ended.
func (g *group) step(ctx context.Context) error {
	w := mat.NewDense(g.a.Dim(), len(g.active), nil)
	if err := g.a.MulTo(ctx, w, g.gather((*process).lastVector)); err != nil { // w = Az_j
		return err
	}
	g.scatter(w, func(p *process) []float64 { return p.w })
	for _, c := range g.active {
		p := g.processes[c]
		p.operatorNorm = max(p.operatorNorm, floats.Norm(p.w, 2)/floats.Norm(p.lastVector(), 2))
		if err := p.orthogonalize(ctx); err != nil {
			return err
		}
	}
	betas, err := g.norms(ctx) // β_j = √(wᵀM⁻¹w)
	if err != nil {
		return err
	}
	active := g.active[:0:0]
	for j, c := range g.active {
		p := g.processes[c]
		if p.res.Err != nil {
			p.r, p.z = nil, nil
			continue
		}
		p.extendT(betas[j])
		p.res.Seconds = time.Since(g.startTime).Seconds()
		p.res.updateIntervals(&g.opt)
		if g.m != nil && p.res.Indefinite() && !p.confirmedNegative {
			if err := g.checkNegative(ctx, p); err != nil {
				return err
			}
		}
		if g.opt.Monitor != nil {
			if err := g.opt.Monitor(p.res); err != nil {
				return err
			}
		}
		if k := p.res.Steps; k < g.opt.Steps && !p.res.Converged && p.res.Beta[k-1] > 0 && !p.refuted &&
			(g.opt.Done == nil || !g.opt.Done(c, p.res)) {
			p.appendVectors(p.res.Beta[k-1]) // r_{j+1} = w/β_j, z_{j+1} = M⁻¹w/β_j
			active = append(active, c)
		} else {
			p.r, p.z = nil, nil
		}
	}
	g.active = active
	return nil
}

// checkNegative compares the smallest Ritz value θ < 0 of a pencil with the Rayleigh quotient ρ = xᵀAx/xᵀMx of its
// Ritz vector x = Σ_j s_j z_j, where Mx = Σ_j s_j r_j. An inaccurate M⁻¹ can make θ negative although A is positive
// definite. If ρ is not negative beyond Slack and the rounding error of xᵀAx, θ is refuted and Slack is increased
// by the difference: T no longer belongs to the pencil.
func (g *group) checkNegative(ctx context.Context, p *process) error {
	r := p.res
	x, mx, ax := make([]float64, p.n), make([]float64, p.n), make([]float64, p.n)
	_, s := eigenT(r.Alpha, r.Beta)
	if s == nil {
		return errors.New("lanczos: the eigenvalues of a tridiagonal matrix did not converge")
	}
	for j := range r.Steps {
		floats.AddScaled(x, s.At(j, 0), p.z[j])
		floats.AddScaled(mx, s.At(j, 0), p.r[j])
	}
	if err := g.a.MulTo(ctx, mat.NewDense(p.n, 1, ax), mat.NewDense(p.n, 1, x)); err != nil {
		return err
	}
	squaredNorm := math.Abs(floats.Dot(x, mx)) // xᵀMx
	rho := floats.Dot(x, ax) / squaredNorm
	rounding := float64(p.n) * unitRoundoff * p.operatorNorm * floats.Dot(x, x) / squaredNorm
	p.confirmedNegative = rho+r.Slack+rounding < 0
	if p.refuted = !p.confirmedNegative; p.refuted {
		r.Slack += max(0, rho-r.Ritz[0]) + rounding
		r.updateIntervals(&g.opt)
	}
	return nil
}

// lastVector returns z_j.
func (p *process) lastVector() []float64 { return p.z[p.res.Steps] }

// largestEntry returns the largest absolute value of the entries of T.
func largestEntry(alpha, beta []float64) (largest float64) {
	for j, alphaJ := range alpha {
		largest = max(largest, math.Abs(alphaJ), beta[j])
	}
	return largest
}

// norm returns √(wᵀy), with y = w if M = I. It sets Err if wᵀy is negative or not finite.
func (p *process) norm(ctx context.Context) (float64, error) {
	y := p.y
	if p.identity {
		y = p.w
	}
	if err := p.dots(ctx, [][]float64{y}); err != nil {
		return 0, err
	}
	squaredNorm := p.h[0]
	switch {
	case math.IsNaN(squaredNorm) || math.IsInf(squaredNorm, 0):
		p.res.Err = fmt.Errorf("lanczos: a number is not finite at step %d", p.res.Steps+1)
	case squaredNorm < 0:
		p.res.Err = fmt.Errorf("lanczos: wᵀM⁻¹w = %.3g at step %d: M is not positive definite", squaredNorm,
			p.res.Steps+1)
	}
	return math.Sqrt(squaredNorm), nil
}

// appendVectors appends w/norm to the r_j and y/norm to the z_j.
func (p *process) appendVectors(norm float64) {
	divideByNorm := func(x []float64) []float64 {
		quotient := make([]float64, p.n)
		for i, entry := range x {
			quotient[i] = entry / norm
		}
		return quotient
	}
	r := divideByNorm(p.w)
	p.r = append(p.r, r)
	if p.identity {
		p.z = append(p.z, r)
		return
	}
	p.z = append(p.z, divideByNorm(p.y))
}

// orthogonalize removes from w = Az_j its components in the space of the r_i, and sets α_j.
func (p *process) orthogonalize(ctx context.Context) error {
	j := p.res.Steps // counted from 0
	p.alpha = 0
	for pass := range 2 { // the second pass removes rounding errors of the first
		if err := p.dots(ctx, p.z); err != nil { // h_i = z_iᵀw
			return err
		}
		if pass == 0 {
			p.squaredDefect += p.squaredError(j)
		}
		p.alpha += p.h[j]                       // α_j = z_jᵀAz_j
		if err := p.subtract(ctx); err != nil { // w ← w − Σ_i h_i r_i
			return err
		}
	}
	return nil
}

// extendT appends α_j and β_j to T, and updates Slack. β_j is 0 after n steps, and if it is at the level of rounding.
func (p *process) extendT(beta float64) {
	r := p.res
	if r.Steps+1 == p.n || beta <= 8*unitRoundoff*max(largestEntry(r.Alpha, r.Beta), math.Abs(p.alpha)) {
		beta = 0
	}
	r.Alpha, r.Beta, r.Steps = append(r.Alpha, p.alpha), append(r.Beta, beta), r.Steps+1
	// The error E of the k products, n×k, has columns of norm √(defect/k) in unrelated directions, so ‖E‖₂ is about
	// √(defect/k)·(1+√(k/n)). Slack is twice that, and more if the estimate of the defect is based on few numbers.
	k := float64(r.Steps)
	r.Slack = 2*sampleFactor(r.Steps)*math.Sqrt(p.squaredDefect/k)*(1+math.Sqrt(k/float64(p.n))) +
		4*unitRoundoff*k*largestEntry(r.Alpha, r.Beta)
}

// sampleFactor returns √(ν/χ²), where χ² is the 1 % quantile with ν = k(k−1)/2 degrees of freedom. With high
// probability it bounds the ratio of the true norm of the errors to the norm estimated from the ν numbers that k steps
// provide.
func sampleFactor(k int) float64 {
	if k < 2 {
		return 1 // no number is available
	}
	nu := float64(k*(k-1)) / 2
	return math.Sqrt(nu / distuv.ChiSquared{K: nu}.Quantile(0.01))
}

// squaredError estimates the squared norm of the error of Az_j. The component of the error in the space of the z_i,
// i < j, follows from z_iᵀAz_j, which should be β_{j−1} for i = j−1 and zero for smaller i. It is multiplied by n/j to
// account for the unobserved components.
func (p *process) squaredError(j int) float64 {
	if j == 0 {
		return 0
	}
	betaError, smaller := p.h[j-1]-p.res.Beta[j-1], p.h[:j-1]
	return (betaError*betaError + floats.Dot(smaller, smaller)) * float64(p.n) / float64(j)
}

// dots sets h_i = x_iᵀw for all vectors of x. Partial sums of rowBlock rows are added in row order, so the bits do not
// depend on the number of threads.
func (p *process) dots(ctx context.Context, x [][]float64) error {
	steps := p.opt.Steps
	err := accel.ForEachBlock(ctx, p.n, rowBlock, func(_, i0, i1 int) {
		sums := p.partialSums[i0/rowBlock*steps:]
		for i, xi := range x {
			sums[i] = floats.Dot(xi[i0:i1], p.w[i0:i1])
		}
	})
	h := p.h[:len(x)]
	clear(h)
	for sums := range slices.Chunk(p.partialSums, steps) {
		floats.Add(h, sums[:len(h)])
	}
	return err
}

// subtract sets w ← w − Σ_i h_i r_i.
func (p *process) subtract(ctx context.Context) error {
	return accel.ForEachBlock(ctx, p.n, rowBlock, func(_, i0, i1 int) {
		for i, r := range p.r {
			floats.AddScaled(p.w[i0:i1], -p.h[i], r[i0:i1])
		}
	})
}
