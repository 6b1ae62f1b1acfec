package compare

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	_ "github.com/krrlab/lab/krrlab/precond/recipe" // registers the kinds that are compared by default
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// recordingBench has K for 30 points on a line. It builds M = K+λI for the entry "exact", returns an
// error for the entry refused, and builds M = I for other entries. It records the entries and events of its calls.
type recordingBench struct {
	stage.Bench
	problem stage.Problem
	k       *gram.Matrix
	entries []string
	events  []stage.Event
}

const (
	lambda  = 0.1
	refused = "a preconditioner that cannot be made"
)

func newBench(kern kernel.Kernel) *recordingBench {
	const n = 30
	x := points.NewDense(n, 1, testkit.Normals(1, 1, n))
	return &recordingBench{k: testkit.Must(gram.New(context.Background(), kern, x, lambda, nil)),
		problem: stage.Problem{Kernel: kern, X: x, Header: stage.Header{N: n, T: 1, Lambda: lambda},
			Y: mat.NewDense(n, 1, testkit.Normals(1, 2, n)), Comm: comm.Alone(), MaxIter: 99}}
}

func (b *recordingBench) Problem() *stage.Problem { return &b.problem }
func (b *recordingBench) K(context.Context, int64) (*stage.Gram, error) {
	return &stage.Gram{Matrix: b.k}, nil
}
func (b *recordingBench) Notify(_ context.Context, e stage.Event) { b.events = append(b.events, e) }
func (b *recordingBench) Entry(e stage.Entry) (stage.Entry, error) {
	b.entries = append(b.entries, e.Text)
	return e, nil
}
func (b *recordingBench) Dense(ctx context.Context, _ int64) (*mat.Dense, float64, error) {
	k := mat.NewDense(b.problem.N, b.problem.N, nil)
	err := b.k.DenseTo(ctx, k)
	return k, 0, err
}

func (b *recordingBench) Make(ctx context.Context, e stage.Entry, _ int) (*stage.BuiltPreconditioner, error) {
	built := &stage.BuiltPreconditioner{Bytes: 1000}
	switch e.Text {
	case "exact":
		k, _, _ := b.Dense(ctx, 0)
		built.M = denseInverse{testkit.AddRidge(testkit.Symmetric(k), lambda)}
	case refused:
		return nil, errors.New("it cannot be made")
	}
	return built, nil
}

// denseInverse is a preconditioner that solves with M by a dense Cholesky factorization.
type denseInverse struct{ m *mat.SymDense }

func (m denseInverse) Dim() int { return m.m.SymmetricDim() }

func (m denseInverse) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	var factor mat.Cholesky
	factor.Factorize(m.m)
	return factor.SolveTo(dst, r)
}

// TestGroupsByMemory checks how preconditioners are divided into groups. A group may take the memory that K leaves, to
// the last byte, where each member takes its own bytes and 8n(5+2·steps) bytes of vectors. A preconditioner that does
// not fit alone is excluded. Each group begins with iteration 1 of its first member, and a member is reported until it
// meets the tolerance.
func TestGroupsByMemory(t *testing.T) {
	const requiredBytes = 1000 + 8*30*(5+2*7) // bytes of M = I or K+λI with its vectors; "none" has no bytes of its own
	for memory, want := range map[int64]int{1 << 40: 1, 3*requiredBytes - 1000: 1, 3*requiredBytes - 1001: 2,
		2*requiredBytes - 1001: 3, requiredBytes: 3, requiredBytes - 1: 1} {
		bench := newBench(kernel.Gaussian{Sigma: 1})
		bench.problem.Memory = accel.Budget{Limit: memory + 17 + bench.k.Bytes(), Used: 17}
		result := testkit.Must(Options{Steps: 7, MaxExactN: -1, To: 1e-3,
			With: stage.Entries{{Text: "a"}, {Text: "exact"}, {Text: refused}}}.Run(t.Context(), bench)).(*Result)
		groups, eventsOf := 0, map[string]int{}
		bench.events = slices.DeleteFunc(bench.events,
			func(event stage.Event) bool { return event.Stage != stage.Compare })
		for i, event := range bench.events {
			eventsOf[event.Detail]++
			if event.Iteration == 1 && (i == 0 || bench.events[i-1].Iteration != 1 ||
				bench.events[i-1].Detail == "exact" || event.Detail == "exact" && want == 3) {
				groups++
			}
		}
		iterations := *result.Rows[0].Iterations // iterations with M = I, for "none" and "a"
		if groups != want || eventsOf["none"] != iterations-1 || eventsOf["exact"] > 1 ||
			eventsOf["a"] != 0 && eventsOf["a"] != iterations-1 {
			t.Errorf("memory %d: %d groups, want %d, events %v", memory, groups, want, eventsOf)
		}
		for _, row := range result.Rows[1:3] {
			if excluded := strings.Contains(row.FailureReason,
				"it with its vectors would take"); excluded != (memory < requiredBytes) ||
				!excluded && row.Steps == 0 && row.Name == "a" {
				t.Errorf("memory %d, want at least %d: %+v", memory, requiredBytes, row)
			}
		}
		testkit.Equal(t, result.Rows[3].FailureReason, "it cannot be made")
		testkit.Contains(t, result.String(), "\na "+strings.Repeat(" ", len(refused))) // texts are aligned
	}
}

