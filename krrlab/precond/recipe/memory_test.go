package recipe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// TestPredictedMemory compares the predicted memory with the bytes that matrices and preconditioners on 1 to 5 ranks
// report. The prediction for K must be at least the largest of any rank, and at most one tile of 512² numbers more; for
// features and factor it must be exact.
func TestPredictedMemory(t *testing.T) {
	const n, d, s = 3000, 4, 90
	x := testkit.RandomPoints(1, n, d)
	z := points.NewDense32(n, s, nil)
	for i := range z.Data {
		z.Data[i] = float32(rng.New(2).Normal(uint64(i)))
	}
	for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16, gram.Recompute} {
		for ranks := range 6 {
			var mu sync.Mutex
			var wg sync.WaitGroup
			var kernelBytes, featureBytes, factorBytes int64 // the largest of all ranks
			group := []comm.Comm{nil}
			if ranks > 0 {
				group = comm.Local(ranks, 0)
			}
			for _, c := range group {
				wg.Go(func() {
					k, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, x, 1,
						&gram.Options{Storage: storage, Comm: c})
					if err != nil {
						t.Error(err)
						return
					}
					alone := comm.OrAlone(c)
					lo, hi := comm.RowRange(n, precond.RankRows, alone.Rank(), alone.Size())
					w, err := precond.New(t.Context(), z.Slice(lo, hi).(*points.Dense32), 1,
						&precond.Options{Form: precond.FormL, Comm: c})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					ownFeatureBytes := 4 * int64(hi-lo) * s
					kernelBytes, featureBytes = max(kernelBytes, k.Bytes()), max(featureBytes, ownFeatureBytes)
					factorBytes = max(factorBytes, w.Bytes()-ownFeatureBytes)
				})
			}
			wg.Wait()
			candidate := &cost.Candidate{Preconditioner: Features{S: s}, Storage: storage}
			predicted := cost.Model{N: n, D: d, T: 1, Ranks: ranks}.Memory(candidate)
			if predicted.Kernel < kernelBytes || predicted.Kernel > kernelBytes+8*512*512 {
				t.Errorf("%v on %d ranks: K of %d bytes predicted, %d held", storage, ranks, predicted.Kernel,
					kernelBytes)
			}
			if predicted.Features != featureBytes || predicted.Factor != factorBytes {
				t.Errorf("%d ranks: %d and %d bytes of features and factor predicted, %d and %d held", ranks,
					predicted.Features, predicted.Factor, featureBytes, factorBytes)
			}
		}
	}
}

// TestLandmarkMemory compares the memory that landmark factors allocate on 1 and 3 ranks, which is little more than
// they store, with the prediction.
func TestLandmarkMemory(t *testing.T) {
	const n, d, s = 3072, 3, 300 // two units of rows per rank
	x := testkit.RandomPoints(1, n, d)
	for name, method := range map[string]func(context.Context, lowrank.Source, int, rng.Stream, *lowrank.Options) (
		*lowrank.Factor, error){"nystrom": lowrank.Nystrom, "rpcholesky": lowrank.RPCholesky} {
		k := testkit.Must(gram.NewExact(kernel.Gaussian{Sigma: 0.1}, x, 1, 1e-9, nil))
		for _, ranks := range []int{1, 3} {
			allocated := func() int64 {
				return testkit.AllocatedBytes(func() {
					comm.RunLocal(ranks, func(c comm.Comm) {
						if _, err := method(t.Context(), k, s, rng.New(2), &lowrank.Options{Comm: c}); err != nil {
							t.Error(err)
						}
					})
				}) / int64(ranks)
			}
			got := allocated()
			preconditioner := testkit.Must(stage.ParsePreconditioner(fmt.Sprintf("%s features=%d", name, s)))
			candidate := &cost.Candidate{Preconditioner: preconditioner, Storage: gram.Recompute}
			predicted := cost.Model{N: n, D: d, T: 1, Ranks: ranks}.Memory(candidate)
			want := predicted.Features + predicted.Columns
			if float64(got) > 1.2*float64(want) { // a garbage collection may have emptied the pools of buffers
				got = min(got, allocated())
			}
			t.Logf("%s on %d ranks: %d bytes allocated, %d predicted", name, ranks, got, want)
			if float64(got) > 1.2*float64(want) || float64(got) < 0.8*float64(want) {
				t.Errorf("%s on %d ranks: %d bytes allocated, %d predicted", name, ranks, got, want)
			}
		}
	}
}

// TestLargestPart checks that LargestPart names the array that needs the most memory.
func TestLargestPart(t *testing.T) {
	for largest, problem := range map[string]struct{ n, d, t, s int }{
		"the points": {1000, 100000, 1, 10}, "K:": {50000, 2, 1, 10}, "the factor": {20000, 2, 1, 19000},
		"vectors": {20000, 2, 500, 1}, "features: t": {200000, 2, 1, 4000},
	} {
		candidate := cost.Candidate{Preconditioner: Features{S: problem.s}, Storage: gram.Recompute}
		if largest == "K:" {
			candidate.Storage = gram.Float64
		}
		memory := cost.Model{N: problem.n, D: problem.d, T: problem.t}.Memory(&candidate)
		if part := memory.LargestPart(); !strings.Contains(part, largest) {
			t.Errorf("%+v: the largest part is %s, want %s", memory, part, largest)
		}
		if memory.Peak < memory.Points+memory.Features+memory.Factor {
			t.Errorf("%+v: the peak is below the sum of its parts", memory)
		}
	}
}

// TestCorrectionCost checks that M⁻¹R costs twice as many seconds and messages where Woodbury corrects it, except in
// form U.
func TestCorrectionCost(t *testing.T) {
	z := points.NewDense32(200, 5, nil)
	for i := range z.Data {
		z.Data[i] = float32(rng.New(3).Normal(uint64(i)))
	}
	for _, form := range []precond.Form{precond.AutoForm, precond.FormL, precond.FormU} {
		for _, lambdaP := range []float64{1e-9, 1e-3} {
			w := testkit.Must(precond.New(t.Context(), z, lambdaP, &precond.Options{Form: form}))
			applications := 1.
			if w.Corrects() {
				applications = 2
			}
			for _, ranks := range []int{1, 3} {
				m := cost.Model{Rates: cost.Reference(), N: z.N, D: 5, T: 2, Ranks: ranks}
				p := Features{S: z.D, LambdaP: lambdaP, Form: form}
				once := p.Cost(&m, gram.Float32)
				m.Trace = 1000 // about tr ZZᵀ, which is near n·s for normal entries
				got := p.Cost(&m, gram.Float32)
				if got.Apply != applications*once.Apply ||
					got.Traffic.Iteration.Wire != applications*once.Traffic.Iteration.Wire ||
					(form == precond.FormU || lambdaP > 1e-6) != (applications == 1) {
					t.Errorf("form %v, λ_p = %g, %d ranks: %v applications: %+v, once %+v", form, lambdaP, ranks,
						applications, got, once)
				}
			}
		}
	}
}
