package bound

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestTraceEstimate checks that the estimate is at least the limit of a geometric series, at most the bound from the
// residual, and 1 if nothing is known.
func TestTraceEstimate(t *testing.T) {
	// The decreases are those of ‖x‖_A² for random signs. The deviation of the mean of 2⁴⁰ signs is negligible.
	const n, lambda = 1 << 40, 0.5
	for _, rate := range []float64{0.3, 0.6, 0.8} {
		var decrease []float64
		term := (1 - rate) * 0.4 / lambda // the sum tends to 0.4
		for range 8 {
			decrease = append(decrease, term)
			term *= rate
		}
		estimate := TraceEstimate(decrease, 10, lambda, n) // the residual 10 bounds nothing
		if !(estimate >= 0.4 && estimate < 1) {
			t.Errorf("rate %g: %g, want about 0.4", rate, estimate)
		}
		remainder := 0.4 * math.Pow(rate, 8)
		testkit.Near(t, TraceEstimate(decrease, math.Sqrt(remainder), lambda, n), 0.4, 1e-5, rate)
	}
	// The series still grows, so nothing is known.
	testkit.Equal(t, TraceEstimate([]float64{0.1, 0.2}, 10, lambda, n), 1.0)
	fromFew, fromMany := TraceEstimate([]float64{0.8, 0}, 10, lambda, 100),
		TraceEstimate([]float64{0.8, 0}, 10, lambda, 10000)
	testkit.Near(t, fromFew-0.4, 3*math.Sqrt(2*0.4*0.6/100), 1e-12) // three deviations of the mean of 100 signs
	testkit.Near(t, fromMany-0.4, (fromFew-0.4)/10, 1e-12)
}

// TestExpectedTol checks that ExpectedTol is τ for every rule but ByPredictions, for which it is larger if τ is small.
func TestExpectedTol(t *testing.T) {
	for rule := DefaultRule; rule <= ByPredictions; rule++ {
		s := Stop{Rule: rule}
		testkit.Equal(t, s.ExpectedTol(0.1), 0.1, rule)
		testkit.Equal(t, s.ExpectedTol(1e-5) > 1e-3, rule == ByPredictions, rule)
	}
}

// TestCheckNoise solves for two columns, of which the first is smooth and the second is noise, by the rule
// ByPredictions. The iteration must end at the accepted tolerance: noiseShare of the smaller noise, or for classes of
// the root mean square of both. At that residual, λc of the first column differs from that of the exact solution by at
// most noiseShare of the noise that the exact solution yields. With a trace of 1, which is always valid, the noise is
// smaller. The few iterations that are left for classes are not worth an estimate of the trace. An error of Trace ends
// the iteration.
func TestCheckNoise(t *testing.T) {
	const n, lambda, tau = 120, 1e-3, 1e-9
	p := newProblem(t, n, lambda, 0.2)
	var inverse mat.Dense
	testkit.OK(t, inverse.Inverse(p.a))
	trace := lambda * mat.Trace(&inverse) / n
	y := testkit.RandomMatrix(9, n, 2)
	x := mat.NewDense(n, 2, nil)
	p.x.RowTo(x.RawRowView(0), 0)
	for iteration := range n {
		p.x.RowTo(x.RawRowView(iteration), iteration)
		y.Set(iteration, 0, math.Sin(x.At(iteration, 0))+0.1*y.At(iteration, 0))
	}
	var exact mat.Dense // λc* of both columns
	exact.Mul(&inverse, y)
	exact.Scale(lambda, &exact)
	norms := []float64{mat.Norm(y.ColView(0), 2), mat.Norm(y.ColView(1), 2)}
	solve := func(monitor *Monitor) (*pcg.Result, error) {
		monitor.Problem, monitor.Stop = &Problem{Lambda: lambda, Norms: norms}, Stop{Rule: ByPredictions}
		monitor.Tol, monitor.TolFraction = tau, 0.9 // the iteration ends at 0.9 of the tolerance
		return pcg.Solve(t.Context(), p.k, nil, y, &pcg.Options{Tol: 0.9 * tau, MaxIter: 500,
			Monitor: func(iteration *pcg.Iteration) error {
				_, err := monitor.Check(t.Context(), iteration)
				return err
			}})
	}
	for _, classes := range []bool{false, true} {
		for _, boundOfTrace := range []float64{trace, 1} {
			monitor := &Monitor{Classes: classes, Trace: func(_ context.Context, iterations int) (float64, int, error) {
				return boundOfTrace, iterations, nil
			}}
			res := testkit.Must(solve(monitor))
			if monitor.Noise == nil || len(monitor.Noise.Relative) != 2 || !(monitor.Tol > tau) ||
				res.Tol != 0.9*monitor.Tol ||
				monitor.ExpectedTol() != monitor.Tol || floats.Max(res.TrueRelRes) > monitor.Tol ||
				!classes && (monitor.Noise.Trace != boundOfTrace || monitor.Noise.Products < minTraceIterations) {
				t.Fatalf("classes %v, trace %g: %+v, residuals %g, tolerance %g of %g", classes, boundOfTrace,
					monitor.Noise, res.TrueRelRes, res.Tol, monitor.Tol)
			}
			relative := monitor.Noise.Relative
			want := min(relative[0], relative[1])
			if classes {
				want = min(1, math.Hypot(relative[0], relative[1])/math.Sqrt2)
			}
			testkit.Near(t, monitor.Noise.Deciding, want, 1e-12, classes, boundOfTrace)
			if ratio := monitor.Tol / (noiseShare * want); ratio > 1 || ratio < 0.9 { // two digits, rounded down
				t.Errorf("classes %v, trace %g: the tolerance %g is %g of the noise %g", classes, boundOfTrace,
					monitor.Tol, monitor.Tol/want, want)
			}
			var c mat.Dense
			c.Scale(lambda, res.X)
			for j, noiseOfColumn := range relative {
				norm := mat.Norm(c.ColView(j), 2) / norms[j]
				testkit.Near(t, noiseOfColumn, norm/(noiseShare+monitor.Noise.Trace), 1e-12, classes, boundOfTrace, j)
			}
			noise := mat.Norm(exact.ColView(0), 2) / trace // of the first column, by the exact solution
			exactColumn, column := mat.Col(nil, 0, &exact), mat.Col(nil, 0, &c)
			if distance := floats.Distance(column, exactColumn, 2); !classes && distance > noiseShare*noise {
				t.Errorf("trace %g: λc differs by %g from the exact one, the noise is %g", boundOfTrace, distance,
					noise)
			}
		}
	}
	failure := errors.New("trace")
	_, err := solve(&Monitor{Trace: func(context.Context, int) (float64, int, error) { return 0, 0, failure }})
	testkit.Equal(t, err, failure)
}
