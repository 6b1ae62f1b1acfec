package leaveout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond"
)

// matrix is the symmetric positive semi-definite n×n matrix K. *gram.Matrix is one.
type matrix interface {
	Dim() int
	// Diag returns the n diagonal entries.
	Diag() []float64
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Path scores all λ from products with K alone. m is ZZᵀ+λ_pI in the eigen form with any λ_p: its eigenvectors
// give M_λ = ZZᵀ+λI for each λ. With m probes G of signs, (K+λI)X = [Y, G] is solved for all λ in one subspace
// that grows by a direction M_λ⁻¹r for each column and pass over K, r the residual of the λ that is worst off. With
//
//	diag(A⁻¹) = diag(M⁻¹) + E[g∘(A⁻¹−M⁻¹)g]
//
// C and estimates of diag(A⁻¹) make the error (see leverages). Scores are in the order of lambdas; on ranks
// all call it together and get the same. Work: at most n²(t+m) multiply-adds a pass, ns² at
// first, and 4ns(t+m) for each λ; memory: at most 24n bytes for each direction, of which there are some hundred.
//
// An interval has these parts: the probes, by the jackknife and Student's law, for labels with the points near
// their threshold, and its distance from estimates by other assumptions; the solves, by how much one more step
// with M changes the result; and Problem.KError, as if its effect were spread evenly over the points. Where the
// probes' noise is above a fifth of (A⁻¹)_ii, or points that are far from all others and from the landmarks would
// move the error out of it, it has only the ends that 1/(K_ii+λ) ≤ (A⁻¹)_ii and, where Problem.Below is known,
// (A⁻¹)_ii ≤ (M⁻¹)_ii prove: more columns of Z or more probes narrow it. Where Problem.KError is not below λ/2 it has
// none. It returns an error if the λ or options are bad, K+λI is not positive definite as stored, or ctx ends.
func Path(ctx context.Context, k matrix, m *precond.Woodbury, y *mat.Dense, lambdas []float64,
	o *Problem) ([]Score, error) {
	n := k.Dim()
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	opt := o.settled()
	if opt.Groups != nil {
		return nil, errors.New("leaveout: probes leave out single rows, or equal ones, and no groups: take dense " +
			"factors")
	}
	rows, err := opt.merge(y)
	if err != nil {
		return nil, err
	}
	if u := len(rows.first); u < n {
		if opt.Classes {
			return nil,
				fmt.Errorf("leaveout: %d of %d rows repeat others, which probes leave out together of regression only",
					n-u, n)
		}
		k, n, opt.Below = mergedMatrix{k, rows}, u, 0
	}
	if m.Dim() != n {
		panic(fmt.Sprintf("leaveout: K of order %d, preconditioner of order %d", n, m.Dim()))
	}
	p := &run{k: k, m: m, rows: rows, lambdas: lambdas, o: &opt}
	sides := rows.sides()
	_, p.t = sides.Dims()
	p.b = new(mat.Dense)
	p.b.Augment(sides, estimate.Signs(n, 0, opt.Probes, opt.Stream))
	start := time.Now()
	if err := p.diagonals(ctx); err != nil {
		return nil, err
	}
	if err := p.solve(ctx); err != nil {
		return nil, err
	}
	scores := make([]Score, len(lambdas))
	for j := range lambdas {
		s, err := p.score(ctx, j)
		if err != nil {
			return nil, err
		}
		s.Error.Seconds = time.Since(start).Seconds() / float64(len(lambdas))
		scores[j] = s
	}
	return scores, nil
}

// run is the state of a Path.
type run struct {
	k       matrix
	m       *precond.Woodbury
	rows    *merged
	b       *mat.Dense // B = [Ỹ, b̃, G]
	t       int        // of [Ỹ, b̃]
	lambdas []float64
	o       *Problem
	s       *space
	hat     *mat.Dense // diag(ZZᵀ(ZZᵀ+λ_jI)⁻¹), n×len(lambdas)
	left    []float64  // diag(K−ZZᵀ)
}

// diagonals sets hat and left from blocks of columns of ZV: its entries squared, weighted by 1/(σ²+λ_j), add up to
// the diagonal of ZZᵀ(ZZᵀ+λ_jI)⁻¹.
func (p *run) diagonals(ctx context.Context) error {
	const block = 64
	n, s := p.k.Dim(), p.m.Features()
	p.hat, p.left = mat.NewDense(n, len(p.lambdas), nil), p.k.Diag()
	sigma2 := p.m.Eigenvalues()
	for j0 := 0; j0 < s; j0 += block {
		width := min(block, s-j0)
		unit, zv := mat.NewDense(s, width, nil), mat.NewDense(n, width, nil)
		weights := mat.NewDense(width, len(p.lambdas), nil)
		for c := range width {
			unit.Set(j0+c, c, 1)
			for j, l := range p.lambdas {
				weights.Set(c, j, 1/(sigma2[j0+c]+l))
			}
		}
		if err := p.m.ZVMulTo(ctx, zv, unit); err != nil {
			return err
		}
		err := accel.ForEach(ctx, (n+panelRows-1)/panelRows, func(_, q int) {
			for i := q * panelRows; i < min((q+1)*panelRows, n); i++ {
				row := zv.RawRowView(i)
				for c, v := range row {
					row[c] = v * v
					p.left[i] -= v * v
				}
			}
		})
		if err == nil {
			err = mul(ctx, 1, zv, weights, p.hat)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// solve lets the subspace grow until all columns have converged.
func (p *run) solve(ctx context.Context) error {
	f, err := p.m.Family(p.lambdas)
	if err != nil {
		return err
	}
	p.s = newSpace(p.k, p.b, p.lambdas)
	n, q := p.b.Dims()
	tol := make([]float64, q)
	for c := range tol {
		tol[c] = solveTol
		if c >= p.t {
			tol[c] *= probeTol
		}
	}
	for pass := range p.o.MaxIter {
		cols, js := p.s.worst(tol)
		if len(cols) == 0 {
			break
		}
		r, err := p.s.residuals(ctx, cols, js)
		if err != nil {
			return err
		}
		z := mat.NewDense(n, len(cols), nil)
		if err := f.SolveColumnsTo(ctx, z, r, js); err != nil {
			return err
		}
		if pass > 0 {
			for i, c := range cols {
				p.s.observe(js[i], c, dot(r, r, i, i), dot(r, z, i, i), tol[c])
			}
		}
		u, err := p.s.orthonormalize(ctx, z)
		if err != nil {
			return err
		}
		if u == nil {
			break
		}
		if err := p.s.extend(ctx, u); err != nil {
			return err
		}
		open := 0
		for _, d := range p.s.done {
			if !d {
				open++
			}
		}
		p.o.Progress(len(p.s.done)-open, len(p.s.done))
	}
	return nil
}

const (
	solveTol = 0.003 // of C in the norm of K+λI, relative to C's
	probeTol = 8     // of the probes' columns over that: their error is averaged out
)

// solution returns X_j = VW_j, and X_j + M⁻¹(B−(K+λ_jI)X_j), a step further.
func (p *run) solution(ctx context.Context, j int) (x, next *mat.Dense, err error) {
	n, q := p.b.Dims()
	cols, js := make([]int, q), make([]int, q)
	for c := range cols {
		cols[c], js[c] = c, j
	}
	x, next = mat.NewDense(n, q, nil), mat.NewDense(n, q, nil)
	r, err := p.s.residuals(ctx, cols, js)
	if err == nil {
		err = mul(ctx, 1, p.s.v, p.s.w[j], x)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := p.m.WithLambda(p.lambdas[j])
	if err == nil {
		err = m.SolveTo(ctx, next, r)
	}
	if err == nil {
		next.Add(next, x)
	}
	return x, next, err
}

func (p *run) score(ctx context.Context, j int) (Score, error) {
	n, q := p.b.Dims()
	lambda := p.lambdas[j]
	x, next, err := p.solution(ctx, j)
	if err != nil {
		return Score{}, err
	}
	g := mat.DenseCopyOf(p.b.Slice(0, n, p.t, q))
	mg := mat.NewDense(n, q-p.t, nil)
	m, err := p.m.WithLambda(lambda)
	if err == nil {
		err = m.SolveTo(ctx, mg, g)
	}
	if err != nil {
		return Score{}, err
	}
	before, after := p.estimate(j, x, g, mg), p.estimate(j, next, g, mg)
	return after.score(before), ctx.Err()
}

// estimated is what a solution X says about λ.
type estimated struct {
	p      *run
	lambda float64
	l      *leverages
	d      *law
	c, r   *mat.Dense // C, and R = λ times the numerators of Ẽ
	free   float64    // degrees of freedom of A⁻¹
	tau    []float64  // thresholds, of classes
}

// estimate takes X_j = Ã⁻¹B.
func (p *run) estimate(j int, x, g, mg *mat.Dense) *estimated {
	n, q := x.Dims()
	lambda := p.lambdas[j]
	num, _, c, used := p.rows.shift(x)
	e := &estimated{p: p, lambda: lambda, c: c, r: new(mat.Dense), free: -used}
	e.r.Scale(lambda, num)
	l := &leverages{rows: p.rows, top: make([]float64, n), v: make([]float64, n), least: make([]float64, n),
		most: make([]float64, n), q: mat.NewDense(n, q-p.t, nil)}
	diag := p.k.Diag()
	for i := range n {
		l.top[i] = max(1-p.hat.At(i, j), lambda/(diag[i]+lambda))
		l.v[i] = max(0, p.left[i]) * l.top[i] / lambda
		l.least[i], l.most[i] = lambda/(diag[i]+lambda), 1
		if p.o.Below > 0 && p.o.Below < lambda {
			l.most[i] = min(1, l.top[i]/(1-p.o.Below/lambda))
		}
		for k := range q - p.t {
			v := l.top[i] + lambda*g.At(i, k)*(x.At(i, p.t+k)-mg.At(i, k))
			l.q.Set(i, k, v)
			e.free += v / lambda / float64(q-p.t)
		}
	}
	if p.o.Classes {
		e.tau = thresholds(p.rows.y, e.r)
	}
	l.u = make([]float64, n)
	for i := range n {
		if e.tau != nil {
			l.u[i] = e.tau[i] / l.top[i]
			continue
		}
		for _, v := range e.r.RawRowView(i) {
			l.u[i] += v * v / (l.top[i] * l.top[i])
		}
	}
	l.sortPoints()
	e.l, e.d = l, l.given(-1)
	return e
}

// value returns the error that a law stands for.
func (e *estimated) value(d *law) (v float64) {
	if e.tau != nil {
		v, _ = e.l.share(d, e.tau, 1)
		return v
	}
	return d.square(e.r)
}

// score makes the score, of which before is what the solution a step earlier says.
func (e *estimated) score(before *estimated) Score {
	n, t := e.r.Dims()
	_, m := e.l.q.Dims()
	o, rows := e.p.o, e.p.rows
	s := Score{Lambda: e.lambda, GCV: rows.gcv(e.c, e.free), S: float64(n) - e.lambda*e.free}
	without, mean := make([]float64, m), 0.0
	for k := range m {
		without[k] = e.value(e.l.given(k))
		mean += without[k] / float64(m)
	}
	v := e.value(e.d)
	var jack float64 // over v², as squares of squared targets may be out of range
	for _, w := range without {
		if v > 0 {
			jack += (w - mean) / v * ((w - mean) / v) * float64(m-1) / float64(m)
		}
	}
	slack := math.Abs(v - before.value(before.d)) // of the solves
	share := 2 * o.KError / (e.lambda - o.KError)
	half := estimate.Student(o.Confidence, float64(m-1)) * math.Sqrt(jack) * v
	bias := 0.0
	if e.tau != nil {
		_, deviation := e.l.share(e.d, e.tau, 1)
		half = math.Hypot(half, distuv.UnitNormal.Quantile(0.5+o.Confidence/2)*deviation)
		up, _ := e.l.share(e.d, e.tau, 1+share)
		down, _ := e.l.share(e.d, e.tau, max(0, 1-share))
		slack += up - down
		bias = math.Abs(v-e.l.extrapolated(e.tau)) + 0.5/float64(n)
	} else {
		slack += v * ((1+share)*(1+share) - 1)
		bias = max(math.Abs(v-over(e.r, e.d.model)), math.Abs(v-e.l.unbiased(e.d, e.r)))
	}
	half += bias + slack
	s.Error = estimate.Interval{Value: v, Lo: v - half, Hi: v + half, Confidence: o.Confidence, Method: "probes"}
	e.limit(&s.Error, slack)
	if i := &s.Error; e.tau == nil {
		nt := float64(n * t)
		i.Value, i.Lo, i.Hi = rows.square(nt*i.Value), rows.square(nt*i.Lo), rows.square(nt*i.Hi)
	}
	if o.Residuals {
		var left mat.Dense
		left.Apply(func(i, _ int, v float64) float64 { return v * (1 + e.d.cv2[i]) / e.d.mean[i] }, e.r)
		s.Residuals = rows.residuals(&left)
	}
	return s
}

// alone returns the error if points whose own estimates deny the law have what these say.
func (e *estimated) alone() float64 {
	d := *e.d
	d.mean = d.own
	return e.value(&d)
}

// limit widens the interval to what is certain of p_i, but for the slack of C, where the probes say little.
func (e *estimated) limit(v *estimate.Interval, slack float64) {
	lo, hi := over(e.r, e.l.most), math.Inf(1)
	if e.tau != nil {
		lo, hi = 0, 0
		for i, t := range e.tau {
			if t > e.l.most[i] {
				lo += 1 / float64(len(e.tau))
			}
			if t > e.l.least[i] {
				hi += 1 / float64(len(e.tau))
			}
		}
	}
	if known := 2*e.p.o.KError < e.lambda; !known { // nor is C
		v.Lo, v.Hi, v.Method = 0, math.Inf(1), "bounds"
	} else if other := e.alone(); e.d.noise > maxNoise || other < v.Lo || other > v.Hi {
		v.Lo, v.Hi, v.Method = lo-slack, hi+slack, "bounds"
	}
	v.Lo = min(v.Value, max(v.Lo, 0))
	v.Hi = max(v.Value, v.Hi)
	if e.tau != nil {
		v.Hi = min(v.Hi, 1)
	}
}
