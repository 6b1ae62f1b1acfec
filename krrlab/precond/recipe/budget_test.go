package recipe_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestMapMemory checks that the frequencies of random features, s×d, count against the memory budget of a solve. The
// points are sparse, so that nothing else is large.
func TestMapMemory(t *testing.T) {
	const n, d, s = 300, 50_000, 300
	train := datasets.SyntheticRegression(n, 3, 0.1, 1)
	wide := &points.CSR{N: n, D: d, Ptr: []int{0}}
	for i := range n {
		wide.Col, wide.Val = append(wide.Col, int32(i*d/n)), append(wide.Val, 1)
		wide.Ptr = append(wide.Ptr, i+1)
	}
	train.X = wide
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, Solver: krrlab.PCG,
		Precond: krrlab.Features{S: s}}
	for memory, fits := range map[int64]bool{4 * s * d: false, 8 * s * d: true} {
		cfg.Memory = memory
		_, err := testkit.Must(krrlab.New(train, cfg)).Solve(t.Context())
		e, ok := errors.AsType[*accel.MemoryError](err)
		if fits && err != nil || !fits && (!ok || !strings.Contains(e.Item, "a map of Fourier features")) {
			t.Errorf("a budget of %d bytes: error %v, fits %v", memory, err, fits)
		}
	}
}
