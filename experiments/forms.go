package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

var forms = Experiment{
	ID:      "forms",
	Title:   "Seconds of each form of (ZZᵀ+λ_p·I)⁻¹",
	Section: "section 3.1 (the choice of U over L)",
	Plan:    formsPlan,
	Tables:  formsTables,
	Figures: formsFigures,
	Verdicts: func(r *Report) []Verdict {
		return []Verdict{formsVerdict(r)}
	},
	Prose: formsProse,
}

// formNames are the forms compared, as precond.ParseForm.
var formNames = []string{"L", "Linv", "U", "eigen"}

// formWords say in the figure what a use of a form is.
var formWords = map[string]string{
	"L": "L: two triangular solves", "Linv": "Linv: two products with L⁻¹", "U": "U: two products with U = L⁻¹Zᵀ", "eigen": "eigen: products with eigenvectors of ZᵀZ",
}

// formGrid is the n, s and t of a scale.
var formGrid = map[Scale]struct{ n, s, t []int }{
	Smoke:  {[]int{2000}, []int{100, 200}, []int{1, 10}},
	Laptop: {[]int{10000, 20000, 40000}, []int{500, 1000, 2000, 4000}, []int{1, 10}},
	Paper:  {[]int{60000}, []int{2500, 5000, 10000}, []int{1, 10}},
}

func formsPlan(scale Scale) []Entry {
	var out []Entry
	g := formGrid[scale]
	for _, n := range g.n {
		for _, s := range g.s {
			for _, t := range g.t {
				for _, form := range formNames {
					c := Case{N: n, S: s, T: t, Form: form, LambdaP: 0.1, Method: PrecondForm, Seed: 1}
					out = append(out, Entry{Row: fmt.Sprintf("n = %d, s = %d, t = %d", n, s, t), Role: form, Case: c})
				}
			}
		}
	}
	return out
}

func formsTables(r *Report) []*plots.Table {
	t := &plots.Table{
		Title: r.Title,
		Caption: "Z is random: the time of a form depends on n, s and t only. Setup includes ZᵀZ, its factor and the form; an application is one (ZZᵀ+λ_pI)⁻¹R for " +
			"R n×t, the median of five. Repaid: the number of applications after which the form has taken less time than L in all; never, if an application takes longer. " +
			"The error is ‖M(M⁻¹r)−r‖₂/‖r‖₂. " + scaleText(r.Scale),
		Columns: []plots.Column{
			{Name: "n"}, {Name: "s"}, {Name: "t"}, {Name: "form"}, {Name: "set-up", Unit: "s", Format: "%.2f"}, {Name: "of it ZᵀZ", Unit: "s", Format: "%.2f"},
			{Name: "use", Unit: "ms", Format: "%.2f"}, {Name: "use/L", Format: "%.2f"}, {Name: "repaid after", Align: plots.Right}, {Name: "memory", Unit: "MB", Format: "%.0f"},
			{Name: "error", Format: "%.0e"},
		},
	}
	for _, row := range r.Rows() {
		base := r.sampleOf(row, "L").result()
		for _, form := range formNames {
			x := r.sampleOf(row, form).result()
			if x == nil {
				continue
			}
			c := r.Find(row, form)[0].Case
			cells := []any{c.N, c.S, c.T, form, x.Seconds.Factor, x.Values["gram"], 1e3 * x.Values["use"], plots.Blank(), plots.Blank(), float64(x.Bytes) / 1e6, x.value("error")}
			if base != nil {
				cells[7] = x.Values["use"] / base.Values["use"]
				cells[8] = repaid(x, base)
			}
			t.Add(cells...)
		}
	}
	return []*plots.Table{t}
}

// repaid says after how many uses a form has repaid what it costs to set up more than L.
func repaid(x, base *Result) plots.Cell {
	more := setup(x) - setup(base)
	gain := base.Values["use"] - x.Values["use"]
	switch {
	case x == base:
		return plots.Blank()
	case more <= 0 && gain >= 0:
		return plots.Text("at once")
	case gain <= 0:
		return plots.Text("never")
	}
	return plots.Number(math.Ceil(more / gain))
}

// setup returns the seconds of setting a form up without those of ZᵀZ, which are of all
// forms alike.
func setup(x *Result) float64 { return x.Values["factor"] + x.Values["form"] }

