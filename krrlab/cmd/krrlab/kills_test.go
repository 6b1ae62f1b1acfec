package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// killsVariable is the environment variable with the number of kills that TestKills makes.
const killsVariable = "KRRLAB_KILLS"

// kills returns the number of kills: the one given in the environment, or a few by default and 200 with KRRLAB_LONG=1.
func kills(t *testing.T) int {
	t.Helper()
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q: want a number of kills", killsVariable, text)
		}
		return n
	}
	return suite.Scale(2, 4, 200)
}

// shortFit returns the arguments of a short fit that writes a checkpoint after every iteration.
func shortFit(dir string, more ...string) []string {
	return append(checkpointedFit(dir, "1it", "--n", "500", "--tol", "1e-4", "--rank-timeout", "20s"), more...)
}

// tally counts what TestKills has done.
type tally struct {
	kills                                                 int // kills in total
	processKills, rankKills, allRanksKills, launcherKills int // kills by what was killed
	killsWhileWriting                                     int // kills while a checkpoint was being written
	killsBeforeCheckpoint                                 int // kills before the first checkpoint
	refusedCheckpoints                                    int // damaged checkpoints that a resumed run refused
	completedRuns                                         int // runs that ended with the right coefficients
}

func (t tally) String() string {
	return fmt.Sprintf("%d kills (%d of the one process, %d of a rank, %d of all ranks, %d of the launcher; %d while "+
		"a checkpoint was written, %d before the first): "+
		"%d runs ended with the coefficients of an uninterrupted one, %d damaged checkpoints",
		t.kills, t.processKills, t.rankKills, t.allRanksKills, t.launcherKills, t.killsWhileWriting,
		t.killsBeforeCheckpoint, t.completedRuns, t.refusedCheckpoints)
}

// TestKills checks that runs of one process and of ranks of both MPI implementations survive SIGKILL, at random times
// and while they write checkpoints. Each run is resumed, on another number of ranks, and killed again until it ends. It
// must end with the coefficients of an uninterrupted run, bit for bit. KRRLAB_KILLS=N sets the number of kills.
func TestKills(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc to find processes by")
	}
	killCount := kills(t)
	k := &killer{random: rand.New(rand.NewSource(1))}
	var uninterruptedC [2]*mat.Dense // coefficients of an uninterrupted run in one process and on ranks
	for kind, launcher := range []int{-1, 0} {
		dir, start := t.TempDir(), time.Now()
		if err := findLauncher(launchers[0].name); err != nil && launcher == 0 {
			continue
		}
		mustRun(t, krrlab(testContext(t), t, launcher, 2, shortFit(dir)...))
		k.duration[kind] = time.Since(start)
		uninterruptedC[kind] = coefficients(filepath.Join(dir, "m.krr"))
	}
	for trial := 0; k.kills < killCount; trial++ {
		kind := trial % 2 // 0 for one process, 1 for ranks
		if uninterruptedC[kind] == nil {
			continue
		}
		dir := t.TempDir()
		for !k.run(t, dir, kind == 1, k.kills < killCount) {
		}
		if !mat.Equal(coefficients(filepath.Join(dir, "m.krr")), uninterruptedC[kind]) {
			t.Fatalf("after %v: other coefficients than those of an uninterrupted run", k.tally)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "kept", "*")); len(files) > 0 {
			t.Errorf("the checkpoints %v are not deleted at the end", files)
		}
		k.tally.completedRuns++
	}
	t.Logf("%v", k.tally)
}

// killer kills the runs of TestKills and counts what it has done.
type killer struct {
	tally
	random    *rand.Rand
	duration  [2]time.Duration // times of an uninterrupted run, in one process and on ranks
	abandoned []string         // unfinished checkpoints that an earlier kill has left
}

// run starts or resumes the run in dir. If kill is set, it kills the run at a random time, unless the run ends before.
// It reports whether the run came to its end.
func (k *killer) run(t *testing.T, dir string, onRanks, kill bool) (ended bool) {
	launcher, count, longest := -1, 1, k.duration[0]
	if onRanks {
		launcher, count, longest = k.random.Intn(len(launchers)), 1+k.random.Intn(3), k.duration[1]
		if err := findLauncher(launchers[launcher].name); err != nil {
			launcher = 0
		}
	}
	k.abandoned = unfinishedCheckpoints(dir)
	cmd := krrlab(testContext(t), t, launcher, count, shortFit(dir, "--resume")...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	testkit.OK(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	if kill && !k.wait(dir, done, time.Duration(k.random.Int63n(int64(longest)))) {
		tallyBefore := k.tally
		k.strike(dir, cmd.Process.Pid, onRanks)
		if err = <-done; err == nil { // the run had ended just before the kill
			k.tally = tallyBefore
		} else {
			k.kills++
			awaitNoProcesses(t, dir, output.String())
		}
	} else {
		err = <-done
	}
	k.refusedCheckpoints += strings.Count(output.String(), "refused")
	var exitErr *exec.ExitError
	switch {
	case err == nil:
		return true
	case !kill || !errors.As(err, &exitErr):
		t.Fatalf("%v:\n%s", err, output.String())
	}
	return false
}

// wait waits for the given time and, in a third of the calls, until a checkpoint is being written. It reports whether
// the run ended before that.
func (k *killer) wait(dir string, done chan error, delay time.Duration) (ended bool) {
	endsWithin := func(d time.Duration) bool {
		select {
		case err := <-done:
			done <- err
			return true
		case <-time.After(d):
			return false
		}
	}
	if endsWithin(delay) {
		return true
	}
	for awaitWrite := k.random.Intn(3) == 0; awaitWrite && !k.isWriting(dir); {
		if endsWithin(50 * time.Microsecond) {
			return true
		}
	}
	return false
}

// unfinishedCheckpoints returns the paths of the unfinished checkpoints of a run in dir.
func unfinishedCheckpoints(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "kept", ".*.part"))
	return names
}

// isWriting reports whether a checkpoint is being written: whether there is an unfinished one that no earlier kill has
// left.
func (k *killer) isWriting(dir string) bool {
	return slices.ContainsFunc(unfinishedCheckpoints(dir), func(path string) bool {
		return !slices.Contains(k.abandoned, path)
	})
}

// strike kills the single process, or one rank, all ranks, or the launcher, chosen at random, and counts the kill.
func (k *killer) strike(dir string, pid int, onRanks bool) {
	if newestCheckpoint(dir) < 0 {
		k.killsBeforeCheckpoint++
	}
	if k.isWriting(dir) {
		k.killsWhileWriting++
	}
	victims := ranksOf(dir)
	switch choice := k.random.Intn(4); {
	case !onRanks:
		k.processKills++
		victims = []int{pid}
	case choice == 0 || len(victims) == 0:
		k.launcherKills++
		victims = []int{pid}
	case choice == 1:
		k.allRanksKills++
	default:
		k.rankKills++
		victims = victims[k.random.Intn(len(victims)):][:1]
	}
	for _, victim := range victims {
		_ = syscall.Kill(victim, syscall.SIGKILL)
	}
}
