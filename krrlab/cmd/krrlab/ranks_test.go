package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/dl"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
)

// actAsKrrlab is the environment variable that makes this test binary act as the command krrlab, if it is not empty.
const actAsKrrlab = "KRRLAB_PLAY_KRRLAB"

// TestMain runs krrlab itself if actAsKrrlab is set, and the tests otherwise.
func TestMain(m *testing.M) {
	if os.Getenv(actAsKrrlab) != "" {
		main()
	}
	os.Exit(m.Run())
}

// launchers are the commands that start MPI ranks. Debian gives them these names so that both can be installed
// together.
var launchers = []struct {
	name string
	args []string
}{
	{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe"}},
	{"mpirun.mpich", nil},
}

// findLauncher returns an error if no ranks can be started by the launcher of this name.
func findLauncher(name string) error {
	if suite.Small() {
		return errors.New("ranks of MPI: a long suite (make test-machines ROW=ranks)")
	}
	if !dl.Available {
		return errors.New("this build loads no MPI library")
	}
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("no %s here: install openmpi-bin and mpich (make test-long does)", name)
	}
	return nil
}

// krrlab returns the command krrlab on rankCount ranks of launchers[launcher], or in one process if launcher is −1. It
// skips the test if the launcher is missing.
func krrlab(ctx context.Context, t *testing.T, launcher, rankCount int, args ...string) *exec.Cmd {
	t.Helper()
	self := testkit.Must(os.Executable())
	words := append([]string{self}, args...)
	if launcher >= 0 {
		chosen := launchers[launcher]
		words = append(append([]string{chosen.name}, chosen.args...),
			append([]string{"-n", fmt.Sprint(rankCount)}, words...)...)
		if err := findLauncher(chosen.name); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), actAsKrrlab+"=1")
	cmd.WaitDelay = 20 * time.Second
	if launcher >= 0 {
		testkit.Must(cmd.StdinPipe()) // stdin stays open until the end, which MPICH's mpirun needs: see docs/ranks.md
	}
	return cmd
}

// testContext returns a context that ends after 15 minutes, for a run that could otherwise hang.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// coefficients returns the matrix C of a model file.
func coefficients(name string) *mat.Dense { return testkit.Must(model.Load(name)).C }

// checkCoefficients checks that the coefficients of a model file equal want, bit for bit.
func checkCoefficients(t *testing.T, name string, want *mat.Dense) {
	t.Helper()
	if !mat.Equal(coefficients(name), want) {
		t.Errorf("the model file %s has other coefficients than wanted", name)
	}
}

// mustRun runs a command that must succeed and print all the wanted texts, and returns its output.
func mustRun(t *testing.T, cmd *exec.Cmd, wants ...string) string {
	t.Helper()
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	testkit.Contains(t, string(text), wants...)
	return string(text)
}

// quickFit returns the arguments of a fit that takes little time and saves its model to a file.
func quickFit(out string) []string {
	return []string{"fit", "--data", "synthetic-classes", "--n", "1200", "--precond", "auto features=100", "--lambda",
		"0.1", "--tol", "1e-6", "--blas", "go", "--out", out}
}

// TestFitOnRanks fits on 1, 2 and 4 ranks of each MPI implementation. There must be one report and one model, the same
// coefficients everywhere, and the report must count the ranks and the bytes that they exchange.
func TestFitOnRanks(t *testing.T) {
	var reference *mat.Dense
	for launcher := range launchers {
		for _, rankCount := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s-%d", launchers[launcher].name, rankCount), func(t *testing.T) {
				dir := t.TempDir()
				modelFile, reportFile := filepath.Join(dir, "m.krr"), filepath.Join(dir, "r.json")
				fit := append(quickFit(modelFile), "--json", reportFile)
				text := mustRun(t, krrlab(testContext(t), t, launcher, rankCount, fit...),
					fmt.Sprintf("ranks        %d (%d on this machine)", rankCount, rankCount))
				testkit.Equal(t, strings.Count(text, "converged after"), 1, text)
				reference = cmp.Or(reference, coefficients(modelFile))
				checkCoefficients(t, modelFile, reference)
				var report struct {
					Ranks struct {
						Count int
						Bytes int64
					}
				}
				testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(reportFile)), &report))
				if report.Ranks.Count != rankCount || report.Ranks.Bytes == 0 {
					t.Errorf("the report has %+v, want %d ranks that exchange bytes", report, rankCount)
				}
			})
		}
	}
}

