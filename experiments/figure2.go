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

// Roles of the random features method, which differ in the number s of features. The paper has s = 20,000, 2.26√(nd)
// and 0.2n.
const (
	constantRole = "random features, s constant"
	rootRole     = "random features, s = 2.26√(nd)"
	shareRole    = "random features, s = 0.2n"
)

// profiles are the roles of random features in the order of the figure; figure2Roles are the roles of all its lines.
var (
	profiles     = []string{constantRole, rootRole, shareRole}
	figure2Roles = append([]string{exactRole, autoRole}, profiles...)
)

// profile returns the number s of features of a role for n points in R^d. The paper's constant s, 20,000, equals 0.2n
// (and for MNIST 2.26√(nd)) at n = 100,000, which is 2/9 of its largest n, 450,000. Our constant is 0.2n at 2/9 of
// largestN.
func profile(role string, n, d, largestN int) int {
	switch role {
	case constantRole:
		return int(math.Round(0.2 * 2 / 9 * float64(largestN)))
	case rootRole:
		return int(math.Round(2.26 * math.Sqrt(float64(n)*float64(d))))
	}
	return int(math.Round(0.2 * float64(n)))
}

// figure2Plan returns the runs of the exact method and of the profiles of random features for all n of each data set,
// and of Auto for some n.
func figure2Plan(scale Scale) []Entry {
	var out []Entry
	for _, row := range figures.Figure2[scale] {
		info := must(datasets.Lookup(row.Data))
		largestN := row.N[len(row.N)-1]
		c := Case{Data: row.Data, TestN: row.TestN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma},
			Config: krrlab.Config{Lambda: info.Lambda}}
		for _, n := range row.N {
			seeds := row.Seeds
			if n > 20000 {
				seeds = min(seeds, 3)
			}
			exact := c
			exact.N, exact.Solver, exact.LambdaP, exact.Tol, exact.S = n, krrlab.PCG, info.Lambda, 1e-3,
				max(1, int(math.Round(row.Share[0]/row.Share[1]*float64(n))))
			iterations := int(row.Iterations * math.Pow(float64(n)/float64(largestN), row.Power))
			out = append(out, entriesPerSeed(row.Name, exactRole, exact, seeds, iterations)...)
			for _, role := range profiles {
				features := c
				features.N, features.Method, features.S = n, RandomFeatures, profile(role, n, info.D, largestN)
				if role == constantRole && row.Constant > 0 {
					features.S = row.Constant
				}
				out = append(out, entriesPerSeed(row.Name, role, features, seeds, 0)...)
			}
		}
		for _, n := range row.Auto {
			auto := c
			auto.N, auto.Tol = n, 1e-3
			out = append(out, entriesPerSeed(row.Name, autoRole, auto, 1, 0)...)
		}
	}
	return out
}

// figure2Caption explains the profile with constant s.
const figure2Caption = "The constant s is 0.2n at 2/9 of the largest n, as the paper's 20,000 is."

// figure2Table returns a table of all points of the figure.
func figure2Table(r *Report) *plots.Table {
	return r.curveTable("Gaussian kernel with table 1's σ and λ; the exact method is Algorithm 1 with "+
		"table 1's share of n for s, λ_p = λ and τ = 10⁻³; auto is what the plan chooses, the plan's seconds "+
		"included. "+figure2Caption,
		"data", figure2Roles...)
}

// publishedPoint returns the paper's error for a row, over a column of the published table 1, as a series with one
// point. It returns nil if there is none.
func (r *Report) publishedPoint(row, column string) []plots.Series {
	i := slices.IndexFunc(figures.Figure2[r.Scale], func(candidate figure2Row) bool {
		return candidate.Name == row && candidate.Paper != ""
	})
	if i < 0 || column == "" {
		return nil
	}
	published := publishedRow{"table1", figures.Figure2[r.Scale][i].Paper}
	point := plots.Series{Name: fmt.Sprintf("paper, %v iterations, %v", published.cell("iterations"),
		published.cell("resources")),
		Style: plots.Points}
	point.Add(published.number(column), 100*published.number("error_rate"))
	return []plots.Series{point}
}

// figure2Plot draws the errors against n and against the seconds of training, with two panels for each data set.
func figure2Plot(r *Report) *plots.Figure {
	return r.curveFigure("Error against data and against time",
		"Test error against the number n of training points (left) and against the seconds of training on them "+
			"(right; the points of a line are the n of the left). Lines: medians of the seeds, bands: least to most. "+
			figure2Caption,
		figure2Roles, panel{"training points n", "test error (%)", positionOf, errorPercents, "n"},
		panel{"training time (s)", "test error (%)", secondsOf, errorPercents, "time"})
}

// figure2Verdicts judges three claims about the error of the exact method: at the largest n it is below that of random
// features, it is also below that at the second largest n, and random features do not reach it in the same time.
func figure2Verdicts(r *Report) []Verdict {
	lowerError := &evidence{claim: "the exact method's error is below that of random features with each profile of s " +
		"at the largest n"}
	falling := &evidence{claim: "the exact method's error keeps falling as n grows"}
	faster := &evidence{claim: "in the time that the exact method takes at the largest n, random features of no " +
		"profile and no n reach a smaller error"}
	for _, row := range r.Rows() {
		exact := r.curve(row, exactRole)
		largest, previous := exact[len(exact)-1], exact[len(exact)-2]
		basis := fmt.Sprintf("%s, n to %s", row, plots.FormatCount(largest.firstCase.N))
		if !r.canJudge([]*evidence{lowerError, falling, faster}, basis, row, largest) {
			continue
		}
		if r.canJudge([]*evidence{falling}, basis, row, previous) {
			previousError, largestError := median(previous.errors), median(largest.errors)
			falling.addRow(outcomeOf(largestError < previousError), "%s: %s at n = %d, %s at n = %d", row,
				percentText(previousError), previous.firstCase.N, percentText(largestError), largest.firstCase.N)
		}
		var features, atLargestN []*sample
		for _, role := range profiles {
			curve := r.curve(row, role)
			features, atLargestN = append(features, curve...), append(atLargestN, curve[len(curve)-1])
		}
		if r.canJudge([]*evidence{lowerError}, basis, row, atLargestN...) {
			for i, point := range atLargestN {
				maxExact, minFeatures := largest.errors[len(largest.errors)-1], point.errors[0]
				lowerError.addRow(outcomeOf(minFeatures > maxExact),
					"%s, n = %d: at least %s by %s, at most %s exactly",
					row, point.firstCase.N, percentText(minFeatures), profiles[i], percentText(maxExact))
			}
		}
		if !r.canJudge([]*evidence{faster}, basis, row, features...) {
			continue
		}
		inTime := slices.DeleteFunc(features, func(point *sample) bool {
			return point.trainSeconds() > largest.trainSeconds()
		})
		if len(inTime) > 0 {
			point := slices.MinFunc(inTime, func(a, b *sample) int {
				return cmp.Compare(median(a.errors), median(b.errors))
			})
			featuresError, exactError := median(point.errors), median(largest.errors)
			faster.addRow(outcomeOf(featuresError >= exactError), "%s: %s in %.0f s at best, with n = %d and s = "+
				"%d, against %s in %.0f s", row, percentText(featuresError), point.trainSeconds(), point.firstCase.N,
				point.firstCase.S, percentText(exactError), largest.trainSeconds())
		}
	}
	return verdicts([]*evidence{lowerError, falling, faster})
}
