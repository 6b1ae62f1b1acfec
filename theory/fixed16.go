package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/plots"
)

var fixed16 = Claim{
	Name: "fixed16", Place: "the project's: K in 16-bit fixed point", Kind: Bound,
	Statement: "Entries of k in [0, 1] are rounded to multiples of h = 1/65535: |E_ij| ≤ h/2 (and what float32 distances add, 3 %), rms h/√12 = 4.4e-6, ‖E‖₂ ≈ 2·rms·√n.\n" +
		"Refinement x ← x + (K̃+λI)⁻¹(y−Ax) contracts the residual by ‖E‖₂/(λ−‖E‖₂) or more a solve.",
	Measured: "the entries, their rms and the norm, of the project's tiles against the kernel's formula; residuals after one, two and three solves over the bound.",
	Fails:    "truncation in place of rounding doubles the largest error, and gives E a mean, so that ‖E‖₂ grows as n.",
	run:      checkFixed16, figure: figureFixed16,
}

// fixedStep is the distance of 16-bit numbers on [0, 1].
const fixedStep = 1.0 / 65535

// storedError returns E = K_stored − K for n points.
func (e *experiment) storedError(n int, g rng.Stream) (err16, k *mat.SymDense) {
	kernel := kernel.Gaussian{Sigma: uniform(g.Sub("sigma"), 0, 1, 3)}
	x := cloud(g, n, 5, 0.9)
	stored := e.kernel(kernel, x, 1, gram.Fixed16)
	k = evaluated(kernel, x)
	d := symmetrized(stored)
	subtract(d, k)
	return d, k
}

func checkFixed16(e *experiment) {
	const n = 100
	out := e.sample("trial", e.trials, 6, func(_ int, g rng.Stream, out []float64) {
		d, k := e.storedError(n, g)
		out[0] = largest(d) / (fixedStep / 2)
		rms := math.Sqrt(frobenius(d) / (n * (n - 1)))
		out[1] = rms / (fixedStep / math.Sqrt(12))
		size := norm(d)
		out[2] = size / (2 * rms * math.Sqrt(n))
		refine(d, k, spread(g.Sub("lambda"), 0, 3*size, 1e-2), size, g, out[3:])
	})
	e.atMost("|E_ij| over h/2", out[0], 1.1) // beside rounding to h: distances in float32
	e.mean("mean of rms(E) over h/√12", out[1], 1, 0)
	e.atMost("‖E‖₂ over 2·rms·√n, over 1.15", values(len(out[2]), func(i int) float64 { return out[2][i] / 1.15 }), 1)
	e.atMost("2·rms·√n over ‖E‖₂, over 1.3", values(len(out[2]), func(i int) float64 { return 1 / out[2][i] / 1.3 }), 1)
	for j := range 3 {
		e.atMost(fmt.Sprintf("residual after %d solves over (‖E‖₂/(λ−‖E‖₂))^%d", j+1, j+1), out[3+j], 1+1e-6)
	}
}

// refine sets out to the relative residuals after one, two and three solves with K+E, over the
// powers of ‖E‖₂/(λ−‖E‖₂), or over 1e-14 where that is more.
func refine(d, k *mat.SymDense, lambda, size float64, g rng.Stream, out []float64) {
	n := k.SymmetricDim()
	a := shifted(k, lambda)
	stored := mat.NewSymDense(n, nil)
	stored.AddSym(a, d)
	y := vector(g.Sub("y"), n)
	x, r, chol := mat.NewVecDense(n, nil), mat.VecDenseCopyOf(y), cholesky(stored)
	for j := range out {
		well(chol.SolveVecTo(r, r))
		x.AddVec(x, r)
		r.MulVec(a, x)
		r.SubVec(y, r)
		rate := math.Pow(size/(lambda-size), float64(j+1))
		out[j] = mat.Norm(r, 2) / mat.Norm(y, 2) / math.Max(rate, 1e-10)
	}
}

func figureFixed16(e *experiment) *plots.Figure {
	semicircle := plots.Series{Name: "2·h/√12·√n"}
	seen := plots.Series{Name: "‖E‖₂, median and 5 to 95 %", Style: plots.Points}
	sizes := []int{16, 32, 64, 128, 256}
	for _, n := range sizes {
		out := e.sample(fmt.Sprintf("figure %d", n), max(MinTrials, e.trials/8), 1, func(_ int, g rng.Stream, out []float64) {
			d, _ := e.storedError(n, g)
			out[0] = norm(d)
		})
		addDraws(&seen, float64(n), out[0])
		add(&semicircle, n, 2*fixedStep/math.Sqrt(12*1.0)*math.Sqrt(float64(n)))
	}
	f := plots.Sweep("K in 16-bit fixed point", "n", "‖E‖₂", nil, semicircle, seen)
	f.X.Ticks = floats(sizes)
	return f
}
