package stage

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestAffordableSeries checks that a stage with other methods does not use a Fourier series if it has more than 2,000
// modes and more modes than points.
func TestAffordableSeries(t *testing.T) {
	for _, test := range []struct {
		n          int
		sigma      float64
		affordable bool
	}{
		{n: 500, sigma: 0.8, affordable: true},  // few modes
		{n: 500, sigma: 0.3, affordable: false}, // more modes than 2,000 and than points
		{n: 6000, sigma: 0.3, affordable: true}, // more modes than 2,000, and more points
	} {
		p := &Problem{Header: Header{N: test.n, T: 1, Lambda: 0.1}, Kernel: kernel.Gaussian{Sigma: test.sigma},
			X: testkit.RandomPoints(1, test.n, 2), Comm: comm.Alone()}
		complete, _ := p.Series()
		if complete == nil {
			t.Fatalf("n = %d, σ = %g: no series", test.n, test.sigma)
		}
		series, bound := p.AffordableSeries()
		if (series != nil) != test.affordable || (bound > 0) != test.affordable {
			t.Errorf("n = %d, %d modes: affordable %t, error %g; want %t", test.n, complete.Modes(), series != nil,
				bound, test.affordable)
		}
		t.Logf("n = %d, σ = %g: %d modes", test.n, test.sigma, complete.Modes())
	}
}

// TestStageMemory checks the memory that K and the memory limit leave to a stage, and the bytes of a low-rank factor.
func TestStageMemory(t *testing.T) {
	k := &Gram{Matrix: testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(9, 1, nil), 1,
		nil))}
	problem := &Problem{Header: Header{N: 10}, Comm: comm.Alone()}
	const used = 7
	for limit, want := range map[int64]int64{0: math.MaxInt64, k.Bytes() + used + 10: 10, k.Bytes() + used: 0,
		1: 1 - used - k.Bytes()} {
		problem.Memory = accel.Budget{Limit: limit, Used: used}
		testkit.Equal(t, testkit.Must(problem.MemoryWith(t.Context(), k)).Free(), want, "free bytes of a limit of",
			limit)
	}
	testkit.Equal(t, problem.LowRankBytes(3), 4*10*3+24*3*3) // 4ns+24s²
}

// TestProgress checks the events of Progress: the remaining time is unknown (negative) before the first part is
// complete, then positive, and zero at the end.
func TestProgress(t *testing.T) {
	var events []string
	progress := Progress(t.Context(), func(_ context.Context, e Event) {
		events = append(events, fmt.Sprint(e.Stage, e.Done, e.Total, e.Remaining < 0, e.Remaining > 0))
	}, Kernel)
	for completed := range 3 {
		progress(completed, 2)
	}
	testkit.Equal(t, strings.Join(events, "; "), "kernel0 2 true false; kernel1 2 false true; kernel2 2 false false")
}

// TestTimers checks that Lap returns the seconds since the given time, which it then sets to now, and that Timed adds
// the seconds of a call.
func TestTimers(t *testing.T) {
	clock, seconds := time.Now().Add(-time.Hour), 1.
	if lap := Lap(&clock); lap < 3600 || lap > 7200 || time.Since(clock) > time.Hour/2 {
		t.Errorf("a lap of %g s after an hour; the clock is %v ago", lap, time.Since(clock))
	}
	testkit.OK(t, Timed(&seconds, func() error { return nil }))
	if seconds < 1 || seconds > 999 {
		t.Errorf("an empty call makes %g s of 1 s", seconds)
	}
}
