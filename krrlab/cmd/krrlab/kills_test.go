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

// killsVariable says how many kills TestKills makes.
const killsVariable = "KRRLAB_KILLS"

// kills is how many there are: a few by default, 200 with KRRLAB_LONG=1.
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

// brief are the flags of a fit that writes a checkpoint after every iteration.
func brief(dir string, more ...string) []string {
	return append(slow(dir, "--n", "500", "--tol", "1e-4", "--rank-timeout", "20s", "--checkpoint-every", "1it"), more...)
}

// tally counts what TestKills has done.
type tally struct {
	kills, process, rank, all, launcher int // by victim
	writing                             int // while a checkpoint was being written
	early                               int // before the first checkpoint
	refused                             int // damaged checkpoints that were found
	runs                                int // that came to their end
}

func (c tally) String() string {
	return fmt.Sprintf("%d kills (%d of the one process, %d of a rank, %d of all ranks, %d of the launcher; %d while "+
		"a checkpoint was written, %d before the first): "+
		"%d runs came to their end with the coefficients of an unbroken one, %d damaged checkpoints",
		c.kills, c.process, c.rank, c.all, c.launcher, c.writing, c.early, c.runs, c.refused)
}

// TestKills kills runs of one process and of ranks of both MPIs with SIGKILL, at random times
// and while they write checkpoints, resumes them on another number of ranks, and kills them
// again, until they end: each with the coefficients of an unbroken run, bit for bit.
// KRRLAB_KILLS=N makes N kills.
func TestKills(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc to find processes by")
	}
	n := kills(t)
	k := &killer{g: rand.New(rand.NewSource(1))}
	var whole [2]*mat.Dense
	for r, l := range []int{-1, 0} {
		dir, start := t.TempDir(), time.Now()
		if err := findLauncher(launchers[0].name); err != nil && l == 0 {
			continue
		}
		runs(t, krrlab(limited(t), t, l, 2, brief(dir)...))
		k.takes[r] = time.Since(start)
		whole[r] = coefficients(filepath.Join(dir, "m.krr"))
	}
	for life := 0; k.kills < n; life++ {
		r := life % 2
		if whole[r] == nil {
			continue
		}
		dir := t.TempDir()
		for !k.run(t, dir, r == 1, k.kills < n) {
		}
		if !mat.Equal(coefficients(filepath.Join(dir, "m.krr")), whole[r]) {
			t.Fatalf("after %v: other coefficients than the unbroken run's", k.tally)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "kept", "*")); len(left) > 0 {
			t.Errorf("%v are left after the end", left)
		}
		k.tally.runs++
	}
	t.Logf("%v", k.tally)
}

// killer kills runs.
type killer struct {
	tally
	g     *rand.Rand
	takes [2]time.Duration // an unbroken run, in one process and on ranks
	stale []string         // parts of checkpoints that an earlier kill has left
}

// run starts or resumes the run in dir, kills it if asked to and it lives long enough, and
// reports whether it came to its end.
func (k *killer) run(t *testing.T, dir string, ranks, kill bool) (ended bool) {
	l, p, most := -1, 1, k.takes[0]
	if ranks {
		l, p, most = k.g.Intn(len(launchers)), 1+k.g.Intn(3), k.takes[1]
		if err := findLauncher(launchers[l].name); err != nil {
			l = 0
		}
	}
	k.stale = parts(dir)
	cmd := krrlab(limited(t), t, l, p, brief(dir, "--resume")...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	testkit.OK(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	if kill && !k.wait(dir, done, time.Duration(k.g.Int63n(int64(most)))) {
		before := k.tally
		k.strike(dir, cmd.Process.Pid, ranks)
		if err = <-done; err == nil { // it had ended just before
			k.tally = before
		} else {
			k.kills++
			gone(t, dir, text.String())
		}
	} else {
		err = <-done
	}
	k.refused += strings.Count(text.String(), "refused")
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true
	case !kill || !errors.As(err, &exit):
		t.Fatalf("%v:\n%s", err, text.String())
	}
	return false
}

// wait waits so long, and every third time on, until a checkpoint is being written. It reports
// whether the run ended before.
func (k *killer) wait(dir string, done chan error, long time.Duration) (ended bool) {
	ahead := func(d time.Duration) bool {
		select {
		case err := <-done:
			done <- err
			return true
		case <-time.After(d):
			return false
		}
	}
	if ahead(long) {
		return true
	}
	for aim := k.g.Intn(3) == 0; aim && !k.inWrite(dir); {
		if ahead(50 * time.Microsecond) {
			return true
		}
	}
	return false
}

// parts returns the unfinished checkpoints.
func parts(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "kept", ".*.part"))
	return names
}

// inWrite reports whether a checkpoint is being written.
func (k *killer) inWrite(dir string) bool {
	return slices.ContainsFunc(parts(dir), func(p string) bool { return !slices.Contains(k.stale, p) })
}

// strike kills the one process, or one rank, or all, or what has started them.
func (k *killer) strike(dir string, pid int, ranks bool) {
	if newestCheckpoint(dir) < 0 {
		k.early++
	}
	if k.inWrite(dir) {
		k.writing++
	}
	victims := ranksOf(dir)
	switch choice := k.g.Intn(4); {
	case !ranks:
		k.process++
		victims = []int{pid}
	case choice == 0 || len(victims) == 0:
		k.launcher++
		victims = []int{pid}
	case choice == 1:
		k.all++
	default:
		k.rank++
		victims = victims[k.g.Intn(len(victims)):][:1]
	}
	for _, v := range victims {
		_ = syscall.Kill(v, syscall.SIGKILL)
	}
}
