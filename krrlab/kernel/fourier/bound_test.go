package fourier

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestNormBound checks in random problems that ‖K̃−K‖₂ of dense float64 matrices is at most n·EntryError, without
// an allowance for rounding, and that missing modes would violate the bound.
//
// Shells of modes, one frequency wide, are removed from the outside until the error exceeds the bound. For an
// EntryError ε of at most 0.01 one shell of a Gaussian must suffice. Four shells are allowed for a Matérn kernel,
// whose weights decrease slowly, so that the removed modes are a small part of the tail that the bound allows for.
// For a larger ε the number is only logged: nε is then close to ‖K‖₂, and even the loss of nearly all modes may
// satisfy the bound.
func TestNormBound(t *testing.T) {
	problems, maxPoints := suite.Scale(30, 300, 300), suite.Scale(60, 200, 200)
	needed := map[int]int{}  // problems by the number of shells that must be missing
	loose, closest := 0, 0.0 // problems with a large ε; largest ratio of the error to the bound
	for seed := range problems {
		g := rng.New(uint64(seed))
		uniform := make([]float64, 10)
		g.Float64s(uniform, 0)
		d, n := 1+seed%3, 20+int(uniform[0]*float64(maxPoints-20))
		shape := []string{"even", "clusters", "line", "duplicates", "outlier"}[seed/6%5]
		x := pointSets(n, d, uint64(seed))[shape]
		for i := range n {
			for a := range d {
				x.Row(i)[a] = 10*uniform[4+a] + x.Row(i)[a]*(0.2+uniform[1+a])
			}
		}
		var s *Series
		var k kernel.Kernel
		sigma, accuracy, err := 0.1+uniform[7], math.Pow(10, -1-9*uniform[8]), error(nil)
		if seed/3%2 == 1 {
			accuracy = math.Pow(10, -0.5-3*uniform[8]/float64(d))
		}
		// The kernel becomes wider and the accuracy lower until few enough modes suffice.
		for ; s == nil || err != nil; sigma, accuracy = 1.3*sigma, 2*accuracy {
			k = kernel.Gaussian{Sigma: sigma}
			if seed/3%2 == 1 {
				k = kernel.Matern52{Sigma: sigma}
			}
			s, err = New(k, Options{EntryError: accuracy, MaxModes: suite.Scale(600, 3000, 3000)}, x)
			if accuracy > 1 && err != nil {
				t.Fatal(err)
			}
		}
		name := fmt.Sprintf("seed %d: n = %d, d = %d, %s, %v, %d modes", seed, n, d, shape, k, s.Modes())
		exact, phi := testkit.KernelMatrix(k, x), features(s, x)
		// norm returns ‖K̃−K‖₂ with only those modes k in K̃ for which the condition included holds.
		norm := func(included func(k int) bool) float64 {
			scaled := mat.DenseCopyOf(phi)
			for k := range s.modes {
				if !included(k) {
					for i := range n {
						scaled.Set(i, k, 0)
					}
				}
			}
			var approx mat.SymDense
			approx.SymOuterK(1, scaled)
			difference := mat.NewSymDense(n, nil)
			for i := range n {
				for j := i; j < n; j++ {
					difference.SetSym(i, j, approx.At(i, j)-exact.At(i, j))
				}
			}
			return floats.Norm(testkit.Eigenvalues(t, difference), math.Inf(1))
		}
		bound := float64(n) * s.EntryError()
		errorNorm := norm(func(int) bool { return true })
		if closest = max(closest, errorNorm/bound); errorNorm > bound {
			t.Errorf("%s: ‖K̃−K‖₂ = %.4g, bound %.4g", name, errorNorm, bound)
		}
		// The radius of a mode is its frequency in units of the widest spacing.
		radii, unit := make([]float64, s.Modes()), 0.0
		for a := range s.axes {
			unit = max(unit, s.axes[a].spacing)
		}
		for k, m := range s.modes {
			for a := range s.axes {
				radii[k] = math.Hypot(radii[k], float64(m.index[a]/2)*s.axes[a].spacing/unit)
			}
		}
		largestRadius := floats.Max(radii)
		shells := 1
		innerModes := func(k int) bool { return radii[k] <= largestRadius-float64(shells)+1e-9 }
		for float64(shells) <= largestRadius && norm(innerModes) <= bound {
			shells++
		}
		allowed := 1
		if _, ok := k.(Density); ok {
			allowed = 4
		}
		if s.EntryError() > 0.01 {
			loose++
		} else if needed[shells]++; shells > allowed {
			t.Errorf("%s: %d of %.1f shells must be missing until the error exceeds %.4g, want %d", name, shells,
				largestRadius, bound, allowed)
		}
		t.Logf("%s: ‖K̃−K‖₂ = %.3g, bound %.3g; %d of %.1f shells", name, errorNorm, bound, shells, largestRadius)
	}
	t.Logf("%d problems: ‖K̃−K‖₂ is at most %.2g times its bound; problems by the missing shells that were noticed: %v; "+
		"%d problems with a larger ε", problems, closest, needed, loose)
}
