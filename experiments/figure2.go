package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

// The profiles of s, as roles: the paper's s = 20,000, 2.26√(nd) and 0.2n.
const (
	constantRole = "random features, s constant"
	rootRole     = "random features, s = 2.26√(nd)"
	shareRole    = "random features, s = 0.2n"
)

// profiles are the roles of random features in the order of the figure, and roles2 all lines of it.
var (
	profiles = []string{constantRole, rootRole, shareRole}
	roles2   = append([]string{exactRole, autoRole}, profiles...)
)

// profile returns the s of a role at n points in R^d, where the largest n is most. The paper's
// constant, 20,000, is 0.2n (and for MNIST 2.26√(nd)) at n = 100,000, which is 2/9 of its
// largest n, 450,000. Here it is 0.2n at 2/9 of ours.
func profile(role string, n, d, most int) int {
	switch role {
	case constantRole:
		return int(math.Round(0.2 * 2 / 9 * float64(most)))
	case rootRole:
		return int(math.Round(2.26 * math.Sqrt(float64(n)*float64(d))))
	}
	return int(math.Round(0.2 * float64(n)))
}

func figure2Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range figures.Figure2[scale] {
		info, err := datasets.Lookup(w.Data)
		if err != nil {
			panic(err) // the file is ours
		}
		most := w.N[len(w.N)-1]
		c := Case{Data: w.Data, TestN: w.TestN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma},
			Config: krrlab.Config{Lambda: info.Lambda}}
		for _, n := range w.N {
			seeds := w.Seeds
			if n > 20000 {
				seeds = min(seeds, 3)
			}
			e := c
			e.N, e.Solver, e.LambdaP, e.Tol, e.S = n, krrlab.PCG, info.Lambda, 1e-3,
				max(1, int(math.Round(w.Share[0]/w.Share[1]*float64(n))))
			its := int(w.Iterations * math.Pow(float64(n)/float64(most), w.Power))
			out = append(out, reseeded(w.Name, exactRole, e, seeds, its)...)
			for _, role := range profiles {
				f := c
				f.N, f.Method, f.S = n, RandomFeatures, profile(role, n, info.D, most)
				if role == constantRole && w.Constant > 0 {
					f.S = w.Constant
				}
				out = append(out, reseeded(w.Name, role, f, seeds, 0)...)
			}
		}
		for _, n := range w.Auto {
			a := c
			a.N, a.Tol = n, 1e-3
			out = append(out, reseeded(w.Name, autoRole, a, 1, 0)...)
		}
	}
	return out
}

const figure2Caption = "The constant s is 0.2n at 2/9 of the largest n, as the paper's 20,000 is."

func figure2Table(r *Report) *plots.Table {
	return r.curveTable("Gaussian kernel with table 1's σ and λ; the exact method is Algorithm 1 with "+
		"table 1's share of n for s, λ_p = λ and τ = 10⁻³; auto is what the plan chooses, the plan's seconds "+
		"included. "+figure2Caption,
		"data", roles2...)
}

// publishedPoint returns the paper's point beside a row, over a column of its table 1; nothing if there is none.
func (r *Report) publishedPoint(row, column string) []plots.Series {
	i := slices.IndexFunc(figures.Figure2[r.Scale], func(w figure2Row) bool { return w.Name == row && w.Paper != "" })
	if i < 0 || column == "" {
		return nil
	}
	p := printed{"table1", figures.Figure2[r.Scale][i].Paper}
	s := plots.Series{Name: fmt.Sprintf("paper, %v iterations, %v", p.cell("iterations"), p.cell("resources")),
		Style: plots.Points}
	s.Add(p.number(column), 100*p.number("error_rate"))
	return []plots.Series{s}
}

func figure2Plot(r *Report) *plots.Figure {
	return r.curves("Error against data and against time",
		"Test error against the number n of training points (left) and against the seconds of training on them "+
			"(right; the points of a line are the n of the left). Lines: medians of the seeds, bands: least to most. "+
			figure2Caption,
		roles2, side{"training points n", "test error (%)", placeOf, perCent, "n"},
		side{"training time (s)", "test error (%)", secondsOf, perCent, "time"})
}

func figure2Verdicts(r *Report) []Verdict {
	more := &evidence{claim: "the exact method's error is below that of random features with each profile of s at " +
		"the largest n"}
	grow := &evidence{claim: "the exact method's error keeps falling as n grows"}
	time := &evidence{claim: "in the time that the exact method takes at the largest n, random features of no " +
		"profile and no n reach a smaller error"}
	for _, row := range r.Rows() {
		exact := r.curve(row, exactRole)
		last, prev := exact[len(exact)-1], exact[len(exact)-2]
		on := fmt.Sprintf("%s, n to %s", row, plots.Count(last.c.N))
		if !r.decides([]*evidence{more, grow, time}, on, row, last) {
			continue
		}
		if r.decides([]*evidence{grow}, on, row, prev) {
			grow.add(known(median(last.errors) < median(prev.errors)), "%s: %s at n = %d, %s at n = %d", row,
				percent(median(prev.errors)), prev.c.N, percent(median(last.errors)), last.c.N)
		}
		var features, ends []*sample
		for _, role := range profiles {
			curve := r.curve(row, role)
			features, ends = append(features, curve...), append(ends, curve[len(curve)-1])
		}
		if r.decides([]*evidence{more}, on, row, ends...) {
			for i, p := range ends {
				most, least := last.errors[len(last.errors)-1], p.errors[0]
				more.add(known(least > most), "%s, n = %d: at least %s by %s, at most %s exactly", row, p.c.N,
					percent(least),
					profiles[i], percent(most))
			}
		}
		if !r.decides([]*evidence{time}, on, row, features...) {
			continue
		}
		inTime := slices.DeleteFunc(features, func(p *sample) bool { return p.train() > last.train() })
		if len(inTime) > 0 {
			p := slices.MinFunc(inTime, func(a, b *sample) int {
				return cmp.Compare(median(a.errors), median(b.errors))
			})
			time.add(known(median(p.errors) >= median(last.errors)), "%s: %s in %.0f s at best, with n = %d and s = "+
				"%d, against %s in %.0f s",
				row, percent(median(p.errors)), p.train(), p.c.N, p.c.S, percent(median(last.errors)), last.train())
		}
	}
	return verdicts([]*evidence{more, grow, time})
}
