package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/plots"
)

// Roles of the entries of figures 1 and 2.
const (
	exactRole    = "exact method"
	featuresRole = "random features"
)

func figure1Plan(scale Scale) []Entry {
	z := figures.Figure1[scale]
	var out []Entry
	for k, w := range figures.Kernels {
		c := Case{Data: z.Data, N: z.N, TestN: z.TestN, Kernel: w.Kernel,
			PrecondSpec: krrlab.PrecondSpec{LambdaP: 0.01},
			Config:      krrlab.Config{Solver: krrlab.PCG, Lambda: 0.01, Tol: 1e-3}}
		for i, expect := range z.Expect[k] {
			c.S = z.Points >> (z.From[k] - i)
			out = append(out, reseeded(w.Name, exactRole, c, z.Seeds, expect)...)
		}
		c.Method, c.Solver, c.LambdaP, c.Tol = RandomFeatures, 0, 0, 0
		for i := z.First; i >= 0; i-- {
			c.S = z.Points >> i
			out = append(out, reseeded(w.Name, featuresRole, c, z.Seeds, 0)...)
		}
	}
	return out
}

// reseeded returns an entry for each seed, all of them tested.
func reseeded(row, role string, c Case, seeds, expect int) []Entry {
	var out []Entry
	for k := range seeds {
		c.Seed = uint64(k + 1)
		out = append(out, Entry{Row: row, Role: role, Case: c, Expect: expect})
	}
	return out
}

func figure1Table(r *Report) *plots.Table {
	return r.curveTable("The exact method is Algorithm 1 with λ_p = λ = 0.01, τ = 10⁻³; random "+
		"features: ridge regression on s features, the same λ.", "kernel", exactRole, featuresRole)
}

// curveTable returns the table with a row for each place of the curves of roles that has a result.
func (r *Report) curveTable(caption, row string, roles ...string) *plots.Table {
	caption = "Medians of the seeds, and the least and most. Seconds: of training, K and Z included. " + caption
	t := r.newTable(caption+" "+r.dataCaption(), row, "method", "n", "s", "seeds :", "error (%) :", "time (s) :",
		"iterations :")
	for _, row := range r.Rows() {
		for _, role := range roles {
			for _, p := range r.curve(row, role) {
				if p.ran == 0 {
					continue
				}
				iterations := plots.Blank()
				if role == exactRole || role == autoRole {
					iterations = spread(p.iterations, "%.0f", "")
				}
				t.Add(row, role, p.result().Data.N, p.width(), p.seedsText(), spread(perCent(p), "%.2f", ""),
					spread(p.seconds, "%.3g", ""), iterations)
			}
		}
	}
	return t
}

// series makes a line of a curve: the medians of of over those of x, with the least and the
// most of the seeds as a band; none if no place was tested.
func series(name string, curve []*sample, x, of func(*sample) []float64) []plots.Series {
	s := plots.Series{Name: name}
	for _, p := range curve {
		if len(p.errors) > 0 {
			lo, hi := ends(of(p))
			s.AddBand(median(x(p)), median(of(p)), lo, hi)
		}
	}
	if len(s.X) == 0 {
		return nil
	}
	return []plots.Series{s}
}

// What series are of.
func placeOf(p *sample) []float64   { return []float64{p.x} }
func secondsOf(p *sample) []float64 { return p.seconds }
func perCent(p *sample) []float64 {
	return floats.ScaleTo(make([]float64, len(p.errors)), 100, p.errors)
}

// dataCaption says what data and which scale a figure is of.
func (r *Report) dataCaption() string {
	var text []string
	for _, e := range r.Entries {
		if e.Result.Ran() {
			text = once(text, firstUpper(e.Result.Data.Title)+".")
		}
	}
	return strings.Join(append(text, firstUpper(string(r.Scale)), "scale."), " ")
}

// side is one of the two panels of a row: the medians of y over those of x.
type side struct {
	x, y     string // labels
	over, of func(*sample) []float64
	paper    string // column of the published table 1 that is x of the paper's point; empty for none
}

