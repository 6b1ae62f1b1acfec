package plan

import (
	"cmp"
	"math"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/rng"
)

// spectrum is that of K as a subsample's residual curve e tells it, and counts the iterations of conjugate gradients by it.
//
// For s random landmarks the trace of K−K̂ is (n−s)·e(s), and in the limit of many also γs, where γ is the ridge at which K has s degrees of freedom:
//
//	d(γ) = Σ_i ν_i/(ν_i+γ) = s  at  γ(s) = (n−s)·e(s)/s,
//
// ν_i the eigenvalues of K. They are what these equations for many s, and d(0) = n, make of the counts of eigenvalues on a grid,
// by the iteration of W. H. Richardson (J. Opt. Soc. Am. 62, 1972) and L. B. Lucy (Astron. J. 79, 1974), which keeps them positive.
//
// The least quarter of the eigenvalues, of points that others are close to, a mean does not tell. The diagonals of K⁻¹ and K⁻²
// do (nodes): what they tell is taken for it where it is less.
//
// The eigenvalues of K−K̂ are taken as νg/(ν+g). With g = γ it is the mean of K−K̂ for landmarks that repel each other (volume sampling);
// it reaches further up, at most to the edge
//
//	r(s) = min over j < s of n·e(j)/(s−j)
//
// of what is left of K without a random subspace of s dimensions: g = γ^(1−p)·r^p.
//
// The square of a right-hand side in the direction of ν is taken as ν^q, with the q for which ‖c‖₂ is what the pilot estimates.
type spectrum struct {
	n, lambda, tol float64
	residual       func(s float64) float64
	least          []float64 // the least eigenvalues, ascending, quantiles at (i+½)·share
	share          float64
	power          float64   // q: the squares of y in the directions of K are as ν^q
	nu, upto       []float64 // eigenvalues, descending, and how many are as large or larger: of the middle of each cell of the grid

	mu    sync.Mutex
	known map[int][]row // by the columns of a block
}

const (
	cells   = 80   // of the grid of eigenvalues
	ranksOf = 60   // at which the residual curve is looked at
	rounds  = 800  // of Richardson's and Lucy's iteration
	pivots  = 0.25 // p of random pivots, as measured
	uniform = 0.75 // and of uniform landmarks
	single  = 100  // largest eigenvalues, each by itself; those that follow by the hundredth
)

// newSpectrum returns the spectrum of K by a pilot.
func newSpectrum(p *Pilot) *spectrum {
	a := &spectrum{n: float64(p.task.n), lambda: p.task.Lambda, tol: p.task.Tol, residual: p.residual, least: p.v, share: cmp.Or(p.share, 1), known: map[int][]row{}}
	gamma, want := make([]float64, ranksOf), make([]float64, ranksOf+1)
	floats.LogSpan(want[:ranksOf], min(1, a.n/2), 0.97*a.n) // at s = n nothing is left
	for j, s := range want[:ranksOf] {
		gamma[j] = a.gamma(s)
		if j > 0 {
			gamma[j] = min(gamma[j], gamma[j-1])
		}
	}
	want[ranksOf] = a.n
	a.nu = floats.LogSpan(make([]float64, cells), a.n*p.largest, gamma[ranksOf-1]/30)
	count := make([]float64, cells)
	floats.AddConst(a.n/cells, count)
	share := make([][]float64, ranksOf+1) // of a cell's eigenvalues in d
	for j := range share {
		share[j] = make([]float64, cells)
		for i, v := range a.nu {
			share[j][i] = 1
			if j < ranksOf {
				share[j][i] = v / (v + gamma[j])
			}
		}
	}
	over, under := make([]float64, cells), make([]float64, cells)
	for range rounds {
		clear(over)
		clear(under)
		for j, row := range share {
			d := floats.Dot(row, count)
			floats.AddScaled(under, 1/d, row)
			floats.AddScaled(over, want[j]/(d*d), row)
		}
		floats.Mul(count, over)
		floats.Div(count, under)
	}
	a.upto = floats.CumSum(make([]float64, cells), count)
	floats.AddScaled(a.upto, -0.5, count)
	a.power = a.smoothness(p.c)
	return a
}

