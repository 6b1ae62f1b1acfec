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

// figure1Plan returns the runs of the exact method and of random features with increasing s for each kernel.
func figure1Plan(scale Scale) []Entry {
	sizes := figures.Figure1[scale]
	var out []Entry
	for k, row := range figures.Kernels {
		c := Case{Data: sizes.Data, N: sizes.N, TestN: sizes.TestN, Kernel: row.Kernel,
			PrecondSpec: krrlab.PrecondSpec{LambdaP: 0.01},
			Config:      krrlab.Config{Solver: krrlab.PCG, Lambda: 0.01, Tol: 1e-3}}
		for i, iterations := range sizes.Expect[k] {
			c.S = sizes.Points >> (sizes.From[k] - i)
			out = append(out, entriesPerSeed(row.Name, exactRole, c, sizes.Seeds, iterations)...)
		}
		c.Method, c.Solver, c.LambdaP, c.Tol = RandomFeatures, 0, 0, 0
		for i := sizes.First; i >= 0; i-- {
			c.S = sizes.Points >> i
			out = append(out, entriesPerSeed(row.Name, featuresRole, c, sizes.Seeds, 0)...)
		}
	}
	return out
}

// entriesPerSeed returns an entry of the case for each seed. The test error is measured for all of them.
func entriesPerSeed(row, role string, c Case, seeds, expectedIterations int) []Entry {
	var out []Entry
	for k := range seeds {
		c.Seed = uint64(k + 1)
		out = append(out, Entry{Row: row, Role: role, Case: c, ExpectedIterations: expectedIterations})
	}
	return out
}

// figure1Table returns a table of all points of the figure.
func figure1Table(r *Report) *plots.Table {
	return r.curveTable("The exact method is Algorithm 1 with λ_p = λ = 0.01, τ = 10⁻³; random "+
		"features: ridge regression on s features, the same λ.", "kernel", exactRole, featuresRole)
}

// curveTable returns a table of the curves of the roles. It has a row for each position with a result.
func (r *Report) curveTable(caption, row string, roles ...string) *plots.Table {
	caption = "Medians of the seeds, and the least and most. Seconds: of training, K and Z included. " + caption
	t := r.newTable(caption+" "+r.dataCaption(), row, "method", "n", "s", "seeds :", "error (%) :", "time (s) :",
		"iterations :")
	for _, row := range r.Rows() {
		for _, role := range roles {
			for _, point := range r.curve(row, role) {
				if point.ranSeeds == 0 {
					continue
				}
				iterations := plots.Blank()
				if role == exactRole || role == autoRole {
					iterations = spreadCell(point.iterations, "%.0f", "")
				}
				t.Add(row, role, point.result().Data.N, point.featuresCell(), point.seedsCell(),
					spreadCell(errorPercents(point), "%.2f", ""),
					spreadCell(point.seconds, "%.3g", ""), iterations)
			}
		}
	}
	return t
}

// series returns a series with the medians of y over the medians of x, for the positions of a curve that were tested. A
// band shows the minimum and the maximum of y. It returns nil if no position was tested.
func series(name string, curve []*sample, x, y func(*sample) []float64) []plots.Series {
	s := plots.Series{Name: name}
	for _, point := range curve {
		if len(point.errors) > 0 {
			lo, hi := minMax(y(point))
			s.AddBand(median(x(point)), median(y(point)), lo, hi)
		}
	}
	if len(s.X) == 0 {
		return nil
	}
	return []plots.Series{s}
}

// positionOf, secondsOf and errorPercents return the quantities of a sample on the axes of figures 1 and 2.
func positionOf(point *sample) []float64 { return []float64{point.position} }
func secondsOf(point *sample) []float64  { return point.seconds }
func errorPercents(point *sample) []float64 {
	return floats.ScaleTo(make([]float64, len(point.errors)), 100, point.errors)
}

// dataCaption returns the titles of the data and the scale, for a caption.
func (r *Report) dataCaption() string {
	var sentences []string
	for _, e := range r.Entries {
		if e.Result.Ran() {
			sentences = appendUnique(sentences, firstUpper(e.Result.Data.Title)+".")
		}
	}
	return strings.Join(append(sentences, firstUpper(string(r.Scale)), "scale."), " ")
}

// panel describes one of the two panels of a row, which shows the medians of yValues over those of xValues.
type panel struct {
	xLabel, yLabel   string
	xValues, yValues func(*sample) []float64
	paperColumn      string // column of the published table 1 with the x of the paper's point; empty for no point
}

