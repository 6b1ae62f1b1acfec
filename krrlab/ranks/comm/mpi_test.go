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

// scenarioVariable is the environment variable with the scenario that this test binary runs when mpirun starts it as a
// rank:
//
//	suite      only the conformance tests
//	chunks     the conformance tests, with MPI calls split into chunks
//	trees      chunks, with the collectives of the MPI library, which many ranks use
//	unchanged  checkProcessUnchanged, and the conformance tests
//	watchdog   the last rank hangs, and the others give up after the limit
//	cancel     the last rank hangs, and the contexts of the others end
//	abort      the last rank aborts all ranks
//
// messageDirVariable is the environment variable with the folder for the messages of ranks that abort, because a
// launcher may lose the output of such ranks.
const (
	scenarioVariable   = "KRRLAB_COMM_SCENARIO"
	messageDirVariable = "KRRLAB_COMM_MESSAGE_DIR"
)

// TestMain runs the tests, or a scenario as one rank if scenarioVariable is set and a launcher started the process.
func TestMain(m *testing.M) {
	scenario := os.Getenv(scenarioVariable)
	launch, isRank := comm.DetectLaunch(os.Getenv)
	if scenario == "" || !isRank {
		os.Exit(m.Run())
	}
	if err := runScenario(scenario, launch); err != nil {
		fmt.Printf("FAILED %v\n", err)
		if err := writeMessage(launch.Rank, err); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
}

// writeMessage writes the message of a rank to the folder of messageDirVariable, if it is set.
func writeMessage(rank int, message error) error {
	if os.Getenv(messageDirVariable) == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(os.Getenv(messageDirVariable), fmt.Sprint(rank)), fmt.Appendln(nil, message),
		0o644)
}