// each calls f with the eigenvalues ν of K, descending, lo to hi of them together: step by step, of the large ones, and by the hundredth.
func (a *spectrum) each(step float64, f func(nu, lo, hi float64)) {
	cell := 0
	for lo, hi := 0.0, 0.0; lo < a.n; lo = hi {
		hi = min(lo+max(step, lo/single), a.n)
		f(a.at((lo+hi)/2, &cell), lo, hi)
	}
}

// smoothness returns the q, from 0 to 6, with which right-hand sides whose square is ν^q in each direction have coefficients of the norm c‖y‖₂,
//
//	Σ ν^q/(ν+λ)² = c²·Σ ν^q.
//
// Noise has q = 0, a draw of the Gaussian process of covariance K 1, and smoother functions more.
func (a *spectrum) smoothness(c float64) float64 {
	lo, hi := 0.0, 6.0
	for range 30 {
		q := (lo + hi) / 2
		var y2, c2 float64
		a.each(1, func(nu, lo, hi float64) {
			w := (hi - lo) * math.Pow(nu/a.nu[0], q)
			y2 += w
			c2 += w / ((nu + a.lambda) * (nu + a.lambda))
		})
		if c2 > c*c*y2 {
			lo = q
		} else {
			hi = q
		}
	}
	return lo
}

// row is eigenvalues lo to hi of K, of about the same size, and the square of y in their directions.
type row struct{ nu, lo, hi, y2 float64 }

// rows returns what count solves for a block of columns.
func (a *spectrum) rows(block int) []row {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[block] == nil {
		a.each(float64(block), func(nu, lo, hi float64) {
			a.known[block] = append(a.known[block], row{nu, lo, hi, (hi - lo) * math.Pow(nu/a.nu[0], a.power)})
		})
	}
	return a.known[block]
}

// gamma returns γ(s).
func (a *spectrum) gamma(s float64) float64 { return (a.n - s) * a.residual(s) / s }

// edge returns r(s).
func (a *spectrum) edge(s float64) float64 {
	least := a.n * a.residual(0) / s
	for j := 0.98 * s; j >= 1; j *= 0.93 {
		least = min(least, a.n*a.residual(j)/(s-j))
	}
	return max(least, a.gamma(s))
}

// between returns γ^(1−p)·r^p.
func (a *spectrum) between(s, p float64) float64 {
	return math.Pow(a.gamma(s), 1-p) * math.Pow(a.edge(s), p)
}

// count predicts the iterations of a method of rank s with λ_p = ridge·λ that bring the residual of one column to τ, or those of a block
// of columns that search together, limit at most. It solves the problem that is left of the spectrum, A and M diagonal: of the s directions that
// M has, with ν+λ and ν+λ_p and the share ν/(ν+g) of y, and of all others, with the eigenvalues of K−K̂ plus λ, and λ_p. A block of t columns
// spends an iteration where one spends t, as one column does on a problem of 1/t of the eigenvalues.
//
// Products with K that are off by a share e of their norm, as in float32, cost conjugate gradients what they had learned of other directions: such noise is added,
// evenly in all directions.
func (a *spectrum) count(method string, s int, ridge float64, block, limit int, e float64) int {
	switch {
	case method == Vecchia && s == 0: // as a race hopes
		return min(limit, int(2*math.Sqrt(float64(a.count(None, 0, 1, block, limit, e)))))
	case method == Vecchia:
		return (a.count(RPCholesky, s, 1, block, limit, e) + 1) / 2
	}
	d := diagonal{e: e}
	rank, lp := float64(s), ridge*a.lambda
	var top float64
	switch method {
	case Nystrom, Features:
		top = a.between(rank, uniform)
	case RPCholesky:
		top = a.between(rank, pivots)
	}
	for _, r := range a.rows(block) {
		v, width := r.nu, r.hi-r.lo
		if method == None {
			d.add(v+a.lambda, 1, r.y2, width)
			continue
		}
		if r.lo < rank {
			d.add(v+a.lambda, v+lp, r.y2*v/(v+top), width*v/(v+top))
		}
		d.add(v*top/(v+top)+a.lambda, lp, r.y2*top/(v+top), width*top/(v+top))
	}
	times := 1.0
	if method == Features {
		times = max(1, featuresSlow*math.Pow(10/ridge, featuresRidge))
	}
	return min(limit, int(math.Ceil(times*float64(d.solve(a.tol, limit)))))
}