// TestUnsolvedOnRanks fits to a tolerance that is too loose for leave-one-out scores, which only the first rank
// computes. All ranks must still go on to the report, the model and the picture, and then exit with the error.
func TestUnsolvedOnRanks(t *testing.T) {
	for launcher := range launchers {
		t.Run(launchers[launcher].name, func(t *testing.T) {
			dir := t.TempDir()
			modelFile, picture := filepath.Join(dir, "m.krr"), filepath.Join(dir, "p.png")
			cmd := krrlab(testContext(t), t, launcher, 2, "fit", "--data", "synthetic-regression", "--n", "200",
				"--solver",
				"cg",
				"--lambda", "1e-6", "--tol", "0.5", "--blas", "go", "--calibrate", "loo", "--out", modelFile, "--plot",
				picture, "--rank-timeout", "30s")
			text, err := cmd.CombinedOutput()
			if exitErr, ok := errors.AsType[*exec.ExitError](err); !ok || exitErr.ExitCode() != 1 ||
				strings.Count(string(text), "too far from the solution") != 1 ||
				!strings.Contains(string(text), "converged after") {
				t.Fatalf("%v:\n%s", err, text)
			}
			coefficients(modelFile)
			if _, err := os.Stat(picture); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherCommandsOnRanks checks that a command that does not use ranks, and the message of a wrong command line,
// appear only once on several ranks.
func TestOtherCommandsOnRanks(t *testing.T) {
	for launcher := range launchers {
		t.Run(launchers[launcher].name, func(t *testing.T) {
			if text := mustRun(t, krrlab(testContext(t), t, launcher, 3, "version")); strings.Count(text,
				"krrlab ") != 1 {
				t.Errorf("three ranks print the version more than once:\n%s", text)
			}
			text, err := krrlab(testContext(t), t, launcher, 3, "fit", "--data", "no-such-data").CombinedOutput()
			if err == nil || strings.Count(string(text), "no-such-data") != 1 {
				t.Errorf("want an error and one message; error %v:\n%s", err, text)
			}
		})
	}
}

// TestRanksWithOtherFiles checks that a run is refused if a rank reads another model, other data or other landmarks
// than the first rank, as on a machine with other files, and that nothing is written.
func TestRanksWithOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		testkit.OK(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint(rank)), 0o755))
	}
	data := ""
	for i := range 60 {
		data += fmt.Sprintf("%d,%d\n", i, i%7)
	}
	for rank, lambda := range []string{"0.1", "0.2"} {
		rankDir := filepath.Join(dir, fmt.Sprint(rank))
		for name, text := range map[string]string{"x.csv": data, "y.csv": data + fmt.Sprintf("9,%d\n", rank),
			"marks": fmt.Sprint(rank)} {
			testkit.OK(t, os.WriteFile(filepath.Join(rankDir, name), []byte(text), 0o644))
		}
		mustRun(t, krrlab(testContext(t), t, -1, 1, "fit", "--train", filepath.Join(rankDir, "x.csv"), "--lambda",
			lambda, "--out", filepath.Join(rankDir, "m.krr")))
	}
	const script = `cd "$0/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"`
	for launcher := range launchers {
		for line, want := range map[string]string{
			"predict m.krr --in x.csv --target none --drop 1 --out p.csv":           "the model read here is",
			"verify m.krr --train x.csv":                                            "the model read here is",
			"fit --train y.csv --out p.csv":                                         "the data read here are",
			"fit --train x.csv --out p.csv --precond nystrom|landmarks=@marks":      "the options here, or",
			"quality --train x.csv --json p.csv --precond nystrom|landmarks=@marks": "the options here, or",
		} {
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "|", " ")
			}
			cmd := krrlab(testContext(t), t, launcher, 2, args...)
			position := len(cmd.Args) - len(args) - 1
			cmd.Args = slices.Insert(cmd.Args, position, "sh", "-c", script, dir)
			text, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(text), "rank 1 of 2: "+want) != 1 {
				t.Errorf("%s: want an error and one message with %q; error %v:\n%s", line, want, err, text)
			}
			if written, _ := filepath.Glob(filepath.Join(dir, "*", "p.csv")); len(written) > 0 {
				t.Errorf("%s writes %v although the ranks differ", line, written)
			}
		}
	}
}

