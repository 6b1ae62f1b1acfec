package experiments

import (
	"math"

	"github.com/krrlab/lab/plots"
)

// Roles of table 2: the preconditioner's ridge.
const (
	asLambda  = "λ_p = λ"
	tenLambda = "λ_p = 10λ"
	asPrinted = "λ_p as printed"
)

// table2Plan runs each data set with the s of table 2 and λ_p = λ, 10λ and, where it is
// another one (COVTYPE), the λ_p printed.
func table2Plan(scale Scale) []Entry {
	var out []Entry
	for _, w := range rowsOf("table2", scale) {
		c := w.pcg(w.width("table2", "s"), 1)
		out = append(out, w.seeded(asLambda, c, "table1", "iterations")...)
		c.LambdaP = 10 * c.Lambda
		out = append(out, w.seeded(tenLambda, c, "table2", "iterations")...)
		if p := (printed{"table2", w.paper}).number("lambda_p"); !math.IsNaN(p) && !isTen(p, c.Lambda) {
			c.LambdaP = p
			out = append(out, w.seeded(asPrinted, c, "table2", "iterations")...)
		}
	}
	return out
}

func isTen(lambdaP, lambda float64) bool { return math.Abs(lambdaP-10*lambda) < 1e-9*lambdaP }

// publishedFor returns the published row that is beside an entry's s and λ_p, none if there is none, and what its
// columns of iterations and time begin with. ADULT's λ_p is blank in the paper: its numbers are set beside 10λ.
func publishedFor(e *Entry) (p printed, prefix string) {
	c, p := e.Case, printed{"table2", e.Paper}
	if c.LambdaP != c.Lambda {
		at := p.number("lambda_p")
		if at == c.LambdaP || isTen(c.LambdaP, c.Lambda) && (math.IsNaN(at) || isTen(at, c.Lambda)) {
			return p, ""
		}
		return printed{}, ""
	}
	one, four := printed{"table1", e.Paper}, printed{"table4", e.Paper}
	switch float64(c.S) {
	case one.number("s"):
		return one, ""
	case four.number("s"):
		return four, "proposed_"
	}
	return printed{}, ""
}

func table2Table(r *Report) *plots.Table {
	t := r.newTable(
		r.caption("Algorithm 1 with the s of the paper's table 2. The published numbers beside λ_p = λ are "+
			"those of table 1 or 4, where s is the same; ADULT's λ_p is blank in the paper, and its numbers stand "+
			"beside 10λ. Against λ is ours over ours with λ_p = λ."),
		"data", "s", "λ_p", "iterations :", "published :", "ratio %.2f", "against λ %.2f",
		"time (s) %.1f", "published (s) %.1f", "ratio %.2f")
	for _, row := range r.ranRows() {
		base := r.sampleOf(row, asLambda).median()
		for _, role := range []string{asLambda, tenLambda, asPrinted} {
			s := r.sampleOf(row, role)
			if s.first == nil {
				continue
			}
			p, prefix := publishedFor(s.first)
			t.Add(row, s.c.S, s.c.LambdaP, s.besideIterations(p, prefix+"iterations"), number(s.median()/base),
				s.besideSeconds(p, prefix+"time"))
		}
	}
	return t
}

func table2Verdicts(r *Report) []Verdict {
	helps := evidence{claim: "λ_p = 10λ helps on MNIST and not on ADULT"}
	for _, name := range []string{"MNIST", "ADULT"} {
		a, b := r.published(name, asLambda), r.published(name, tenLambda)
		if a == nil || b == nil {
			helps.missing(name)
			continue
		}
		with, without := r.sampleOf(a.Row, tenLambda), r.sampleOf(a.Row, asLambda)
		fewer := below(with.needs(), without.needs())
		if name == "ADULT" {
			fewer = not(fewer)
		}
		helps.add(fewer, "%s %s with λ, %s with 10λ", name, without.words(), with.words())
	}
	agree := r.iterationsAgree("iterations of table 2", func(row string) (*sample, float64) {
		s := r.sampleOf(row, asPrinted)
		if s.seeds == 0 {
			s = r.sampleOf(row, tenLambda)
		}
		p := r.printed("table2", row)
		if math.IsNaN(p.number("lambda_p")) { // ADULT's is blank
			return s, math.NaN()
		}
		return s, p.number("iterations")
	})
	return []Verdict{helps.verdict(), agree}
}