// curves returns the figure with the curves of roles, a pair of panels for each row; nil if there is no line.
func (r *Report) curves(title, caption string, roles []string, sides ...side) *plots.Figure {
	var panels []*plots.Figure
	for _, row := range r.ranRows() {
		for _, s := range sides {
			f := &plots.Figure{Title: row, X: plots.Axis{Label: s.x, Log: true}, Y: plots.Axis{Label: s.y, Log: true}}
			for _, role := range roles {
				f.Series = append(f.Series, series(role, r.curve(row, role), s.over, s.of)...)
			}
			if len(f.Series) > 0 {
				f.Series = append(f.Series, r.publishedPoint(row, s.paper)...)
				panels = append(panels, f)
			}
		}
	}
	if len(panels) == 0 {
		return nil
	}
	f := plots.Grid(title, 2, panels...)
	f.Caption = caption + " " + r.dataCaption()
	return f
}

func figure1Plot(r *Report) *plots.Figure {
	n := 0
	for _, row := range r.ranRows() {
		n = max(n, r.any(row).Result.Data.N)
	}
	return r.curves("Random features against the exact method, n = "+plots.Count(n),
		"Test error (left) and seconds of training (right) against the number s of random features, which are the "+
			"whole model of the random features method and only the preconditioner of the exact one; up to s = n. "+
			"Lines: medians of the seeds, bands: least to most.",
		[]string{exactRole, featuresRole},
		side{"random features s", "test error (%)", placeOf, perCent, ""},
		side{"random features s", "training time (s)", placeOf, secondsOf, ""})
}

// allErrors returns the errors of all seeds at all places, ascending.
func allErrors(curve []*sample) []float64 {
	var out []float64
	for _, p := range curve {
		out = append(out, p.errors...)
	}
	slices.Sort(out)
	return out
}

// near is how close to the exact error, as a factor, counts as close.
const near = 1.05

func figure1Verdicts(r *Report) []Verdict {
	gap := &evidence{claim: "the gap of random features persists at s = n: every seed's error is above every one of " +
		"the exact method"}
	flat := &evidence{claim: "s does not change the exact method's error: all s and seeds within 0.1 %"}
	slow := &evidence{claim: "random features take longer to come within 5 % of the exact error than the exact " +
		"method, or do not reach it with s ≤ n"}
	all := []*evidence{gap, flat, slow}
	for _, row := range r.Rows() {
		exact, features := r.curve(row, exactRole), r.curve(row, featuresRole)
		on := row
		if e := r.any(row); e != nil {
			on = fmt.Sprintf("%s, %s training rows", e.Result.Data.Name, plots.Count(e.Result.Data.N))
		}
		if !r.decides(all, on, row, append(slices.Clone(exact), features...)...) {
			continue
		}
		errors, last := allErrors(exact), features[len(features)-1]
		lo, hi := ends(errors)
		least, most := ends(last.errors)
		gap.add(known(least > hi), "%s: %s to %s with s = n = %d, against %s to %s", row,
			percent(least), percent(most), last.c.S, percent(lo), percent(hi))
		flat.add(known(hi-lo <= 0.001+1e-9), "%s: %s to %s", row, percent(lo), percent(hi))
		fastest := slices.MinFunc(exact, func(a, b *sample) int { return cmp.Compare(a.train(), b.train()) })
		quick := fmt.Sprintf("%.0f s for the exact method with s = %d", fastest.train(), fastest.c.S)
		isNear := func(p *sample) bool { return median(p.errors) <= near*median(errors) }
		if i := slices.IndexFunc(features, isNear); i >= 0 {
			p := features[i]
			slow.add(known(p.train() > fastest.train()), "%s: s = %d in %.0f s, against %s", row, p.c.S, p.train(),
				quick)
		} else {
			slow.add(Holds, "%s: not by s = n, in %.0f s, against %s", row, last.train(), quick)
		}
	}
	return verdicts(all)
}

// decides reports whether claims on a row can be judged by samples, all of whose seeds must have run and converged:
// else they are open, or at scale Smoke have no row.
func (r *Report) decides(claims []*evidence, on, row string, by ...*sample) bool {
	if r.Scale == Smoke {
		return false
	}
	complete := len(by) > 0 && !slices.ContainsFunc(by, func(s *sample) bool { return !s.complete() })
	for _, j := range claims {
		j.on = once(j.on, on)
		if !complete {
			j.add(Open, "%s: not all seeds ran and converged", row)
		}
	}
	return complete
}

// verdicts returns what comes of claims.
func verdicts(claims []*evidence) []Verdict {
	var out []Verdict
	for _, j := range claims {
		out = append(out, j.verdict())
	}
	return out
}