// TestRanksWithOtherOptions checks that a run is refused if rank 1 has another option than the first rank, before any
// work.
func TestRanksWithOtherOptions(t *testing.T) {
	dir := t.TempDir()
	data, modelFile := filepath.Join(dir, "x.csv"), filepath.Join(dir, "m.krr")
	text := ""
	for i := range 60 {
		text += fmt.Sprintf("%d,%d\n", i, i%7)
	}
	testkit.OK(t, os.WriteFile(data, []byte(text), 0o644))
	mustRun(t, krrlab(testContext(t), t, -1, 1, "fit", "--train", data, "--lambda", "0.1", "--out", modelFile))
	const script = `test "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 || set -- "$@" $0; exec "$@"`
	for launcher := range launchers {
		for extraOption, line := range map[string][]string{
			"--seed 4":     {"verify", modelFile, "--train", data}, // another start of Lanczos
			"--bound":      {"predict", modelFile, "--in", data},
			"--csv x.csv":  {"fit", "--train", data, "--lambda", "0.1"},
			"--no-solve":   {"quality", "--train", data, "--lambda", "0.1"},
			"--plot x.svg": {"fit", "--train", data, "--lambda", "0.1"},
		} {
			cmd := krrlab(testContext(t), t, launcher, 2, line...)
			position := len(cmd.Args) - len(line) - 1
			cmd.Args = slices.Insert(cmd.Args, position, "sh", "-c", script, extraOption)
			text, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(text), "rank 1 of 2: the options here, or") != 1 {
				t.Errorf("%v, rank 1 with %s: %v:\n%s", line, extraOption, err, text)
			}
		}
	}
}

// TestBoundProcessors checks the note that the launcher has bound the ranks to fewer processors than it may use. There
// must be no note if taskset restricts the launcher itself.
func TestBoundProcessors(t *testing.T) {
	if err := findLauncher("mpirun.openmpi"); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		t.Skip("needs two processors, and taskset")
	}
	const note = "the launcher has bound the ranks of this machine to 1 of "
	for options, wantNote := range map[string]bool{"mpirun.openmpi --bind-to core": true,
		"mpirun.openmpi --bind-to none": false, "taskset -c 0 mpirun.openmpi --bind-to core": false} {
		cmd := krrlab(testContext(t), t, -1, 1, "fit", "--data", "synthetic-classes", "--n", "100")
		words := append(strings.Fields(options), "--allow-run-as-root", "-n", "1")
		cmd.Args = append(words, cmd.Args...)
		cmd.Path = testkit.Must(exec.LookPath(words[0]))
		if text := mustRun(t, cmd); strings.Contains(text, note) != wantNote {
			t.Errorf("%s: a note is printed: %v, want %v:\n%s", options, !wantNote, wantNote, text)
		}
	}
}

// slowFit returns the arguments of a fit of many short iterations that writes checkpoints to dir/kept and its model to
// dir/m.krr.
func slowFit(dir string, more ...string) []string { return checkpointedFit(dir, "5it", more...) }

// checkpointedFit is slowFit with the given interval between checkpoints.
func checkpointedFit(dir, interval string, more ...string) []string {
	return append([]string{"fit", "--data", "synthetic-classes", "--n", "1500", "--solver", "cg", "--storage",
		"recompute", "--lambda", "0.01", "--tol", "1e-6", "--blas", "go", "--out", filepath.Join(dir, "m.krr"),
		"--checkpoint", filepath.Join(dir, "kept"), "--checkpoint=every=" + interval}, more...)
}