// TestDefaults checks which preconditioners are compared by default, and up to which n all eigenvalues are computed. A
// user-defined kernel has no random features. It also checks that each row ends with the tolerance To.
func TestDefaults(t *testing.T) {
	for _, kern := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Func{F: kernel.Gaussian{Sigma: 1}.Eval}} {
		for maxExactN, exact := range map[int]bool{30: true, 29: false, 0: true, -1: false} {
			bench := newBench(kern)
			result := testkit.Must(Options{MaxExactN: maxExactN, Steps: -1}.Run(t.Context(), bench)).(*Result)
			want := []string{"features", "nystrom", "rpcholesky", "vecchia"}
			if _, userDefined := kern.(kernel.Func); userDefined {
				want = want[1:]
			}
			if !slices.Equal(bench.entries, want) || len(result.Rows) != 1+len(want) {
				t.Errorf("%v: compared %v in %d rows, want %v", kern, bench.entries, len(result.Rows), want)
			}
			for _, row := range result.Rows {
				if (row.Exact != nil) != exact || row.Steps != 0 || row.FailureReason != "" {
					t.Errorf("all eigenvalues up to n = %d, n = 30: %+v", maxExactN, row)
				}
			}
			testkit.Contains(t, result.HTML(), "the numbers")
		}
	}
	bench := newBench(kernel.Gaussian{Sigma: 1})
	result := testkit.Must(Options{With: stage.Entries{{Text: "exact"}}, To: 1e-4, Steps: -1,
		MaxExactN: -1}.Run(t.Context(), bench))
	for _, row := range result.(*Result).Rows {
		if last := row.Residuals[len(row.Residuals)-1]; last > 1e-4 || len(row.Residuals) > 3 != (row.Name == "none") {
			t.Errorf("%s: the last of %d residuals is %g; want at most 1e-4, and more than 3 for none only", row.Name,
				len(row.Residuals), last)
		}
	}
}

// TestCombinedTargets checks that a single target is used unchanged, and that several targets are added with random
// signs: ±(1 + 10) or ±(1 − 10) in the first row.
func TestCombinedTargets(t *testing.T) {
	y := mat.NewDense(2, 2, []float64{1, 10, 2, 20})
	firstRows := map[float64]bool{}
	for seed := range uint64(20) {
		combined := CombinedTargets(y, seed)
		firstRows[math.Abs(combined.At(0, 0))] = true
		testkit.Equal(t, combined.At(1, 0), 2*combined.At(0, 0))
		firstTarget := y.Slice(0, 2, 0, 1).(*mat.Dense)
		if single := CombinedTargets(firstTarget, seed); !mat.Equal(single, firstTarget) {
			t.Errorf("a single target becomes %v", mat.Formatted(single))
		}
	}
	if len(firstRows) != 2 || !firstRows[9] || !firstRows[11] {
		t.Errorf("the first row has the sizes %v, want 9 and 11", firstRows)
	}
}
