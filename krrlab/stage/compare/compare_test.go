package compare_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

const n, lambda = 300, 0.01

// problem returns a regression problem whose K is stored in float64.
func problem(t *testing.T, c krrlab.Config) *krrlab.Lab {
	t.Helper()
	c.Kernel, c.Lambda, c.Solver = kernel.Gaussian{Sigma: 1.5}, lambda, krrlab.PCG
	c.Storage = gram.Float64
	lab := testkit.Must(krrlab.New(datasets.SyntheticRegression(n, 4, 0.1, 1), c))
	return lab
}

// own is a user-defined preconditioner that applies M⁻¹ with the function f.
type own struct {
	order int
	f     func(dst, r *mat.Dense) error
}

func (o own) Dim() int { return o.order }

func (o own) SolveTo(_ context.Context, dst, r *mat.Dense) error { return o.f(dst, r) }

// metric is a preconditioner that can also sample normal vectors with covariance M.
type metric struct {
	own
	draw func(dst *mat.Dense) error
}

func (m metric) NormalTo(_ context.Context, dst *mat.Dense, _ rng.Stream) error { return m.draw(dst) }

// TestLeftOutLate checks that a preconditioner that fails during the Lanczos processes is excluded, and that the other
// preconditioners keep their results.
func TestLeftOutLate(t *testing.T) {
	draws := 0
	identity := func(dst, r *mat.Dense) error { dst.Copy(r); return nil }
	signs := func(dst *mat.Dense) error { // alternating signs, for which xᵀx = n as for a typical normal vector
		for i := range n {
			dst.Set(i, 0, float64(i%2*2-1))
		}
		return nil
	}
	for name, c := range map[string]struct {
		m    metric
		want string
	}{
		"draw": {metric{own{n, identity}, func(*mat.Dense) error { return errors.New("no draws") }}, "no draws"},
		"covariance": {metric{own{n, identity}, func(dst *mat.Dense) error {
			err := signs(dst)
			dst.Scale(2, dst)
			return err
		}}, "xᵀM⁻¹x = 1.2e+03 for a draw x of N(0, M), n = 300"},
	} {
		draws = 0
		draw := c.m.draw
		c.m.draw = func(dst *mat.Dense) error { draws++; return draw(dst) }
		r := testkit.Must(problem(t, krrlab.Config{}).Compare(context.Background(), krrlab.CompareOptions{},
			krrlab.Given{M: c.m, Name: name}, krrlab.Nystrom{S: 30}))
		for _, row := range r.Rows {
			if fails := row.Name == name; fails != (row.FailureReason != "") || fails && !strings.Contains(row.FailureReason, c.want) ||
				!fails && (row.Steps == 0 || math.IsInf(row.Kappa.Hi, 1)) {
				t.Errorf("%s: %s after %d steps: κ %v %q", name, row.Name, row.Steps, row.Kappa, row.FailureReason)
			}
		}
	}
}

// TestSameNames checks that entries of the same name have rows and lines of their own.
func TestSameNames(t *testing.T) {
	r := testkit.Must(problem(t, krrlab.Config{}).Compare(context.Background(), krrlab.CompareOptions{Steps: -1, Seeds: 2},
		krrlab.Nystrom{S: 30}, krrlab.Nystrom{S: 60}))
	text := r.String()
	for _, row := range r.Rows[1:] {
		if !strings.Contains(text, "\n"+row.Name+" ") || (row.S == 60) != strings.HasSuffix(row.Name, " (2)") {
			t.Errorf("%s, %d features:\n%s", row.Name, row.S, text)
		}
	}
}

// TestNames checks that invalid entries are refused by an error of one line.
func TestNames(t *testing.T) {
	for _, text := range []string{"", "nope", "nystrom s=3", "nystrom features", "nystrom features=0",
		"vecchia lambda-p=1", "features sketch=x", "nystrom features=20 features=30", "nystrom precond=none"} {
		_, err := problem(t, krrlab.Config{}).Compare(context.Background(),
			krrlab.CompareOptions{With: stage.Entries{{Text: text}}})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRanks checks that two ranks whose memory requires two groups have the residuals of a single process with enough
// memory.
func TestRanks(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(2) // the scratch memory of tiles grows with the number of threads
	o := krrlab.CompareOptions{Steps: 20, With: stage.Entries{{Text: "nystrom features=40"}}}
	single := testkit.Must(problem(t, krrlab.Config{}).Compare(context.Background(), o))
	for i, row := range ranks(t, krrlab.Config{Memory: 500_000, Precond: krrlab.None{}}, o)[0].Rows { // two groups
		if row.FailureReason != "" || !reflect.DeepEqual(row.Residuals, single.Rows[i].Residuals) {
			t.Errorf("%s differs on ranks of little memory: %s", row.Name, row.FailureReason)
		}
	}
}

// ranks returns the results of two ranks.
func ranks(t *testing.T, c krrlab.Config, o krrlab.CompareOptions) [2]*krrlab.Compare {
	t.Helper()
	var results [2]*krrlab.Compare
	done := make(chan error, 2)
	for i, group := range comm.Local(2, 10*time.Second) {
		go func() {
			c := c
			c.Comm = group
			var err error
			results[i], err = problem(t, c).Compare(context.Background(), o)
			done <- err
		}()
	}
	testkit.OK(t, errors.Join(<-done, <-done))
	return results
}

// TestDraws checks that draw 1 has the random numbers of the next seed.
func TestDraws(t *testing.T) {
	o := krrlab.CompareOptions{Steps: -1, Seeds: 2, With: stage.Entries{{Text: "features features=50"},
		{Text: "vecchia features=10 neighbors=5"}}}
	twoDraws := testkit.Must(problem(t, krrlab.Config{Seed: 3}).Compare(context.Background(), o))
	o.Seeds = 1
	next := testkit.Must(problem(t, krrlab.Config{Seed: 4}).Compare(context.Background(), o))
	for i, row := range next.Rows[1:] {
		if first, second := twoDraws.Rows[1+2*i], twoDraws.Rows[2+2*i]; second.Draw != 1 ||
			!reflect.DeepEqual(second.Residuals, row.Residuals) || reflect.DeepEqual(first.Residuals, row.Residuals) {
			t.Errorf("%s: draw %d differs from that of the next seed", row.Name, second.Draw)
		}
	}
}
