package comm_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/dl"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// playVariable is the environment variable with the part that this test binary plays when mpirun starts it as a rank.
// saidVariable is the one with the folder for the messages of ranks that abort, because a launcher may lose their
// output.
const (
	playVariable = "KRRLAB_COMM_PLAY"
	saidVariable = "KRRLAB_COMM_SAID"
)

// TestMain runs the tests, or plays one rank if playVariable is set and a launcher started the process.
func TestMain(m *testing.M) {
	play := os.Getenv(playVariable)
	launch, ranked := comm.Detect(os.Getenv)
	if play == "" || !ranked {
		os.Exit(m.Run())
	}
	if err := perform(play, launch); err != nil {
		fmt.Printf("FAILED %v\n", err)
		if err := say(launch.Rank, err); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
}

// say writes the message of a rank to the folder of saidVariable, if it is set.
func say(rank int, message error) error {
	if os.Getenv(saidVariable) == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(os.Getenv(saidVariable), fmt.Sprint(rank)), fmt.Appendln(nil, message), 0o644)
}

// perform plays one rank.
func perform(play string, launch comm.Launch) error {
	ctx := context.Background()
	opts := comm.Options{Limit: time.Minute}
	switch play {
	case "trees": // uses the algorithm of many ranks
		comm.Trees()
		fallthrough
	case "chunks":
		comm.Chunks()
	case "watchdog":
		opts.Limit = 2 * time.Second
	}
	w, err := comm.Open(launch, opts)
	if err != nil {
		return err
	}
	switch play {
	case "guest":
		if err := guest(); err != nil {
			return err
		}
	case "watchdog": // the last rank hangs
		if w.Rank() == w.Size()-1 {
			time.Sleep(time.Hour)
		}
		if err := say(w.Rank(), meet(ctx, w)); err != nil {
			return err
		}
		w.Abort(1)
	case "abort": // the last rank aborts all ranks
		if w.Rank() == w.Size()-1 {
			w.Abort(7)
		}
		return meet(ctx, w)
	case "cancel":
		if err := meet(ctx, w); err != nil {
			return err
		}
		if w.Rank() == w.Size()-1 {
			time.Sleep(time.Hour)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return meet(ctx, w)
	}
	if err := conform(ctx, w); err != nil {
		return err
	}
	fmt.Printf("passed rank %d of %d, %s\n", w.Rank(), w.Size(), w.Library())
	return w.Close()
}

// guest returns an error if MPI has overwritten code of the C library, which no thread may run at that time. It also
// panics and recovers: the process ends if MPI has replaced Go's signal handler.
func guest() error {
	func() {
		defer func() { _ = recover() }()
		var nothing *int
		*nothing = 1
	}()
	maps, err := os.ReadFile("/proc/self/smaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	code := false
	for line := range strings.Lines(string(maps)) {
		switch f := strings.Fields(line); {
		case len(f) > 4 && strings.Contains(f[0], "-"):
			code = strings.Contains(f[1], "x") && strings.Contains(f[len(f)-1], "/libc.so")
		case code && f[0] == "Private_Dirty:" && f[1] != "0":
			return fmt.Errorf("%s kB of the C library's code were written over", f[1])
		}
	}
	return err
}

// launchers are the commands that start ranks. These are Debian's names, under which both can be installed.
var launchers = []struct {
	name string
	args []string
}{
	{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe"}},
	{"mpirun.mpich", nil},
}

// start runs this test binary on p ranks with each installed launcher.
func start(t *testing.T, p int, play string, judge func(t *testing.T, out string, err error)) {
	if p != 2 { // two ranks of each launcher are always tested
		suite.Long(t, "ranks of MPI")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range launchers {
		t.Run(fmt.Sprintf("%s-%d", l.name, p), func(t *testing.T) {
			path, err := exec.LookPath(l.name)
			if !dl.Able {
				t.Skip("this build loads no MPI library")
			}
			if err != nil {
				t.Skipf("no %s here: install openmpi-bin and mpich (make test-long does)", l.name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, append(l.args, "-n", fmt.Sprint(p), self)...)
			dir := t.TempDir()
			cmd.Env = append(os.Environ(), playVariable+"="+play, saidVariable+"="+dir)
			cmd.WaitDelay = 10 * time.Second
			if _, err := cmd.StdinPipe(); err != nil { // stays open for MPICH's mpirun: see docs/ranks.md
				t.Fatal(err)
			}
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Fatalf("no end within a quarter of an hour:\n%s", out)
			}
			for rank := range p {
				message, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(rank)))
				out = append(out, message...)
			}
			judge(t, string(out), err)
		})
	}
}

// TestMPI runs the conformance tests on MPI ranks.
func TestMPI(t *testing.T) {
	for _, play := range []string{"suite", "chunks", "trees"} {
		for _, p := range [][]int{{2}, {1, 2, 3}}[suite.Scale(0, 1, 1)] {
			start(t, p, play, func(t *testing.T, out string, err error) {
				if n := strings.Count(out, "passed rank"); err != nil || n != p {
					t.Errorf("%d of %d ranks passed, %v:\n%s", n, p, err, out)
				}
			})
		}
	}
}

// TestProcessUnchanged checks that MPI does not change the code of the C library or Go's signal handlers.
func TestProcessUnchanged(t *testing.T) {
	start(t, 2, "guest", func(t *testing.T, out string, err error) {
		if n := strings.Count(out, "passed rank"); err != nil || n != 2 {
			t.Errorf("%d of 2 ranks passed, %v:\n%s", n, err, out)
		}
	})
}

// TestMPIFaults lets one of three ranks hang or abort. The run must end with a message and a nonzero exit code.
func TestMPIFaults(t *testing.T) {
	for play, want := range map[string]string{
		"watchdog": "no answer within 2s: a peer has died, hangs, or cannot be reached",
		"cancel":   "context deadline exceeded",
		"abort":    "",
	} {
		t.Run(play, func(t *testing.T) {
			start(t, 3, play, func(t *testing.T, out string, err error) {
				var exit *exec.ExitError
				if !errors.As(err, &exit) || !strings.Contains(out, want) {
					t.Errorf("%v:\n%s", err, out)
				}
			})
		})
	}
}

// TestAloneAsRank checks that a process that was started as one of several ranks gets an error if MPI takes it for
// the only one.
func TestAloneAsRank(t *testing.T) {
	if !dl.Able {
		t.Skip("this build loads no MPI library")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{
		"PMIX_RANK=2": "started this as rank 2, but",
		"PMIX_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3": "started 3 ranks, but",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), playVariable+"=suite", "OMPI_ALLOW_RUN_AS_ROOT=1",
			"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		cmd.Env = append(cmd.Env, strings.Fields(env)...)
		text, err := cmd.CombinedOutput()
		if strings.Contains(string(text), "no MPI library found") {
			t.Skip("no MPI library here: install openmpi-bin or mpich (make test-long does)")
		}
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want %q:\n%s", env, err, want, text)
		}
	}
}