func formsFigures(r *Report) []Figure {
	var panels []*plots.Figure
	var keys [][2]int // n and t
	spreads := false
	for _, e := range r.Entries {
		if e.Result.Ran() {
			keys = once(keys, [2]int{e.Case.N, e.Case.T})
			spreads = spreads || e.Result.Values["use_most"] > 0
		}
	}
	for _, key := range keys {
		f := &plots.Figure{
			Title: fmt.Sprintf("n = %s, t = %d", thousands(key[0]), key[1]),
			X:     plots.Axis{Label: "random features s", Log: true}, Y: plots.Axis{Label: "seconds of a use", Log: true},
		}
		for _, form := range formNames {
			s := plots.Series{Name: formWords[form]}
			for _, e := range r.Entries {
				c := e.Case
				if !e.Result.Ran() || c.Form != form || key != [2]int{c.N, c.T} {
					continue
				}
				v := e.Result.Values
				s.X, s.Y = append(s.X, float64(c.S)), append(s.Y, v["use"])
				f.X.Ticks = once(f.X.Ticks, float64(c.S))
				switch {
				case v["use_most"] > 0:
					s.Lo, s.Hi = append(s.Lo, v["use_least"]), append(s.Hi, v["use_most"])
				case spreads:
					s.Lo, s.Hi = append(s.Lo, math.NaN()), append(s.Hi, math.NaN())
				}
			}
			if len(s.X) > 0 {
				f.Series = append(f.Series, s)
			}
		}
		panels = append(panels, f)
	}
	if len(panels) == 0 {
		return nil
	}
	f := plots.Grid("Seconds of one application of M⁻¹, M = ZZᵀ+λ_p·I, by form", 2, panels...)
	f.Caption = fmt.Sprintf("Seconds of one (ZZᵀ+λ_pI)⁻¹R, R n×t, in each form against s, both axes logarithmic: the median of %d. ", formUses)
	if spreads {
		f.Caption += "Bands: least to most. "
	} else {
		f.Caption += "The kept results have the median only. "
	}
	f.Caption += scaleText(r.Scale)
	return []Figure{{r.ID, f}}
}

// formsVerdict judges the paper's claim that forming U reduces the cost of an iteration.
func formsVerdict(r *Report) Verdict {
	j := evidence{claim: "applying U takes less time than applying L", undecided: "nothing was run at a scale that decides it"}
	var all []float64
	for _, row := range r.Rows() {
		l, u := r.sampleOf(row, "L").result(), r.sampleOf(row, "U").result()
		if r.Scale == Smoke || l == nil || u == nil {
			continue
		}
		q := u.Values["use"] / l.Values["use"]
		j.add(known(q < 1), "%s", row)
		all = append(all, q)
	}
	v := j.verdict()
	if n := len(all); n > 0 {
		slices.Sort(all)
		v.Detail = fmt.Sprintf("in %d of %d sizes; median time ratio %.2f, least %.2f, most %.2f", len(j.good), n, median(all), all[0], all[n-1])
	}
	return v
}

func formsProse(r *Report) string {
	var least []string
	for _, row := range r.Rows() {
		best, name := math.Inf(1), ""
		for _, form := range formNames {
			if x := r.sampleOf(row, form).result(); x != nil && x.Values["use"] < best {
				best, name = x.Values["use"], form
			}
		}
		if name != "" {
			least = append(least, name)
		}
	}
	if len(least) == 0 {
		return "No form was run."
	}
	var counts []string
	for _, form := range formNames {
		if n := len(slices.DeleteFunc(slices.Clone(least), func(s string) bool { return s != form })); n > 0 {
			counts = append(counts, fmt.Sprintf("%s in %d", form, n))
		}
	}
	return fmt.Sprintf("The paper forms U = L⁻¹Zᵀ, at another ns² flops, to make iterations cheaper than with two triangular solves. "+
		"Of %d sizes the form that applies fastest is %s. The explicit L⁻¹ has products only, as U has, for s³/3 flops and no more memory than L; "+
		"U is in float64, so it takes twice Z's bytes to read, and half the products.", len(least), strings.Join(counts, ", "))
}

// scaleText says what a scale's numbers are worth.
func scaleText(s Scale) string {
	if s == Smoke {
		return "Smoke scale: small problems that show that everything runs."
	}
	return firstUpper(string(s)) + " scale."
}

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
