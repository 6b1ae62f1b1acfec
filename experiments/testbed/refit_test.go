package testbed_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/experiments/testbed"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// fitted contains the problems of the testbed to which the rules of auto may be fitted. The rules are judged on the
// other problems.
const fitted = "abalone usps mnist ijcnn1 adult covtype-sample covtype7-sample cal-housing protein pairs curve clusters " +
	"cal-laplacian"

// measurement contains the result of the pilot sample of a problem, and the measured iterations to 10⁻³.
type measurement struct {
	cost.IterationModel
	name       string
	fitted     bool               // the rules may be fitted to the problem
	iterations map[string]float64 // iterations with each preconditioner, +Inf if it failed
}

// measurements returns the pilot samples and the kept iterations of the problems of at most n points whose data are on
// this machine. The iterations of a preconditioner with rank are those of rank n/20, the geometric mean of the ranks
// n/40 and n/10.
func measurements(t *testing.T, n int, problems ...string) (list []measurement) {
	file := must(testbed.Open("../results/testbed.jsonl"))
	for _, problem := range testbed.Problems() {
		if len(problems) > 0 && !slices.Contains(problems, problem.Name) {
			continue
		}
		draws := map[float64]map[string]map[int][]float64{} // iterations of the draws by λ, preconditioner and n/rank
		size := 0
		for _, line := range file.Lines {
			if line.Problem != problem.Name || line.N > n || line.N < 3000 {
				continue
			}
			if draws[line.Lambda] == nil {
				draws[line.Lambda] = map[string]map[int][]float64{}
			}
			if draws[line.Lambda][line.Preconditioner] == nil {
				draws[line.Lambda][line.Preconditioner] = map[int][]float64{}
			}
			iterations := math.Inf(1)
			if len(line.Reached) > 1 {
				iterations = float64(line.Reached[1])
			}
			share := 0
			if line.Rank > 0 {
				share = int(math.Round(float64(line.N) / float64(line.Rank)))
			}
			size = line.N
			draws[line.Lambda][line.Preconditioner][share] = append(draws[line.Lambda][line.Preconditioner][share],
				iterations)
		}
		if size == 0 {
			continue
		}
		data, err := problem.Data(t.Context(), size, []string{os.Getenv("KRRLAB_DATA")})
		if err != nil {
			t.Logf("%s: left out: %v", problem.Name, err)
			continue
		}
		for lambda, byPreconditioner := range draws {
			m := measurement{name: fmt.Sprintf("%s, λ = %.2g", problem.Name, lambda), iterations: map[string]float64{},
				fitted: slices.Contains(strings.Fields(fitted), problem.Name)}
			for name, ranks := range byPreconditioner {
				median := func(share int) float64 {
					v := slices.Sorted(slices.Values(ranks[share]))
					return v[(len(v)-1)/2]
				}
				if _, alone := ranks[0]; alone {
					m.iterations[name] = median(0)
				} else if len(ranks[40]) > 0 && len(ranks[10]) > 0 {
					m.iterations[name] = math.Sqrt(median(40) * median(10))
					m.iterations[name+" n/40"], m.iterations[name+" n/10"] = median(40), median(10)
				}
			}
			lab := must(krrlab.New(data, krrlab.Config{Kernel: problem.Kernel, Lambda: lambda, Tol: 1e-3}))
			plan := must(lab.Plan(t.Context(), krrlab.PlanOptions{}))
			v := plan.Pilot
			m.IterationModel = cost.IterationModel{Kernel: problem.Kernel, N: size, SampleSize: v.SampleSize, Lambda: lambda,
				PilotResidual: v.Residual, LowRank: v.LowRank, Decay: v.Decay, MeanRowSum: v.MeanRowSum,
				LargestRowSum: v.LargestRowSum, MaxDiagonal: 1}
			list = append(list, m)
			lab.Free()
		}
	}
	slices.SortFunc(list, func(a, b measurement) int { return cmp.Compare(a.name, b.name) })
	return list
}

