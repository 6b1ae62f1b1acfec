package gram_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// radial is the user-defined radial kernel scale·(1−c+c·cos u)/(1+u²) with u = r/4. It has negative values for c > ½.
type radial struct {
	scale, c float64
	slope    float64 // result of Slope; 0 means a bound of the true slope
}

func (k radial) String() string { return fmt.Sprintf("radial(%g, %g)", k.scale, k.c) }

// ofSquare returns the kernel at a squared distance.
func (k radial) ofSquare(sq float64) float64 {
	return k.scale * (1 - k.c + k.c*math.Cos(math.Sqrt(sq/16))) / (1 + sq/16)
}

func (k radial) Eval(x, z []float64) float64 {
	var sq float64
	for j, v := range x {
		sq += (v - z[j]) * (v - z[j])
	}
	return k.ofSquare(sq)
}

func (k radial) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = k.ofSquare(v)
	}
}

// Slope returns the field slope if it is not 0, and a bound of the true slope otherwise.
func (k radial) Slope() float64 {
	if k.slope != 0 {
		return k.slope
	}
	return k.scale * (1 + k.c/2) / 16
}

// TestUserDefinedRadialKernel compares every storage of a user-defined radial kernel, and its exact matrix, with K from
// Eval. Exact must form coordinate differences if the slope of the kernel is infinite, that is unknown.
func TestUserDefinedRadialKernel(t *testing.T) {
	const lambda = 0.3
	for _, k := range []radial{{1, 0.3, 0}, {2.5, 0.3, 0}, {1, 0.3, math.Inf(1)}, {1, 0.9, 0}} {
		for _, x := range pointsInFormats(3, 70, 20, 1) {
			want := evalMatrix(k, x)
			for _, s := range []gram.Storage{gram.Auto, gram.Float64, gram.Float32, gram.Recompute, gram.Fixed16} {
				name := fmt.Sprintf("%v %T %v", k, x, s)
				m, err := gram.New(ctx, k, x, lambda, &gram.Options{Storage: s, TileSize: 16, Accuracy: 1e-3})
				if s == gram.Fixed16 && (k.scale != 1 || k.c > 0.5) {
					reason := "is not known to be one"
					if k.scale == 1 {
						reason = "[0, 1] of fixed16"
					}
					if err == nil || !strings.Contains(err.Error(), reason) {
						t.Errorf("%s: %v, want %q", name, err, reason)
					}
					continue
				}
				testkit.OK(t, err)
				checkMatrix(t, name, m, want, lambda)
				exact := m.Exact(1e-9)
				checkMatrix(t, name+" exact", exact, want, lambda)
				if a := exact.Choice().Arithmetic; (a == kernel.Differences) != math.IsInf(k.slope, 1) {
					t.Errorf("%s: exact by %v", name, a)
				}
				if !math.IsInf(exact.EntryError(), 1) {
					t.Errorf("%s: a proved bound of the error of entries that a user-defined function computes", name)
				}
			}
		}
	}
	x := points.NewDense(50, 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i) / 50
	}
	testkit.Fails(t, testkit.ErrOf(gram.New(ctx, radial{1, 0.3, 0.03}, x, lambda, nil)), "Slope()")
}
