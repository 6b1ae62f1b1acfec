package feature

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// measure is the spectral measure p of a shift-invariant kernel (Bochner's
// theorem): k(x, z) = E_{w∼p} cos wᵀ(x−z).
//
// Gaussian: exp(−‖δ‖²/2σ²) is the characteristic function of N(0, I/σ²).
//
// Laplacian: exp(−‖δ‖₁/σ) = Π_c exp(−|δ_c|/σ), each factor that of a Cauchy
// variable of scale 1/σ.
//
// Matérn of order ν: its spectral density (Rasmussen and Williams 2006, equation
// 4.15, here in angular frequency) is
//
//	p(w) ∝ (2ν/σ² + ‖w‖²)^(−ν−d/2) ∝ (1 + ‖σw‖²/(2ν))^(−(2ν+d)/2),
//
// the density of σw multivariate Student t with 2ν degrees of freedom: σw = z/√(g/2ν),
// z ∼ N(0, I), g ∼ χ²(2ν), one g for all coordinates.
type measure struct {
	sigma   float64
	cauchy  bool
	freedom float64 // 2ν of a Matérn kernel, 0 for the Gaussian (ν = ∞)
}

func measureOf(k kernel.Kernel) (measure, error) {
	switch k := k.(type) {
	case kernel.Gaussian:
		return measure{sigma: k.Sigma}, nil
	case kernel.Laplacian:
		return measure{sigma: k.Sigma, cauchy: true}, nil
	case kernel.Matern32:
		return measure{sigma: k.Sigma, freedom: 3}, nil
	case kernel.Matern52:
		return measure{sigma: k.Sigma, freedom: 5}, nil
	}
	return measure{}, fmt.Errorf("feature: no Fourier features for the kernel %v: gaussian, laplacian, matern32 and matern52 have them", k)
}

// row writes w_j, a function of (g, j).
func (p measure) row(dst []float64, g rng.Stream, j int) {
	g = g.Sub("frequencies", uint64(j))
	if p.cauchy {
		g.Float64s(dst, 0)
		for c, u := range dst {
			dst[c] = cauchy(u) / p.sigma
		}
		return
	}
	g.Normals(dst, 0)
	scale := p.spread(g)
	for c := range dst {
		dst[c] *= scale
	}
}

// spread returns what a standard normal vector is multiplied with: 1/σ, and for
// Matérn 1/(σ√(χ²(2ν)/2ν)). g is the stream of the row.
func (p measure) spread(g rng.Stream) float64 {
	if p.freedom == 0 {
		return 1 / p.sigma
	}
	return 1 / (p.sigma * math.Sqrt(g.Sub("mix").ChiSquare(0, p.freedom)/p.freedom))
}

// cauchy returns the Cauchy quantile tan π(u−½), without cancellation in the tails.
func cauchy(u float64) float64 {
	if u < 0.5 {
		return -1 / math.Tan(math.Pi*u)
	}
	return 1 / math.Tan(math.Pi*(1-u))
}