// awaitCheckpoint waits until the run in dir has written a checkpoint with a number above after.
func awaitCheckpoint(t *testing.T, dir string, after int) {
	t.Helper()
	for range 9000 {
		if newestCheckpoint(dir) > after {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("no checkpoint within three minutes")
}

// newestCheckpoint returns the number of the newest checkpoint of a run in dir, or −1 if there is none.
func newestCheckpoint(dir string) int {
	newest := -1
	files, _ := filepath.Glob(filepath.Join(dir, "kept", "checkpoint-*.krrc"))
	for _, file := range files {
		var number int
		if _, err := fmt.Sscanf(filepath.Base(file), "checkpoint-%d.krrc", &number); err == nil {
			newest = max(newest, number)
		}
	}
	return newest
}

// uninterrupted returns the coefficients of an uninterrupted run of slowFit, in one process or on two ranks. The
// coefficients do not depend on the number of ranks and the MPI implementation, so each run is done only once.
func uninterrupted(t *testing.T, ranks bool) *mat.Dense {
	t.Helper()
	run, launcher := &uninterruptedRuns[0], -1
	if ranks {
		run, launcher = &uninterruptedRuns[1], 0
	}
	run.Do(func() {
		dir := t.TempDir()
		mustRun(t, krrlab(testContext(t), t, launcher, 2, slowFit(dir)...))
		run.coefficients = coefficients(filepath.Join(dir, "m.krr"))
	})
	if run.coefficients == nil {
		t.Skip("no uninterrupted run to compare with")
	}
	return run.coefficients
}

// uninterruptedRuns keeps the coefficients of the uninterrupted runs in one process and on ranks.
var uninterruptedRuns [2]struct {
	sync.Once
	coefficients *mat.Dense
}

// processesOf returns the ids of the processes whose command line contains the folder dir, including launchers and
// their daemons.
func processesOf(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if commandLine, err := os.ReadFile(file); err != nil || !bytes.Contains(commandLine, []byte(dir)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ranksOf returns the ids of the processes of processesOf that run this program.
func ranksOf(dir string) (pids []int) {
	self, _ := os.Executable()
	for _, pid := range processesOf(dir) {
		if commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			bytes.HasPrefix(commandLine, append([]byte(self), 0)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitNoProcesses waits until no process of the run in dir is left, and otherwise reports an error with text, the
// output of the run. It waits up to three minutes, since ranks whose launcher has died need time to notice.
func awaitNoProcesses(t *testing.T, dir, text string) {
	t.Helper()
	for range 3600 {
		if len(processesOf(dir)) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes %v are left:\n%s", processesOf(dir), text)
}

// TestFaults kills a rank, and then ends a resumed run by SIGTERM as a scheduler does, for one process and for both MPI
// implementations. Each run must end with an exit code other than 0 and leave no process. The last run, resumed from
// its checkpoint on one rank fewer, must give the coefficients of an uninterrupted run.
func TestFaults(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc to find processes by")
	}
	for launcher := -1; launcher < len(launchers); launcher++ {
		name, rankCount := "one-process", 1
		if launcher >= 0 {
			name, rankCount = launchers[launcher].name, 3
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			// Each run resumes the previous one.
			for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				cmd := krrlab(testContext(t), t, launcher, rankCount, slowFit(dir, "--resume")...)
				var text bytes.Buffer
				cmd.Stdout, cmd.Stderr = &text, &text
				testkit.OK(t, cmd.Start())
				awaitCheckpoint(t, dir, 3+6*round)
				victim := cmd.Process.Pid // a scheduler signals the launcher
				if pids := ranksOf(dir); signal == syscall.SIGKILL && len(pids) > 0 {
					victim = pids[len(pids)-1]
				}
				_ = syscall.Kill(victim, signal)
				if err := cmd.Wait(); err == nil {
					t.Fatalf("a run that is ended by %v has the exit code 0:\n%s", signal, text.String())
				}
				awaitNoProcesses(t, dir, text.String())
			}
			mustRun(t, krrlab(testContext(t), t, launcher, max(1, rankCount-1), slowFit(dir, "--resume")...),
				"resuming from the checkpoint")
			checkCoefficients(t, filepath.Join(dir, "m.krr"), uninterrupted(t, launcher >= 0))
		})
	}
}