// curveFigure returns a figure with the curves of the roles, two panels per row of the report, or nil if there are no
// curves.
func (r *Report) curveFigure(title, caption string, roles []string, sides ...panel) *plots.Figure {
	var panels []*plots.Figure
	for _, row := range r.rowsWithRuns() {
		for _, side := range sides {
			f := &plots.Figure{Title: row, X: plots.Axis{Label: side.xLabel, Log: true},
				Y: plots.Axis{Label: side.yLabel, Log: true}}
			for _, role := range roles {
				f.Series = append(f.Series, series(role, r.curve(row, role), side.xValues, side.yValues)...)
			}
			if len(f.Series) > 0 {
				f.Series = append(f.Series, r.publishedPoint(row, side.paperColumn)...)
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

// figure1Plot draws the errors and the seconds of training against s, with two panels for each kernel.
func figure1Plot(r *Report) *plots.Figure {
	n := 0
	for _, row := range r.rowsWithRuns() {
		n = max(n, r.firstRanEntry(row).Result.Data.N)
	}
	return r.curveFigure("Random features against the exact method, n = "+plots.FormatCount(n),
		"Test error (left) and seconds of training (right) against the number s of random features, which are the "+
			"whole model of the random features method and only the preconditioner of the exact one; up to s = n. "+
			"Lines: medians of the seeds, bands: least to most.",
		[]string{exactRole, featuresRole},
		panel{"random features s", "test error (%)", positionOf, errorPercents, ""},
		panel{"random features s", "training time (s)", positionOf, secondsOf, ""})
}

// allErrors returns the errors of all seeds at all positions of a curve, ascending.
func allErrors(curve []*sample) []float64 {
	var out []float64
	for _, point := range curve {
		out = append(out, point.errors...)
	}
	slices.Sort(out)
	return out
}

// closeFactor is the largest ratio of an error to the error of the exact method for which the two count as close.
const closeFactor = 1.05

// figure1Verdicts judges three claims: the error of random features with s = n is above that of the exact method, the
// latter does not depend on s, and random features take longer to come close to it.
func figure1Verdicts(r *Report) []Verdict {
	gap := &evidence{claim: "the gap of random features persists at s = n: every seed's error is above every one of " +
		"the exact method"}
	flat := &evidence{claim: "s does not change the exact method's error: all s and seeds within 0.1 %"}
	slower := &evidence{claim: "random features take longer to come within 5 % of the exact error than the exact " +
		"method, or do not reach it with s ≤ n"}
	claims := []*evidence{gap, flat, slower}
	for _, row := range r.Rows() {
		exact, features := r.curve(row, exactRole), r.curve(row, featuresRole)
		basis := row
		if e := r.firstRanEntry(row); e != nil {
			basis = fmt.Sprintf("%s, %s training rows", e.Result.Data.Name, plots.FormatCount(e.Result.Data.N))
		}
		if !r.canJudge(claims, basis, row, append(slices.Clone(exact), features...)...) {
			continue
		}
		errors, largestS := allErrors(exact), features[len(features)-1]
		lo, hi := minMax(errors)
		minError, maxError := minMax(largestS.errors)
		gap.addRow(outcomeOf(minError > hi), "%s: %s to %s with s = n = %d, against %s to %s", row,
			percentText(minError), percentText(maxError), largestS.firstCase.S, percentText(lo), percentText(hi))
		flat.addRow(outcomeOf(hi-lo <= 0.001+1e-9), "%s: %s to %s", row, percentText(lo), percentText(hi))
		fastest := slices.MinFunc(exact, func(a, b *sample) int {
			return cmp.Compare(a.trainSeconds(), b.trainSeconds())
		})
		fastestText := fmt.Sprintf("%.0f s for the exact method with s = %d", fastest.trainSeconds(),
			fastest.firstCase.S)
		isClose := func(point *sample) bool { return median(point.errors) <= closeFactor*median(errors) }
		if i := slices.IndexFunc(features, isClose); i >= 0 {
			point := features[i]
			slower.addRow(outcomeOf(point.trainSeconds() > fastest.trainSeconds()), "%s: s = %d in %.0f s, against %s",
				row,
				point.firstCase.S, point.trainSeconds(), fastestText)
		} else {
			slower.addRow(Holds, "%s: not by s = n, in %.0f s, against %s", row, largestS.trainSeconds(), fastestText)
		}
	}
	return verdicts(claims)
}

// canJudge reports whether the claims can be judged for a row by the samples, and adds basis, the data of the row, to
// the claims. All seeds of the samples must have run and converged; otherwise canJudge also adds to each claim that the
// row leaves it open. At scale Smoke it returns false and adds nothing.
func (r *Report) canJudge(claims []*evidence, basis, row string, samples ...*sample) bool {
	if r.Scale == Smoke {
		return false
	}
	complete := len(samples) > 0 && !slices.ContainsFunc(samples, func(s *sample) bool { return !s.complete() })
	for _, claim := range claims {
		claim.basis = appendUnique(claim.basis, basis)
		if !complete {
			claim.addRow(Open, "%s: not all seeds ran and converged", row)
		}
	}
	return complete
}

// verdicts returns the verdicts on the claims.
func verdicts(claims []*evidence) []Verdict {
	var out []Verdict
	for _, claim := range claims {
		out = append(out, claim.verdict())
	}
	return out
}
