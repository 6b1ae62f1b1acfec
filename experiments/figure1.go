package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

var figure1 = Experiment{
	ID:       "figure1",
	Title:    "Random features against the exact method, error and time over s",
	Section:  "section 6.1, figure 1",
	Plan:     figure1Plan,
	Tables:   figure1Tables,
	Figures:  figure1Figures,
	Verdicts: figure1Verdicts,
	Prose:    figure1Prose,
}

// figure1Kernels are the rows of figure 1: the paper's two kernels, λ = 0.01 for both.
var figure1Kernels = []struct {
	name string
	spec kernel.Spec
}{
	{"Gaussian kernel, σ = 8.5", kernel.Spec{Name: "gaussian", Sigma: 8.5}},
	{"polynomial kernel, (0.01xᵀz+1)³", kernel.Spec{Name: "polynomial", Gamma: 0.01, Coef0: 1, Degree: 3}},
}

// figure1Size is what figure 1 takes at a scale. s runs over n/2ᵏ, k = first … 0 for random
// features, and for the exact method of each kernel k = from … 1, with the iterations
// expected. Beside it, on the first few points only, s runs to 2ᵘn, u = up, beyond what the
// paper shows.
type figure1Size struct {
	data      string
	n, testN  int // 0: all
	points    int
	seeds     int
	first     int
	from      [2]int
	expect    [2][]int
	few, up   int
	fewExpect [2]int
}

var figure1Sizes = map[Scale]figure1Size{
	Smoke:  {"synthetic-digits", 256, 300, 256, 5, 4, [2]int{3, 3}, [2][]int{}, 64, 3, [2]int{}},
	Laptop: {"mnist", 20000, 0, 20000, 5, 5, [2]int{4, 3}, [2][]int{{290, 140, 75, 45}, {400, 230, 130}}, 5000, 3, [2]int{90, 300}},
	Paper:  {"mnist", 0, 0, 60000, 3, 5, [2]int{4, 4}, [2][]int{{200, 120, 75, 50}, {700, 400, 230, 130}}, 5000, 3, [2]int{90, 300}},
}

// beyond is the end of the names of the rows in which s goes beyond n.
const beyond = ", s beyond n"

func figure1Plan(scale Scale) []Entry {
	z := figure1Sizes[scale]
	var out []Entry
	for k, kern := range figure1Kernels {
		c := Case{Data: z.data, N: z.n, TestN: z.testN, Kernel: kern.spec, Lambda: 0.01, Method: PCG, LambdaP: 0.01, Tol: 1e-3}
		for i := z.from[k]; i >= 1; i-- {
			expect := 0
			if at := z.from[k] - i; at < len(z.expect[k]) {
				expect = z.expect[k][at]
			}
			c.S = z.points >> i
			out = append(out, reseeded(kern.name, exactRole, c, z.seeds, expect)...)
		}
		for i := z.first; i >= 0; i-- {
			out = append(out, reseeded(kern.name, featuresRole, c.byFeatures(z.points>>i), z.seeds, 0)...)
		}
	}
	for k, kern := range figure1Kernels {
		c := Case{Data: z.data, N: z.few, TestN: z.testN, Kernel: kern.spec, Lambda: 0.01, Method: PCG, LambdaP: 0.01, Tol: 1e-3, S: z.few / 4}
		out = append(out, reseeded(kern.name+beyond, exactRole, c, z.seeds, z.fewExpect[k])...)
		for i := -z.first; i <= z.up; i++ {
			s := z.few >> max(0, -i) << max(0, i)
			out = append(out, reseeded(kern.name+beyond, featuresRole, c.byFeatures(s), z.seeds, 0)...)
		}
	}
	return out
}

// byFeatures returns the case of random features method on the same problem.
func (c Case) byFeatures(s int) Case {
	c.Method, c.LambdaP, c.Tol, c.S = RandomFeatures, 0, 0, s
	return c
}

func figure1Tables(r *Report) []*plots.Table {
	t := &plots.Table{
		Title: "Figure 1: " + r.Title,
		Caption: "Medians of the seeds, and the least and most. Seconds: of training, K and Z included. The exact method is Algorithm 1 with λ_p = λ = 0.01, " +
			"τ = 10⁻³; random features: ridge regression on s features, the same λ. " + r.dataCaption(),
		Columns: []plots.Column{
			{Name: "kernel"}, {Name: "n"}, {Name: "method"}, {Name: "s"}, {Name: "seeds", Align: plots.Right}, textual("error (%)"), textual("time (s)"), textual("iterations"),
		},
	}
	return r.curveTable(t, []string{exactRole, featuresRole}, bySketch, func(row, role string, p *spot) []any {
		return []any{strings.TrimSuffix(row, beyond), r.pointsOf(row), role, p.c.S}
	})
}

