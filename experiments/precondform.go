package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// formUses is how often M⁻¹ is applied to take the median of.
const formUses = 5

// precondForm sets (ZZᵀ+λ_pI)⁻¹ up in the form of the case and applies it to n×t numbers.
// Z is n×s standard normal numbers over √s: what a form takes depends on n, s and t only.
// Values: "gram", "factor" and "form", the seconds of setting up; "use", the median seconds
// of applying; "error", ‖M(M⁻¹r)−r‖₂/‖r‖₂ of the first column.
func (s *session) precondForm(ctx context.Context, c Case) (*Result, error) {
	form, err := precond.ParseForm(c.Form)
	if err != nil {
		return nil, err
	}
	if c.N < 1 || c.S < 1 || c.T < 1 || form == precond.AutoForm {
		return nil, fmt.Errorf("experiments: form %q with n = %d, s = %d, t = %d: want a form and positive numbers", c.Form, c.N, c.S, c.T)
	}
	g := rng.New(c.Seed).Sub("precond form")
	z := points.NewDense32(c.N, c.S, nil)
	row := make([]float64, c.S)
	for i := range c.N {
		g.Sub("features").Normals(row, uint64(i*c.S))
		for j, v := range row {
			z.Row(i)[j] = float32(v / math.Sqrt(float64(c.S)))
		}
	}
	r := mat.NewDense(c.N, c.T, nil)
	g.Sub("columns").Normals(r.RawMatrix().Data, 0)
	s.monitor(krrlab.Event{Stage: "factor"})
	start := time.Now()
	m, err := precond.New(ctx, z, c.LambdaP, &precond.Options{Form: form})
	if err != nil {
		return nil, err
	}
	res := &Result{Status: Done, Converged: true, Form: m.Form().String(), Bytes: m.Bytes()}
	res.Seconds.Factor = time.Since(start).Seconds()
	x := mat.NewDense(c.N, c.T, nil)
	uses := make([]float64, formUses)
	for i := range uses {
		start := time.Now()
		if err := m.SolveTo(ctx, x, r); err != nil {
			return nil, err
		}
		uses[i] = time.Since(start).Seconds()
		res.Seconds.Solve += uses[i]
		s.monitor(krrlab.Event{Stage: "solve", Done: i + 1, Total: formUses})
	}
	off, err := formError(ctx, z, c.LambdaP, x, r)
	if err != nil {
		return nil, err
	}
	slices.Sort(uses)
	sec := m.Seconds()
	res.Values = map[string]float64{"gram": sec.Gram, "factor": sec.Factor, "form": sec.Form, "use": uses[formUses/2], "error": off}
	res.Data = Data{Name: "random numbers", Note: "Z of random numbers", Source: "generated", N: c.N, Of: c.N, D: c.S, T: c.T}
	return res, nil
}

// formError returns ‖Mx−r‖₂/‖r‖₂ of the first columns, with Mx = Z(Zᵀx) + λ_px.
func formError(ctx context.Context, z *points.Dense32, lambdaP float64, x, r *mat.Dense) (float64, error) {
	n, _ := x.Dims()
	one := mat.NewDense(n, 1, mat.Col(nil, 0, x))
	mx := mat.NewDense(n, 1, nil)
	if err := precond.NewOuter(z).KMulTo(ctx, mx, one); err != nil {
		return 0, err
	}
	var diff, norm float64
	for i := range n {
		e := mx.At(i, 0) + lambdaP*one.At(i, 0) - r.At(i, 0)
		diff += e * e
		norm += r.At(i, 0) * r.At(i, 0)
	}
	return math.Sqrt(diff / norm), nil
}