// gamma returns γ/λ, on which the rule depends.
func (m *measurement) gamma() float64 {
	r := float64(max(m.SampleSize, m.DefaultRank()))
	return min((float64(m.N)-r)*m.PilotResidual/r, m.LargestRowSum) / m.Lambda
}

// pivots returns the measured iterations with pivots and with the ridge that the rule chooses.
func (m *measurement) pivots() float64 {
	if m.PivotRidge(m.DefaultRank()) == m.Lambda {
		return m.iterations["rpcholesky"]
	}
	return m.iterations["rpcholesky lambda-p=10"]
}

// part returns whether the rules may be fitted to the problem, as text.
func (m *measurement) part() string {
	if m.fitted {
		return "fitted"
	}
	return "kept aside"
}

// rule is a part of the rule of thumb: it predicts c·x^p iterations.
type rule struct {
	name     string
	x        func(m *measurement) float64
	measured func(m *measurement) float64
	inCode   func(m *measurement) float64
}

// TestRefit fits the rule of thumb of auto to the kept runs of the problems in fitted: c·(1+γ/λ)^p iterations with
// pivots, c'·k^q iterations with a sparse inverse next to pivots, where the code predicts k, and the largest γ/λ for
// λ_p = λ. On the other problems, the rules in the code must predict nearly as well as the fitted ones. A problem
// counts if the preconditioner takes at most 0.8 of the iterations without one.
func TestRefit(t *testing.T) {
	if os.Getenv("KRRLAB_PLAN") != "refit" {
		t.Skip("KRRLAB_PLAN=refit fits the rule of thumb of auto to the kept runs; make bench-plan PLAN=refit sets it")
	}
	all := measurements(t, 5000)
	combined := func(m *measurement) float64 {
		return recipe.Vecchia{S: m.N / 40, Neighbors: 15}.Iterations(&m.IterationModel)
	}
	bothIterations := func(m *measurement) float64 {
		return math.Sqrt(m.iterations["vecchia neighbors=10 n/40"] * m.iterations["vecchia neighbors=30 n/40"])
	}
	for _, r := range []rule{
		{"pivots", func(m *measurement) float64 { return 1 + m.gamma() }, (*measurement).pivots,
			func(m *measurement) float64 { return m.PivotIterations(m.DefaultRank()) }},
		{"both", combined, bothIterations, combined},
	} {
		var x, y []float64
		counts := func(m *measurement) bool {
			v := r.measured(m)
			return !math.IsInf(v, 1) && v <= 0.8*m.iterations["none"]
		}
		for i := range all {
			if m := &all[i]; m.fitted && counts(m) {
				x, y = append(x, math.Log(r.x(m))), append(y, math.Log(r.measured(m)))
			}
		}
		if len(x) < 10 {
			t.Skipf("%d runs to fit to: the data sets are not here", len(x))
		}
		c, p := stat.LinearRegression(x, y, nil, false)
		errors := map[string][]float64{} // squared logarithms of predicted ÷ measured
		for i := range all {
			m := &all[i]
			if !counts(m) {
				continue
			}
			t.Logf("%-34s %-10s γ/λ %-9.3g %s: %4.0f, by the code %4.0f, by the fit %4.0f", m.name, m.part(), m.gamma(), r.name,
				r.measured(m), r.inCode(m), math.Exp(c)*math.Pow(r.x(m), p))
			code, fit := math.Log(r.inCode(m)/r.measured(m)), c+p*math.Log(r.x(m))-math.Log(r.measured(m))
			errors["code, "+m.part()] = append(errors["code, "+m.part()], code*code)
			errors["fit, "+m.part()] = append(errors["fit, "+m.part()], fit*fit)
		}
		rms := map[string]float64{}
		for _, name := range slices.Sorted(maps.Keys(errors)) {
			rms[name] = math.Sqrt(stat.Mean(errors[name], nil))
			t.Logf("%s by %s: a factor of %.2f off (RMS) on %d", r.name, name, math.Exp(rms[name]), len(errors[name]))
		}
		t.Logf("%s: fitted %.3g·x^%.3g", r.name, math.Exp(c), p)
		if code, fit := rms["code, kept aside"], rms["fit, kept aside"]; code > 1.1*fit {
			t.Errorf("%s: on problems kept aside, the code is off by a factor of %.2f, the fit by %.2f", r.name, math.Exp(code),
				math.Exp(fit))
		}
	}
	checkRanks(t, all)
	loss := map[string]map[float64][]float64{"fitted": {}, "kept aside": {}} // logarithms of iterations ÷ least
	for i := range all {
		m := &all[i]
		same, ten := m.iterations["rpcholesky"], m.iterations["rpcholesky lambda-p=10"]
		least := min(same, ten, m.iterations["rpcholesky spectral=true"])
		if math.IsInf(least, 1) || least > 0.8*m.iterations["none"] {
			continue
		}
		limits := loss[m.part()]
		for _, limit := range []float64{0, 10, 30, 100, 300, 1000, 3000, math.Inf(1)} {
			v := ten
			if m.gamma() <= limit {
				v = same
			}
			limits[limit] = append(limits[limit], math.Log(min(v, 500)/least))
		}
		v := math.Log(min(m.pivots(), 500) / least)
		limits[-1] = append(limits[-1], v)
		t.Logf("%-34s %-10s γ/λ %-9.3g λ_p = λ %4.0f, 10λ %4.0f, spectral %4.0f; the rule takes %.2f of the least", m.name,
			m.part(), m.gamma(), same, ten, m.iterations["rpcholesky spectral=true"], math.Exp(v))
	}
	for part, limits := range loss {
		best := math.Inf(1)
		for _, limit := range slices.Sorted(maps.Keys(limits)) {
			mean := stat.Mean(limits[limit], nil)
			best = min(best, mean)
			t.Logf("%s, λ_p = λ up to γ/λ = %g (-1: the code): iterations ÷ least %.3f (geometric mean), %.2f at worst, of %d",
				part, limit, math.Exp(mean), math.Exp(slices.Max(limits[limit])), len(limits[limit]))
		}
		if code := stat.Mean(limits[-1], nil); code > best+0.03 {
			t.Errorf("λ_p, %s: the code takes %.3f of the least, the best limit %.3f", part, math.Exp(code), math.Exp(best))
		}
	}
}

