package cli

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/compare"
)

// TestProcessorOfRank checks that a rank whose processor lacks the instructions of --cpu reports this with its rank
// number.
func TestProcessorOfRank(t *testing.T) {
	lacking := simd.AVX512
	for slices.Contains(simd.Paths(), lacking) {
		if lacking--; lacking == simd.Portable {
			t.Skip("this processor runs all paths")
		}
	}
	defer func(d time.Duration) { reportDelay = d }(reportDelay)
	reportDelay = 0
	var out, stderr bytes.Buffer
	code := Main(t.Context(), []string{"fit", "--data", "synthetic-classes", "--cpu", lacking.String()}, Env{
		Stdout: &out, Stderr: &stderr, Version: "test", UseBLAS: useGoBLAS,
		Launch: &comm.Launch{Launcher: "Open MPI", Rank: 1, Size: 2},
	})
	if want := "rank 1: --cpu " + lacking.String() + ": this processor runs"; code != exitError ||
		!strings.Contains(stderr.String(), want) {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}

// TestOtherRanksWait checks a rank other than the first with an error that all ranks find before they are connected.
// The first rank reports such an error. The others print nothing and wait until the launcher ends them, because the
// launcher would end the first rank as soon as any rank exits.
func TestOtherRanksWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var canceled atomic.Bool
	ended := make(chan bool)
	var stderr bytes.Buffer
	var code int
	go func() {
		code = Main(ctx, []string{"fit", "--data", "no-such-data"}, Env{
			Stdout: io.Discard, Stderr: &stderr, Version: "test", UseBLAS: useGoBLAS,
			Launch: &comm.Launch{Launcher: "Open MPI", Rank: 1, Size: 2},
		})
		ended <- canceled.Load()
	}()
	time.Sleep(200 * time.Millisecond) // gives a rank that does not wait the time to end, which the test would notice
	canceled.Store(true)
	cancel()
	// ended receives whether the rank ended after the cancellation.
	if !<-ended || code == exitOK || strings.Contains(stderr.String(), "no-such-data") {
		t.Errorf("the rank ended by itself, with exit code 0, or with a message: code %d, %q", code, stderr.String())
	}
}

// TestErrorOfOneRank checks that a rank reports, after a delay, an error that only it has, such as a file that its
// machine lacks.
func TestErrorOfOneRank(t *testing.T) {
	defer func(d time.Duration) { reportDelay = d }(reportDelay)
	reportDelay = 0
	var stderr bytes.Buffer
	code := Main(t.Context(), []string{"fit", "--data", "synthetic-classes", "--precond",
		"nystrom landmarks=@no-such-file"}, Env{
		Stdout: io.Discard, Stderr: &stderr, Version: "test", UseBLAS: useGoBLAS,
		Launch: &comm.Launch{Launcher: "Open MPI", Rank: 1, Size: 2},
	})
	if want := `rank 1: --precond landmarks=@no-such-file: `; code != exitUsage ||
		!strings.Contains(stderr.String(), want) {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}

// TestSharedOptions checks which options of verify and predict all ranks must have: those of the computation, and which
// files are written, but neither the names of files nor the limits of one process.
func TestSharedOptions(t *testing.T) {
	text := func(command, option string) string {
		s := map[string]*schema.Schema{"verify": schema.Of(&verifyFlags{}), "predict": schema.Of(&predictFlags{}),
			"compare": schema.Of(&compare.Options{})}[command]
		name, value, _ := strings.Cut(option, "=")
		testkit.OK(t, s.Lookup(name).Set(value))
		return sharedOptions(s)
	}
	for _, c := range []struct {
		command, a, b string
		same          bool
	}{
		{"verify", "seed=1", "seed=4", false},
		{"verify", "passes=3", "passes=4", false},
		{"verify", "json=a.json", "seed=1", false},
		{"verify", "json=a.json", "json=b.json", true},
		{"verify", "memory=2GB", "memory=3GB", true},
		{"predict", "bound=true", "bound=false", false},
		{"predict", "out=a.csv", "out=b.csv", true},
		{"predict", "out=a.csv", "bound=false", false},
		{"predict", "rank-timeout=1m", "rank-timeout=2m", true},
		{"compare", "with=nystrom landmarks=1,2,3,4,5", "with=nystrom landmarks=1,2,3,9,5", false},
	} {
		if same := text(c.command, c.a) == text(c.command, c.b); same != c.same {
			t.Errorf("%s --%s and --%s: the same %v, want %v", c.command, c.a, c.b, same, c.same)
		}
	}
}