// runScenario runs a scenario as one rank. If the conformance tests pass, it prints that the rank passed.
func runScenario(scenario string, launch comm.Launch) error {
	ctx := context.Background()
	limit := time.Minute
	switch scenario {
	case "trees":
		comm.UseLibraryReductions()
		fallthrough
	case "chunks":
		comm.UseSmallChunks()
	case "watchdog":
		limit = 2 * time.Second
	}
	w, err := comm.Open(launch, limit)
	if err != nil {
		return err
	}
	switch scenario {
	case "unchanged":
		if err := checkProcessUnchanged(); err != nil {
			return err
		}
	case "watchdog": // the last rank hangs
		if w.Rank() == w.Size()-1 {
			time.Sleep(time.Hour)
		}
		if err := writeMessage(w.Rank(), barrier(ctx, w)); err != nil {
			return err
		}
		w.Abort(1)
	case "abort": // the last rank aborts all ranks
		if w.Rank() == w.Size()-1 {
			w.Abort(7)
		}
		return barrier(ctx, w)
	case "cancel":
		if err := barrier(ctx, w); err != nil {
			return err
		}
		if w.Rank() == w.Size()-1 {
			time.Sleep(time.Hour)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return barrier(ctx, w)
	}
	if err := checkConformance(ctx, w); err != nil {
		return err
	}
	fmt.Printf("passed rank %d of %d, %s\n", w.Rank(), w.Size(), w.Library())
	return w.Close()
}

// checkProcessUnchanged returns an error if MPI has overwritten code of the C library, which another thread may be
// running meanwhile. It also panics and recovers: the process ends if MPI has replaced Go's signal handler.
func checkProcessUnchanged() error {
	func() {
		defer func() { _ = recover() }()
		var nilPointer *int
		*nilPointer = 1
	}()
	maps, err := os.ReadFile("/proc/self/smaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	isLibcCode := false
	for line := range strings.Lines(string(maps)) {
		switch fields := strings.Fields(line); {
		case len(fields) > 4 && strings.Contains(fields[0], "-"):
			isLibcCode = strings.Contains(fields[1], "x") && strings.Contains(fields[len(fields)-1], "/libc.so")
		case isLibcCode && fields[0] == "Private_Dirty:" && fields[1] != "0":
			return fmt.Errorf("%s kB of the C library's code were written over", fields[1])
		}
	}
	return err
}

// launchers are the commands that start ranks. Debian installs both side by side under these names.
var launchers = []struct {
	name string
	args []string
}{
	{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe"}},
	{"mpirun.mpich", nil},
}

// runScenarioOnRanks runs a scenario of this test binary on the given number of ranks with each installed launcher, and
// passes the output, with the messages of the ranks, and the error of the launcher to check. Other numbers of ranks
// than 2 are skipped unless the suite is long.
func runScenarioOnRanks(t *testing.T, ranks int, scenario string, check func(t *testing.T, out string, err error)) {
	if ranks != 2 { // two ranks of each launcher are always tested
		suite.RequireLong(t, "ranks of MPI")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, launcher := range launchers {
		t.Run(fmt.Sprintf("%s-%d", launcher.name, ranks), func(t *testing.T) {
			path, err := exec.LookPath(launcher.name)
			if !dl.Available {
				t.Skip("this build loads no MPI library")
			}
			if err != nil {
				t.Skipf("no %s here: install openmpi-bin and mpich (make test-long does)", launcher.name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, append(launcher.args, "-n", fmt.Sprint(ranks), program)...)
			dir := t.TempDir()
			cmd.Env = append(os.Environ(), scenarioVariable+"="+scenario, messageDirVariable+"="+dir)
			cmd.WaitDelay = 10 * time.Second
			if _, err := cmd.StdinPipe(); err != nil { // stays open for MPICH's mpirun: see docs/ranks.md
				t.Fatal(err)
			}
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Fatalf("no end within a quarter of an hour:\n%s", out)
			}
			for rank := range ranks {
				message, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(rank)))
				out = append(out, message...)
			}
			check(t, string(out), err)
		})
	}
}

// TestMPI runs the conformance tests on MPI ranks.
func TestMPI(t *testing.T) {
	for _, scenario := range []string{"suite", "chunks", "trees"} {
		counts := []int{1, 2, 3}
		if suite.Scale(0, 1, 1) == 0 { // the short suite
			counts = []int{2}
		}
		for _, ranks := range counts {
			runScenarioOnRanks(t, ranks, scenario, func(t *testing.T, out string, err error) {
				if passed := strings.Count(out, "passed rank"); err != nil || passed != ranks {
					t.Errorf("%d of %d ranks passed, %v:\n%s", passed, ranks, err, out)
				}
			})
		}
	}
}

// TestProcessUnchanged checks that MPI does not change the code of the C library or Go's signal handlers.
func TestProcessUnchanged(t *testing.T) {
	runScenarioOnRanks(t, 2, "unchanged", func(t *testing.T, out string, err error) {
		if passed := strings.Count(out, "passed rank"); err != nil || passed != 2 {
			t.Errorf("%d of 2 ranks passed, %v:\n%s", passed, err, out)
		}
	})
}

// TestMPIFaults lets one of three ranks hang or abort. The run must end with a message and a nonzero exit code.
func TestMPIFaults(t *testing.T) {
	for scenario, want := range map[string]string{
		"watchdog": "no answer within 2s: a peer has died, hangs, or cannot be reached",
		"cancel":   "context deadline exceeded",
		"abort":    "", // only the exit code is checked
	} {
		t.Run(scenario, func(t *testing.T) {
			runScenarioOnRanks(t, 3, scenario, func(t *testing.T, out string, err error) {
				var exit *exec.ExitError
				if !errors.As(err, &exit) || !strings.Contains(out, want) {
					t.Errorf("%v:\n%s", err, out)
				}
			})
		})
	}
}

// TestRankWithoutPeers checks that a process that was started as one of several ranks gets an error if MPI takes it for
// the only one.
func TestRankWithoutPeers(t *testing.T) {
	if !dl.Available {
		t.Skip("this build loads no MPI library")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{
		"PMIX_RANK=2": "started this as rank 2, but",
		"PMIX_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3": "started 3 ranks, but",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program)
		cmd.Env = append(os.Environ(), scenarioVariable+"=suite", "OMPI_ALLOW_RUN_AS_ROOT=1",
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
