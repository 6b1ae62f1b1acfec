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

// newLab returns a lab for a regression of n points whose K is stored in float64.
func newLab(config krrlab.Config) *krrlab.Lab {
	config.Kernel, config.Lambda, config.Solver, config.Storage = kernel.Gaussian{Sigma: 1.5}, lambda, krrlab.PCG,
		gram.Float64
	return testkit.Must(krrlab.New(datasets.SyntheticRegression(n, 4, 0.1, 1), config))
}

// identity is the preconditioner M = I of the given order. It has no method except those that apply M⁻¹.
type identity int

func (m identity) Dim() int { return int(m) }

func (m identity) SolveTo(_ context.Context, dst, r *mat.Dense) error { dst.Copy(r); return nil }

// sampledIdentity is M = I with a method that claims to sample normal vectors with the covariance M.
type sampledIdentity struct {
	identity
	normalTo func(dst *mat.Dense) error
}

func (m sampledIdentity) NormalTo(_ context.Context, dst *mat.Dense, _ rng.Stream) error {
	return m.normalTo(dst)
}

// TestFailingSamples checks that a preconditioner is excluded if it cannot sample the start vectors of the Lanczos
// processes, or if its samples have another covariance than M, and that the other preconditioners keep their results.
func TestFailingSamples(t *testing.T) {
	for name, test := range map[string]struct {
		normalTo   func(dst *mat.Dense) error
		wantReason string
	}{
		"no sample": {func(*mat.Dense) error { return errors.New("no draws") }, "no draws"},
		"covariance 4I": {func(dst *mat.Dense) error {
			for i := range n {
				dst.Set(i, 0, float64(i%2*4-2)) // ±2, so that xᵀx = 4n; for N(0, I) its mean is n
			}
			return nil
		}, "xᵀM⁻¹x = 1.2e+03 for a draw x of N(0, M), n = 300"},
	} {
		result := testkit.Must(newLab(krrlab.Config{}).Compare(t.Context(), krrlab.CompareOptions{},
			krrlab.Given{M: sampledIdentity{identity(n), test.normalTo}, Name: name}, krrlab.Nystrom{S: 30}))
		for _, row := range result.Rows {
			if row.Name == name {
				testkit.Contains(t, row.FailureReason, test.wantReason)
			} else if row.FailureReason != "" || row.Steps == 0 || math.IsInf(row.Kappa.Hi, 1) {
				t.Errorf("%s: the row %s has %d steps, κ = %v and the failure %q", name, row.Name, row.Steps, row.Kappa,
					row.FailureReason)
			}
		}
	}
}

// TestSameNames checks that entries of the same name have rows and lines of their own.
func TestSameNames(t *testing.T) {
	result := testkit.Must(newLab(krrlab.Config{}).Compare(t.Context(), krrlab.CompareOptions{Steps: -1, Seeds: 2},
		krrlab.Nystrom{S: 30}, krrlab.Nystrom{S: 60}))
	text := result.String()
	for _, row := range result.Rows[1:] {
		if !strings.Contains(text, "\n"+row.Name+" ") || (row.S == 60) != strings.HasSuffix(row.Name, " (2)") {
			t.Errorf("%s, %d features:\n%s", row.Name, row.S, text)
		}
	}
}

// TestInvalidEntries checks that each text of an invalid entry is refused by an error of one line.
func TestInvalidEntries(t *testing.T) {
	for _, text := range []string{"", "nope", "nystrom s=3", "nystrom features", "nystrom features=0",
		"vecchia lambda-p=1", "features sketch=x", "nystrom features=20 features=30", "nystrom precond=none"} {
		_, err := newLab(krrlab.Config{}).Compare(t.Context(), krrlab.CompareOptions{With: stage.Entries{{Text: text}}})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("the entry %q: error %v, want one line", text, err)
		}
	}
}

// TestGroupsOnRanks checks that two ranks whose memory requires two groups of preconditioners compute the same
// residuals as a single process with enough memory.
func TestGroupsOnRanks(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(2) // The scratch memory of tiles grows with the number of threads.
	options := krrlab.CompareOptions{Steps: 20, With: stage.Entries{{Text: "nystrom features=40"}}}
	single := testkit.Must(newLab(krrlab.Config{}).Compare(t.Context(), options))
	for i, row := range compareOnTwoRanks(t, krrlab.Config{Memory: 500_000, Precond: krrlab.None{}}, options)[0].Rows {
		if row.FailureReason != "" || !reflect.DeepEqual(row.Residuals, single.Rows[i].Residuals) {
			t.Errorf("%s differs on ranks of little memory: %s", row.Name, row.FailureReason)
		}
	}
}

// compareOnTwoRanks returns the result of each of two ranks.
func compareOnTwoRanks(t *testing.T, config krrlab.Config, options krrlab.CompareOptions) [2]*krrlab.Compare {
	t.Helper()
	var results [2]*krrlab.Compare
	done := make(chan error, 2)
	for rank, communicator := range comm.Local(2, 10*time.Second) {
		go func() {
			config := config
			config.Comm = communicator
			var err error
			results[rank], err = newLab(config).Compare(t.Context(), options)
			done <- err
		}()
	}
	testkit.OK(t, errors.Join(<-done, <-done))
	return results
}

// TestSeedOfDraw checks that the second draw of an entry (draw 1) has the random numbers of the next seed, and the
// first one has others.
func TestSeedOfDraw(t *testing.T) {
	options := krrlab.CompareOptions{Steps: -1, Seeds: 2, With: stage.Entries{{Text: "features features=50"},
		{Text: "vecchia features=10 neighbors=5"}}}
	twoDraws := testkit.Must(newLab(krrlab.Config{Seed: 3}).Compare(t.Context(), options))
	options.Seeds = 1
	nextSeed := testkit.Must(newLab(krrlab.Config{Seed: 4}).Compare(t.Context(), options))
	for i, row := range nextSeed.Rows[1:] {
		if first, second := twoDraws.Rows[1+2*i], twoDraws.Rows[2+2*i]; second.Draw != 1 ||
			!reflect.DeepEqual(second.Residuals, row.Residuals) || reflect.DeepEqual(first.Residuals, row.Residuals) {
			t.Errorf("%s: draw %d differs from that of the next seed", row.Name, second.Draw)
		}
	}
}