// Random features are off K as uniform landmarks are, and in what they have of it beside: so many times the iterations with λ_p = 10λ,
// and the more the smaller λ_p. Medians on six data sets, n = 5,000 to 8,000, of 1.5 to 3.6 and 2.8 to 6.3 with λ_p = λ.
const (
	featuresSlow  = 2.3
	featuresRidge = 0.3
)

// at returns eigenvalue i of K, counted from the largest; cell is where the search begins, and where it ended.
func (a *spectrum) at(i float64, cell *int) float64 {
	v := a.large(i, cell)
	if k := int((1 - i/a.n) / a.share); k < len(a.least) {
		return min(v, a.least[k])
	}
	return v
}

// large is at by the counts of eigenvalues alone.
func (a *spectrum) large(i float64, cell *int) float64 {
	k := *cell
	for k < cells-1 && a.upto[k] < i {
		k++
	}
	*cell = k
	if k == 0 || a.upto[k] <= i {
		return a.nu[k]
	}
	f := (i - a.upto[k-1]) / (a.upto[k] - a.upto[k-1])
	return a.nu[k-1] * math.Pow(a.nu[k]/a.nu[k-1], f)
}

// diagonal is Ax = y with A and M diagonal, for conjugate gradients whose products are off by e of their norm.
type diagonal struct {
	a, m, y []float64
	width   []float64 // √ of the directions that a row stands for
	e       float64
}

// add adds a row that stands for so many directions, in which y has the square given.
func (d *diagonal) add(a, m, y2, directions float64) {
	d.a, d.m, d.y, d.width = append(d.a, a), append(d.m, m), append(d.y, math.Sqrt(y2)), append(d.width, math.Sqrt(directions))
}

// solve returns the iterations of preconditioned conjugate gradients to ‖r‖ ≤ τ‖y‖, limit at most.
func (d *diagonal) solve(tol float64, limit int) int {
	r := d.y
	n := len(r)
	p, q, noise := make([]float64, n), make([]float64, n), make([]float64, 2*n)
	inverse := make([]float64, n)
	for i, v := range d.m {
		inverse[i] = 1 / v
	}
	rng.New(1).Sub("rounding").Normals(noise, 0)
	size := floats.Norm(d.width, 2)
	before, end := 1.0, tol*tol*floats.Dot(r, r)
	for k := 1; k <= limit; k++ {
		var rho, qq, pq, rr float64
		for i, v := range r {
			rho += v * v * inverse[i]
		}
		for i, v := range r {
			p[i] = v*inverse[i] + rho/before*p[i]
			q[i] = p[i] * d.a[i]
			qq += q[i] * q[i]
		}
		off, from := d.e*math.Sqrt(qq)/size, noise[k*37%n:]
		for i, v := range p {
			q[i] += off * d.width[i] * from[i]
			pq += v * q[i]
		}
		for i := range r {
			r[i] -= rho / pq * q[i]
			rr += r[i] * r[i]
		}
		if before = rho; !(rr > end) {
			return k
		}
	}
	return limit
}
