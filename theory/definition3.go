package theory

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

var definition3 = Claim{
	Name: "definition3", Place: "Definition 3, section 4", Kind: Identity,
	Statement: "SRHT: S = s^(−1/2)·P·H·D, H_ij = (−1)^|i∧j| of order m, a power of two, HᵀH = mI, D random signs, P s rows without replacement.\n" +
		"E[SᵀS] = I, and SᵀS = I for s = m.",
	Measured: "S·x by the fast transform against S entry by entry, in float64 and float32; |SᵀS−I| at s = m; the means of ‖Sx‖² and of ‖Y(SᵀS−I)Yᵀ‖_F² against their closed form, two-sided; the same for CountSketch.",
	Fails:    "without its scale S is √s too large; with rows sampled with replacement SᵀS ≠ I at s = m; without D the mean square is another.",
	run:      checkDefinition3,
}

// rowed is an SRHT that says what it is made of. *sketch.SRHTOperator is one.
type rowed interface {
	Sign(j int) float64
	Row(i int) (row, order int)
}

func checkDefinition3(e *experiment) {
	out := e.sample("entries", e.trials, 3, func(_ int, g rng.Stream, out []float64) {
		size := g.Sub("sizes")
		m := 1 + size.IntN(0, 40)
		order := 1 << bits.Len(uint(m-1))
		o := must(e.parts.SRHT.Sample(m, 1+size.IntN(1, order), g))
		out[0], out[1] = entries(o)
		all := must(e.parts.SRHT.Sample(m, order, g))
		s := matrixOf(all)
		out[2] = apart(outer(s.T()), identity(m))
	})
	e.atMost("|S − s^(−1/2)PHD|, float64", out[0], 1e-12)
	e.atMost("|S − s^(−1/2)PHD|, float32", out[1], 1e-5)
	e.atMost("|SᵀS − I| at s = m", out[2], 1e-12)
	for _, c := range []struct {
		name string
		d    sketch.Dist
		want func(y *mat.Dense) float64
	}{
		{"SRHT", e.parts.SRHT, func(y *mat.Dense) float64 { return srhtExpected(y, 64, 16) }},
		{"CountSketch", e.parts.CountSketch, func(y *mat.Dense) float64 { return countExpected(y, 16) }},
	} {
		e.secondMoment(c.name, c.d, c.want)
	}
}

// matrixOf returns S from what it makes of the unit vectors.
func matrixOf(o sketch.Operator) *mat.Dense {
	m, s := o.Dims()
	unit, st := mat.DenseCopyOf(identity(m)), mat.NewDense(m, s, nil)
	o.Apply64(st.RawMatrix().Data, s, unit.RawMatrix().Data, m, m, new(sketch.Workspace))
	return mat.DenseCopyOf(st.T())
}

// entries compares S with its definition, in float64 and float32.
func entries(o sketch.Operator) (err64, err32 float64) {
	r, ok := o.(rowed)
	if !ok {
		fail("an SRHT that does not say what it is made of")
	}
	m, s := o.Dims()
	got := matrixOf(o)
	unit, st := make([]float32, m*m), make([]float32, m*s)
	for j := range m {
		unit[j*m+j] = 1
	}
	o.Apply32(st, s, unit, m, m, new(sketch.Workspace))
	for i := range s {
		row, order := r.Row(i)
		if row < 0 || row >= order {
			fail("row %d of a transform of order %d", row, order)
		}
		for j := range m {
			h := 1 - 2*float64(bits.OnesCount(uint(row&j))&1)
			want := h * r.Sign(j) / math.Sqrt(float64(s))
			err64 = math.Max(err64, math.Abs(got.At(i, j)-want))
			err32 = math.Max(err32, math.Abs(float64(st[j*s+i])-want))
		}
	}
	return err64, err32
}

// secondMoment compares means over draws of a sketch of R⁵⁰ to 16 numbers.
func (e *experiment) secondMoment(name string, d sketch.Dist, want func(y *mat.Dense) float64) {
	const n, m, s = 6, 50, 16
	y := normals(e.g.Sub("vectors"), n, m)
	y.Apply(func(i, j int, v float64) float64 { return v * math.Pow(0.9, float64(j)) }, y)
	g0 := outer(y)
	out := e.sample(name, e.trials, 2, func(_ int, g rng.Stream, out []float64) {
		o := must(d.Sample(m, s, g))
		z := mat.NewDense(n, s, nil)
		o.Apply64(z.RawMatrix().Data, s, y.RawMatrix().Data, m, n, new(sketch.Workspace))
		diff := outer(z)
		out[0] = diff.At(0, 0)
		subtract(diff, g0)
		out[1] = frobenius(diff)
	})
	e.mean("mean of ‖Sx‖², "+name, out[0], g0.At(0, 0), 0)
	e.mean("mean of ‖Y(SᵀS−I)Yᵀ‖_F², "+name, out[1], want(y), 0)
}
