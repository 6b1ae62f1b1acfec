package plan

import (
	"cmp"
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Pilot is what m of the points, drawn at random, say of the problem.
type Pilot struct {
	M       int     `json:"m"`
	Seconds float64 `json:"seconds"` // it took
	// Look is the seconds of deciding how K is kept, which a candidate's do not include; 0 where a direct solver is
	// chosen before.
	Look float64 `json:"look_seconds"`
	Entries

	task    *Task
	k       *gram.Unformed
	choice  *gram.Choice  // how K is kept where memory does not matter; nil before look
	sub     points.Points // those m
	largest float64       // k(x, x)
	mean    float64       // of k(x, x)
	rms     float64       // of k(x, z)
	// the largest sum of |k(x, z)| of a row that was looked at: about ‖K‖₂ where K is local, more elsewhere
	norm float64
	c    float64   // the largest ‖c_j‖₂/‖y_j‖₂ of those m points alone
	e    []float64 // e[j] = E‖residual of a point by j others‖², the squared pivots of K in random order
	// neighbors and damping are k and ω of a sparse inverse without pivots: by its rule, once K has been looked at.
	neighbors int
	damping   float64
}

// sumRows are the rows of K whose sums are taken.
const sumRows = 16

// newPilot times entries of K, sums some of its rows, and factors K of some points.
func newPilot(ctx context.Context, t *Task) (*Pilot, error) {
	start := time.Now()
	unformed, err := gram.NewUnformed(t.Kernel, t.X, t.Lambda, &gram.Options{
		Storage: t.Storage, Tiles: t.Tiles, Prefer: cmp.Or(t.Prefer, 20*t.Tol*t.Lambda), Drop: t.Drop, Seed: t.Seed,
	})
	if err != nil {
		return nil, err
	}
	p := &Pilot{task: t, k: unformed, neighbors: min(usualNeighbors, t.n-1), M: min(t.n, max(t.n/8, 256), 1024)}
	rows := rng.New(t.Seed).Sub("pilot").Perm(t.n)[:p.M]
	p.sub = points.Gather(t.X, rows)
	exact, err := gram.NewExact(t.Kernel, p.sub, t.Lambda, t.Tol*t.Lambda/20, nil)
	k := mat.NewDense(p.M, p.M, nil)
	if err == nil {
		err = exact.DenseTo(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	if p.Exact, err = p.entry(ctx, exact); err != nil {
		return nil, err
	}
	arith, centered := unformed.First(cmp.Or(t.Storage, gram.Float32))
	if err = p.stored(ctx, arith, centered); err != nil {
		return nil, err
	}
	if err = p.sums(ctx, rows[:min(sumRows, p.M)]); err != nil {
		return nil, err
	}
	p.factor(k, rows)
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// entry returns the seconds of an entry of K of the pilot's points, by products for which it is formed.
func (p *Pilot) entry(ctx context.Context, k *gram.Matrix) (seconds float64, err error) {
	x, y := mat.NewDense(p.M, 1, nil), mat.NewDense(p.M, 1, nil)
	rate := accel.Rate(ctx, time.Millisecond, float64(p.M)*float64(p.M)/2,
		func() { err = cmp.Or(err, k.MulTo(ctx, y, x)) })
	return 1 / rate, cmp.Or(err, ctx.Err())
}

// stored times entries as they are to be stored.
func (p *Pilot) stored(ctx context.Context, arith kernel.Arithmetic, centered bool) error {
	c := gram.Choice{N: p.M, Storage: gram.Recompute, Arithmetic: arith, Centred: centered, Bytes: 1}
	k, err := gram.New(ctx, p.task.Kernel, p.sub, p.task.Lambda, &gram.Options{Storage: gram.Recompute, Chosen: &c})
	if err == nil {
		p.Stored, err = p.entry(ctx, k)
	}
	return err
}

// sums sets norm, as ‖K‖₂ ≤ max_i Σ_j |k(x_i, x_j)|.
func (p *Pilot) sums(ctx context.Context, rows []int) error {
	t := p.task
	k, err := gram.NewExact(t.Kernel, t.X, t.Lambda, math.Inf(1), nil)
	columns := mat.NewDense(t.n, len(rows), nil)
	if err == nil {
		err = k.Columns(ctx, rows, columns)
	}
	for j := range rows {
		p.norm = max(p.norm, mat.Norm(columns.ColView(j), 1))
	}
	return err
}

// look decides how K is kept, and finds k and ω of a sparse inverse without pivots.
func (p *Pilot) look(ctx context.Context) error {
	start, t := time.Now(), p.task
	c, err := p.k.Look(ctx)
	if err != nil {
		return err
	}
	p.choice, p.Look = &c, time.Since(start).Seconds()
	if err = p.stored(ctx, c.Arithmetic, c.Centred); err != nil {
		return err
	}
	if local := t.Precond == "" || t.Precond == Vecchia; local && t.LambdaP == 0 && kernel.Given(t.Kernel) == nil {
		k, err := gram.NewExact(t.Kernel, t.X, t.Lambda, t.Lambda/1000, nil)
		if err == nil {
			p.neighbors, p.damping, err = vecchia.Look(ctx, k, &vecchia.Options{Seed: t.Order})
		}
		if err != nil {
			return err
		}
	}
	p.Seconds += time.Since(start).Seconds()
	return nil
}

// factor sets what factors of K of the pilot's points in random order tell: the square of pivot j is the residual of
// a point after projection on j others, tr(K−K̂)/(n−j) of Nyström's K̂ of rank j in expectation; and coefficients of
// these points.
func (p *Pilot) factor(k *mat.Dense, rows []int) {
	m, t := p.M, p.task
	diag := make([]float64, m)
	for i := range m {
		diag[i] = k.At(i, i)
	}
	p.largest, p.mean, p.rms = floats.Max(diag), floats.Sum(diag)/float64(m), mat.Norm(k, 2)/float64(m)
	l := make([]float64, m*m)
	cholesky := func(shift float64) bool {
		copy(l, k.RawMatrix().Data)
		for i := range m {
			l[i*m+i] += shift
		}
		return accel.Dpotrf(m, l, m)
	}
	p.c = 1 / t.Lambda
	if cholesky(t.Lambda) {
		c := mat.NewDense(m, t.t, nil)
		y := mat.NewDense(m, t.t, nil)
		for i, r := range rows {
			y.SetRow(i, t.Y.RawRowView(r))
		}
		c.Copy(y)
		f := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: l}
		blas64.Trsm(blas.Left, blas.NoTrans, 1, f, c.RawMatrix())
		blas64.Trsm(blas.Left, blas.Trans, 1, f, c.RawMatrix())
		var most float64
		for j := range t.t {
			if norm := mat.Norm(y.ColView(j), 2); norm > 0 {
				most = max(most, mat.Norm(c.ColView(j), 2)/norm)
			}
		}
		p.c = min(p.c, cmp.Or(most, p.c))
	}
	// the least that it can be factored with
	for shift := max(1e-13*p.largest*float64(m), 0x1p-1022); !cholesky(shift) && shift < p.largest; {
		shift *= 100
	}
	p.e = make([]float64, m)
	for i := range m {
		p.e[i] = l[i*m+i] * l[i*m+i]
	}
}

// residual returns e(s), the mean of the curve about s. Beyond what the subsample has, the odds (k−e)/e of a point's
// being explained, k the mean of k(x, x), go on as a power of s: they are 1/e where e is small, and 1−e/k where s
// points hardly explain others.
func (p *Pilot) residual(s float64) float64 {
	mean := func(s float64) float64 {
		lo, hi := int(0.8*s), max(int(1.2*s), int(0.8*s)+1)
		hi = min(hi, p.M)
		lo = min(lo, hi-1)
		return max(floats.Sum(p.e[lo:hi])/float64(hi-lo), 1e-300)
	}
	most := 0.85 * float64(p.M)
	if s <= most {
		return mean(s)
	}
	odds := func(s float64) float64 { return max(p.mean/mean(s)-1, 1e-6) }
	end := odds(most)
	slope := math.Log(end/odds(most/3)) / math.Log(3)
	return p.mean / (1 + end*math.Pow(s/most, max(slope, 0)))
}
