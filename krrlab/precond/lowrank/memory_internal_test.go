package lowrank

import (
	"context"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestLowerMemory checks that a factor that stopped early stores at most 2r² numbers of the triangular factor T, with
// which it can be extended, and that a factor on several ranks stores none.
func TestLowerMemory(t *testing.T) {
	const n, rank = 600, 300
	x := testkit.RandomPoints(1, n, 2)
	k := testkit.Must(gram.NewExact(kernel.Gaussian{Sigma: 1}, x, 1, 1e-9, nil))
	first := testkit.Must(gram.NewExact(kernel.Gaussian{Sigma: 1}, x.Slice(0, 500), 1, 1e-9, nil))
	f := testkit.Must(RPCholesky(t.Context(), first, rank, rng.New(2), &Options{StopResidual: 0.1}))
	if r := f.Rank(); r >= rank || cap(f.lower) > 2*r*r {
		t.Errorf("rank %d, room for %d numbers", r, cap(f.lower))
	}
	testkit.Must(f.Extend(t.Context(), k, nil))
	comm.RunLocal(2, func(c comm.Comm) {
		for _, method := range []func(context.Context, Source, int, rng.Stream, *Options) (*Factor, error){RPCholesky, Nystrom} {
			if f, err := method(t.Context(), k, 20, rng.New(2), &Options{Comm: c}); err != nil || f.lower != nil {
				t.Errorf("error %v, or T on ranks", err)
			}
		}
	})
}
