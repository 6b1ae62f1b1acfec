package feature

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
)

// spectral reports whether the kernel says its spectral measure p (Bochner's theorem):
// k(x, z) = k(x, x)·E_{w∼p} cos wᵀ(x−z).
func spectral(k kernel.Kernel) bool {
	switch k.(type) {
	case kernel.Mixture, kernel.Spectral:
		return true
	}
	return false
}

func noFeatures(what string, k kernel.Kernel) error {
	return fmt.Errorf("feature: no %s features for the kernel %v: gaussian, laplacian, matern32, matern52 and user-defined kernels with a method Spread or Frequency have Fourier features, polynomial has TensorSketch", what, k)
}

// frequency writes w_j, a function of (g, j).
func frequency(dst []float64, k kernel.Kernel, g rng.Stream, j int) {
	g = g.Sub("frequencies", uint64(j))
	switch k := k.(type) {
	case kernel.Mixture:
		g.Normals(dst, 0)
		scale := k.Spread(g.Sub("mix"))
		for c := range dst {
			dst[c] *= scale
		}
	case kernel.Spectral:
		k.Frequency(dst, g)
	}
}