// checkRanks compares how many more iterations n/40 pivots take than n/10 with the prediction. The prediction must be
// better than that by the fixed power of the rank that fits best.
func checkRanks(t *testing.T, list []measurement) {
	var predicted, measured []float64 // logarithms of the iterations with n/40 pivots ÷ those with n/10
	for i := range list {
		m := &list[i]
		name := "rpcholesky lambda-p=10"
		if m.PivotRidge(m.DefaultRank()) == m.Lambda {
			name = "rpcholesky"
		}
		few, many := m.iterations[name+" n/40"], m.iterations[name+" n/10"]
		if math.IsInf(few, 1) || many > 0.8*m.iterations["none"] {
			continue
		}
		ratio := m.PivotIterations(m.N/40) / m.PivotIterations(m.N/10)
		predicted, measured = append(predicted, math.Log(ratio)), append(measured, math.Log(few/many))
		t.Logf("%-34s %-10s n/40 pivots take %.2f times the iterations of n/10, predicted %.2f", m.name, m.part(), few/many,
			ratio)
	}
	var meanSquare float64
	for i, v := range measured {
		meanSquare += math.Pow(v-predicted[i], 2) / float64(len(measured))
	}
	rms, rmsOfPower := math.Sqrt(meanSquare), stat.PopStdDev(measured, nil)
	t.Logf("iterations by rank: a factor of %.2f off (RMS) on %d, by a fixed power %.2f", math.Exp(rms), len(measured),
		math.Exp(rmsOfPower))
	if rms >= rmsOfPower {
		t.Errorf("iterations by rank: a factor of %.2f off, by a fixed power %.2f", math.Exp(rms), math.Exp(rmsOfPower))
	}
}
