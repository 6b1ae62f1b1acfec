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

var figure2 = Experiment{
	ID:       "figure2",
	Title:    "Error over n and over time, the exact method and random features",
	Section:  "section 6.1, figure 2",
	Plan:     figure2Plan,
	Table:    figure2Table,
	Plot:     figure2Plot,
	Verdicts: figure2Verdicts,
}

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

// figure2Row is one data set of figure 2.
type figure2Row struct {
	name  string
	data  string
	n     []int
	testN int     // 0: all
	share float64 // s over n of the exact method: the paper's in table 1
	seeds int     // up to 20,000 points, at most three beyond
	its   float64 // iterations expected at the largest n
	grows float64 // and the power of n they grow with: n^0.5 on COVTYPE, from 80 at 1,000 to 213 at 5,000
	first int     // the paper's constant s, if not by profile
	auto  []int   // n of Auto, one seed each; 0: all rows
	paper string  // row of the published table 1 that is beside it
}

var figure2Rows = map[Scale][]figure2Row{
	Smoke: {
		{name: "built-in digits", data: "synthetic-digits", n: []int{100, 200, 400}, testN: 300, share: 1. / 6,
			seeds: 5},
		{name: "built-in classes", data: "synthetic-classes", n: []int{100, 200, 400}, testN: 300, share: 0.12,
			seeds: 5},
	},
	Laptop: {
		{name: "MNIST", data: "mnist", n: []int{1000, 2000, 5000, 10000, 20000, 50000}, share: 1. / 6, seeds: 5,
			its: 110},
		{name: "COVTYPE, a subset", data: "covtype-sample", n: []int{1000, 2000, 5000, 10000, 20000, 50000},
			share: 55000. / 464809, seeds: 5, its: 650, grows: 0.5,
			auto: []int{1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 0}, paper: "COVTYPE"},
	},
	Paper: {
		{name: "MNIST, generated beyond 60,000", data: "mnist-infinite", n: []int{10000, 30000, 100000, 200000, 450000},
			share: 35000. / 400000, seeds: 1, its: 100, first: 20000},
		{name: "COVTYPE", data: "covtype", n: []int{10000, 30000, 100000, 200000, 464809}, share: 55000. / 464809,
			seeds: 1,
			its:   555, grows: 0.2, first: 20000, paper: "COVTYPE"},
	},
}

func figure2Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range figure2Rows[scale] {
		info, err := datasets.Lookup(w.data)
		if err != nil {
			panic(err) // the sets are written down above
		}
		most := w.n[len(w.n)-1]
		c := Case{Data: w.data, TestN: w.testN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma},
			Config: krrlab.Config{Lambda: info.Lambda}}
		for _, n := range w.n {
			seeds := w.seeds
			if n > 20000 {
				seeds = min(seeds, 3)
			}
			e := c
			e.N, e.Solver, e.LambdaP, e.Tol, e.S = n, krrlab.PCG, info.Lambda, 1e-3,
				max(1, int(math.Round(w.share*float64(n))))
			its := int(w.its * math.Pow(float64(n)/float64(most), w.grows))
			out = append(out, reseeded(w.name, exactRole, e, seeds, its)...)
			for _, role := range profiles {
				f := c
				f.N, f.Method, f.S = n, RandomFeatures, profile(role, n, info.D, most)
				if role == constantRole && w.first > 0 {
					f.S = w.first
				}
				out = append(out, reseeded(w.name, role, f, seeds, 0)...)
			}
		}
		for _, n := range w.auto {
			a := c
			a.N, a.Tol = n, 1e-3
			out = append(out, reseeded(w.name, autoRole, a, 1, 0)...)
		}
	}
	return out
}

const figure2Caption = "The constant s is 0.2n at 2/9 of the largest n, as the paper's 20,000 is."

func figure2Table(r *Report) *plots.Table {
	return r.curveTable("Figure 2: ", "Gaussian kernel with table 1's σ and λ; the exact method is Algorithm 1 with "+
		"table 1's share of n for s, λ_p = λ and τ = 10⁻³; auto is what the plan chooses, the plan's seconds "+
		"included. "+figure2Caption,
		"data", roles2...)
}

// publishedPoint returns the paper's point beside a row, over a column of its table 1; nothing if there is none.
func (r *Report) publishedPoint(row, column string) []plots.Series {
	i := slices.IndexFunc(figure2Rows[r.Scale], func(w figure2Row) bool { return w.name == row && w.paper != "" })
	if i < 0 || column == "" {
		return nil
	}
	p := printed{"table1", figure2Rows[r.Scale][i].paper}
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
