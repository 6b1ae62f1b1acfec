package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/stage"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// formUses is how often M⁻¹ is applied to take the median of.
const formUses = 5

// precondForm sets (ZZᵀ+λ_pI)⁻¹ up in the form of the case and applies it to n×t numbers.
// Z is n×s standard normal numbers over √s: what a form takes depends on n, s and t only.
// Values: "gram", "factor" and "form", the seconds of setting up; "use", "use_least" and "use_most", the seconds
// of applying: their median, the least and the most; "error", ‖M(M⁻¹r)−r‖₂/‖r‖₂ of the first column. Cases of the same Z share
// it and ZᵀZ: each is charged with the seconds that forming ZᵀZ took.
func (s *session) precondForm(ctx context.Context, c Case) (*Result, error) {
	form, err := precond.ParseForm(c.Form)
	if err != nil {
		return nil, err
	}
	if c.N < 1 || c.S < 1 || c.T < 1 || form == precond.AutoForm {
		return nil, fmt.Errorf("experiments: form %q with n = %d, s = %d, t = %d: want a form and positive numbers", c.Form, c.N, c.S, c.T)
	}
	s.monitor(krrlab.Event{Stage: stage.Factor})
	f, err := s.featuresOf(ctx, c)
	if err != nil {
		return nil, err
	}
	z, r := f.z, mat.NewDense(c.N, c.T, nil)
	formStream(c).Sub("columns").Normals(r.RawMatrix().Data, 0)
	start := time.Now()
	m, err := precond.NewFromGram(ctx, z, &f.gram, c.LambdaP, &precond.Options{Form: form})
	if err != nil {
		return nil, err
	}
	res := &Result{Status: Done, Converged: true, Form: m.Form().String(), Bytes: m.Bytes()}
	res.Seconds.Factor = f.seconds + time.Since(start).Seconds()
	x := mat.NewDense(c.N, c.T, nil)
	uses := make([]float64, formUses)
	for i := range uses {
		start := time.Now()
		if err := m.SolveTo(ctx, x, r); err != nil {
			return nil, err
		}
		uses[i] = time.Since(start).Seconds()
		res.Seconds.Solve += uses[i]
		s.monitor(krrlab.Event{Stage: stage.Solve, Done: i + 1, Total: formUses})
	}
	off, err := formError(ctx, z, c.LambdaP, x, r)
	if err != nil {
		return nil, err
	}
	slices.Sort(uses)
	sec := m.Seconds()
	res.Values = finite(map[string]float64{"gram": f.seconds, "factor": sec.Factor, "form": sec.Form, "use": uses[formUses/2], "use_least": uses[0], "use_most": uses[formUses-1], "error": off})
	res.Data = Data{Name: "random numbers", Note: "Z of random numbers", Source: "generated", N: c.N, Of: c.N, D: c.S, T: c.T}
	return res, nil
}

// formFeatures are the Z of cases of PrecondForm, and ZᵀZ.
type formFeatures struct {
	n, s    int
	seed    uint64
	z       *points.Dense32
	gram    precond.Gram
	seconds float64 // that ZᵀZ took
}

// formStream returns where the numbers of a case are drawn from.
func formStream(c Case) rng.Stream { return rng.New(c.Seed).Sub("precond form") }

// featuresOf returns the Z of a case, and ZᵀZ: those of the case before where they are the same.
func (s *session) featuresOf(ctx context.Context, c Case) (*formFeatures, error) {
	if f := s.forms; f != nil && f.n == c.N && f.s == c.S && f.seed == c.Seed {
		return f, nil
	}
	s.forms = nil
	f := &formFeatures{n: c.N, s: c.S, seed: c.Seed, z: points.NewDense32(c.N, c.S, nil)}
	g := formStream(c).Sub("features")
	err := accel.ForEach(ctx, c.N, func(_, i int) {
		row := make([]float64, c.S)
		g.Normals(row, uint64(i*c.S))
		for j, v := range row {
			f.z.Row(i)[j] = float32(v / math.Sqrt(float64(c.S)))
		}
	})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := f.gram.Grow(ctx, nil, f.z); err != nil {
		return nil, err
	}
	f.seconds = time.Since(start).Seconds()
	s.forms = f
	return f, nil
}

// sameFeatures reports whether two cases of PrecondForm have the same Z.
func sameFeatures(a, b Case) bool {
	return a.Method == PrecondForm && b.Method == PrecondForm && a.N == b.N && a.S == b.S && a.Seed == b.Seed
}

// formError returns ‖Mx−r‖₂/‖r‖₂ of the first columns, with Mx = Z(Zᵀx) + λ_px.
func formError(ctx context.Context, z *points.Dense32, lambdaP float64, x, r *mat.Dense) (float64, error) {
	n, _ := x.Dims()
	one := mat.NewDense(n, 1, mat.Col(nil, 0, x))
	mx := mat.NewDense(n, 1, nil)
	outer, err := precond.NewOuter(ctx, nil, z)
	if err != nil {
		return 0, err
	}
	if err := outer.KMulTo(ctx, mx, one); err != nil {
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