// dataCaption says what data and which scale a figure is of.
func (r *Report) dataCaption() string {
	var parts, names []string
	sizes, firsts := map[string][]int{}, map[string]*Entry{} // of a data set
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Result.Ran() {
			d := e.Result.Data
			names, sizes[d.Name], firsts[d.Name] = once(names, d.Name), once(sizes[d.Name], d.N), cmp.Or(firsts[d.Name], e)
		}
	}
	for _, name := range names {
		e := firsts[name]
		text := firstUpper(e.Result.Data.Title)
		if len(sizes[name]) == 1 {
			text = fmt.Sprintf("%s: %s", text, e.dataText())
		} else if e.Result.Data.Note != "" {
			text += " (its first n training rows)"
		}
		parts = append(parts, text)
	}
	return strings.Join(append(parts, scaleText(r.Scale)), ". ")
}

func figure1Figures(r *Report) []Figure {
	var panels []*plots.Figure
	for _, row := range r.Rows() {
		if strings.HasSuffix(row, beyond) {
			continue
		}
		e := &plots.Figure{Title: row, X: plots.Axis{Label: "random features s", Log: true}, Y: plots.Axis{Label: "test error (%)", Log: true}}
		s := &plots.Figure{Title: row, X: e.X, Y: plots.Axis{Label: "training time (s)", Log: true}}
		c := r.compare(row)
		e.X.Ticks = ticksAt(c.exact, c.features)
		s.X.Ticks = e.X.Ticks
		all := allErrors(append(slices.Clone(c.exact), c.features...))
		lo, hi := ends(all)
		e.Y.Ticks = errorTicks(100*c.mid, 100*lo, 100*hi)
		for _, role := range []string{exactRole, featuresRole} {
			curve := r.curve(row, role, bySketch)
			e.Series = append(e.Series, series(role, curve, place1, errorsOf)...)
			s.Series = append(s.Series, series(role, curve, place1, secondsOf)...)
		}
		if len(e.Series) > 0 {
			panels = append(panels, e, s)
		}
	}
	if len(panels) == 0 {
		return nil
	}
	n, end := 0, " The last point of random features is s = n."
	for _, row := range r.Rows() {
		if strings.HasSuffix(row, beyond) {
			continue
		}
		n = max(n, r.pointsOf(row))
		if r.compare(row).last == nil {
			end = ""
		}
	}
	f := plots.Grid("Random features against the exact method, n = "+thousands(n), 2, panels...)
	f.Caption = "Test error (left) and seconds of training (right) against the number s of random features, which are the whole model of the random features method and only the " +
		"preconditioner of the exact one. Lines: medians of the seeds, bands: least to most." + end + " " + r.dataCaption()
	return append([]Figure{{r.ID, f}}, figure1Beyond(r)...)
}

// figure1Beyond is the figure of the rows in which s goes beyond n.
func figure1Beyond(r *Report) []Figure {
	var panels []*plots.Figure
	n, most := 0, 0.0
	for _, row := range r.Rows() {
		exact, features := allErrors(r.curve(row, exactRole, bySketch)), r.curve(row, featuresRole, bySketch)
		line := series(featuresRole, features, place1, errorsOf)
		if !strings.HasSuffix(row, beyond) || len(line) == 0 || len(exact) == 0 {
			continue
		}
		last := largest(features)
		n, most = r.pointsOf(row), max(most, last.x)
		lo, hi := ends(exact)
		wide := plots.Series{Name: exactRole}
		for _, x := range []float64{smallest(features).x, last.x} { // it has no s: a line across
			wide.AddBand(x, 100*median(exact), 100*lo, 100*hi)
		}
		panels = append(panels, &plots.Figure{
			Title:  strings.TrimSuffix(row, beyond),
			X:      plots.Axis{Label: "random features s", Log: true, Ticks: ticksAt(features)},
			Y:      plots.Axis{Label: "test error (%)", Log: true, Ticks: errorTicks(100*median(exact), 100*lo, 100*slices.Max(allErrors(features)))},
			Series: append([]plots.Series{wide}, line...), VLines: []plots.RefLine{{At: float64(n), Label: "s = n"}},
		})
	}
	if len(panels) == 0 {
		return nil
	}
	f := plots.Grid(fmt.Sprintf("Beyond s = n, on n = %s points", thousands(n)), 2, panels...)
	f.Caption = fmt.Sprintf("Test error of random features on the first n = %s points, with s to %s, and that of the exact method, which has no s. Lines: medians of the seeds, "+
		"bands: least to most. %s", thousands(n), thousands(int(most)), scaleText(r.Scale))
	return []Figure{{r.ID + "-beyond", f}}
}
