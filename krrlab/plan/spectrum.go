package plan

import (
	"math"

	"gonum.org/v1/gonum/floats"
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
// The eigenvalues of K−K̂ are taken as νg/(ν+g). With g = γ it is the mean of K−K̂ for landmarks that repel each other (volume sampling); with uniform
// ones it reaches further up, to the edge
//
//	r(s) = min over j < s of n·e(j)/(s−j)
//
// of what is left of K without a random subspace of s dimensions: g = r. Random pivots are in between, g = √(γr).
type spectrum struct {
	n, lambda, tol float64
	trace          float64
	residual       func(s float64) float64
	nu, upto       []float64 // eigenvalues, descending, and how many are as large or larger: of the middle of each cell of the grid
}

const (
	cells   = 80  // of the grid of eigenvalues
	ranksOf = 60  // at which the residual curve is looked at
	rounds  = 800 // of Richardson's and Lucy's iteration
	single  = 100 // largest eigenvalues, each by itself; those that follow by the hundredth
	// rough is the share of y that no landmark explains. From 0.1 to 1 the iterations are a tenth more.
	rough = 0.5
)

// newSpectrum returns the spectrum of K by a pilot.
func newSpectrum(p *Pilot) *spectrum {
	a := &spectrum{n: float64(p.task.n), lambda: p.task.Lambda, tol: p.task.Tol, trace: float64(p.task.n) * p.mean, residual: p.residual}
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
	return a
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

// count predicts the iterations of a method of rank s with λ_p = ridge·λ that bring the residual of one column to τ, or those of a block
// of columns that search together, limit at most. It solves the problem that is left of the spectrum, A and M diagonal: of the s directions that
// M has, with ν+λ and ν+λ_p, and of all others, with the eigenvalues of K−K̂ plus λ, and λ_p. A block of t columns
// spends an iteration where one spends t, as one column does on a problem of 1/t of the eigenvalues.
func (a *spectrum) count(method string, s int, ridge float64, block, limit int) int {
	var d diagonal
	rank, lp := float64(s), ridge*a.lambda
	var top float64
	switch method {
	case Nystrom, Features:
		top = a.edge(rank)
	case RPCholesky:
		top = math.Sqrt(a.gamma(rank) * a.edge(rank))
	}
	step := float64(block)
	for lo, cell := 0.0, 0; lo < a.n; {
		hi := min(lo+max(step, lo/single), a.n)
		v := a.at((lo+hi)/2, &cell)
		w := (hi - lo) / a.n
		if method == None {
			d.add(v+a.lambda, 1, (1-rough)*v*(hi-lo)/a.trace+rough*w)
		} else {
			if in := min(hi, rank) - lo; in > 0 {
				d.add(v+a.lambda, v+lp, (1-rough)*in/rank)
			}
			d.add(v*top/(v+top)+a.lambda, lp, rough*w)
		}
		lo = hi
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

// diagonal is Ax = y with A and M diagonal.
type diagonal struct{ a, m, y []float64 }

// add adds a row, of which y has the square given.
func (d *diagonal) add(a, m, y2 float64) {
	d.a, d.m, d.y = append(d.a, a), append(d.m, m), append(d.y, math.Sqrt(y2))
}

// solve returns the iterations of preconditioned conjugate gradients to ‖r‖ ≤ τ‖y‖, limit at most.
func (d *diagonal) solve(tol float64, limit int) int {
	r := d.y
	p, before, end := make([]float64, len(r)), 1.0, tol*tol*floats.Dot(r, r)
	for k := 1; k <= limit; k++ {
		var rho, pap, rr float64
		for i, v := range r {
			rho += v * v / d.m[i]
		}
		for i, v := range r {
			p[i] = v/d.m[i] + rho/before*p[i]
			pap += p[i] * p[i] * d.a[i]
		}
		for i := range r {
			r[i] -= rho / pap * d.a[i] * p[i]
			rr += r[i] * r[i]
		}
		if before = rho; !(rr > end) {
			return k
		}
	}
	return limit
}
