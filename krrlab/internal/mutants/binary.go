package mutants

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
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The variables by which a copy is told which mutant is on, and where to write which it
// has reached.
const (
	activeVariable = "KRRLAB_MUTANT"
	traceVariable  = "KRRLAB_MUTANT_TRACE"
)

// addressSpace bounds what a mutant's tests may map, in KiB: one that allocates without end
// must not take the machine with it.
const addressSpace = 12 << 20

// binary is the compiled tests of a package, woven mutants inside.
type binary struct {
	file  string
	dir   string
	tests []test // that pass without a mutant, the quickest first
}

// test is one of them.
type test struct {
	name    string
	seconds float64
	reaches []string // numbers of mutants
}

// overlay writes the woven files and the list that the go command reads, and returns the
// list's name.
func (s *source) overlay(folder string, sites []*Site) (string, error) {
	files, replace := s.weave(sites), map[string]string{}
	files[supportName] = []byte(support(s.pkg.Name(), len(sites)))
	for name, text := range files {
		file := filepath.Join(folder, name)
		replace[filepath.Join(s.dir, name)] = file
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// build compiles the tests of pkg with the overlay; a package without tests gives none.
func build(ctx context.Context, root, pkg, overlay, folder string) (*binary, error) {
	b := &binary{dir: filepath.Join(root, pkg), file: filepath.Join(folder, strings.ReplaceAll(pkg, "/", "_")+".test")}
	if _, err := output(ctx, root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.file, "./"+pkg); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.file); err != nil {
		return nil, fmt.Errorf("mutants: %s has no tests", pkg)
	}
	return b, nil
}

// run runs the tests of those names with a mutant on, 0 for none. The state is Survived if they pass,
// killed by the test named, or TimedOut.
func (b *binary) run(ctx context.Context, names []string, active int, trace string, limit time.Duration) (state, by string, err error) {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	words := []string{b.file, "-test.run", "^(" + strings.Join(quoted, "|") + ")$", "-test.failfast", "-test.short", "-test.timeout", limit.String()}
	if runtime.GOOS == "linux" {
		words = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, addressSpace)}, words...)
	}
	guard, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(guard, words[0], words[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(cmd.Environ(), activeVariable+"="+strconv.Itoa(active), traceVariable+"="+trace)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return survived, "", nil
	case guard.Err() != nil, bytes.Contains(out, []byte("panic: test timed out after")):
		return timedOut, names[len(names)-1], nil
	case !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return "", "", err
	}
	if f := failLine.FindSubmatch(out); f != nil {
		return killed, string(f[1]), nil
	}
	return killed, "crash", nil
}

var failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// trace runs every test once without a mutant: those that pass are kept, with their seconds
// and what they reach; it returns the names of those that fail.
func (b *binary) trace(ctx context.Context) (bad []string, err error) {
	out, err := output(ctx, b.dir, b.file, "-test.list", ".")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		file := b.file + "." + name + ".reached"
		start := time.Now()
		state, _, err := b.run(ctx, []string{name}, 0, file, testLimit)
		if err != nil {
			return nil, err
		}
		if state != survived {
			bad = append(bad, name)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if len(text) > 0 {
			b.tests = append(b.tests, test{name, time.Since(start).Seconds(), strings.Fields(string(text))})
		}
	}
	slices.SortFunc(b.tests, func(x, y test) int {
		return cmp.Or(cmp.Compare(x.seconds, y.seconds), cmp.Compare(x.name, y.name))
	})
	return bad, nil
}

// kill gives a mutant to the tests that reach it, in runs that get longer, and returns its state, and the
// test that failed.
func (b *binary) kill(ctx context.Context, id int, slack float64) (state, by string, err error) {
	state = unreached
	var names []string
	seconds, budget := 0.0, 1.0
	for i, t := range b.tests {
		if slices.Contains(t.reaches, strconv.Itoa(id)) {
			names, seconds = append(names, t.name), seconds+t.seconds
		}
		if len(names) == 0 || seconds < budget && i < len(b.tests)-1 {
			continue
		}
		limit := time.Duration((10 + slack*seconds) * float64(time.Second))
		if state, by, err = b.run(ctx, names, id, "", limit); err != nil || state != survived {
			return state, by, err
		}
		names, seconds, budget = nil, 0, 2*budget
	}
	return state, by, nil
}

// output runs a command in dir and returns what it wrote; its error has the first lines
// of what it complained of.
func output(ctx context.Context, dir string, words ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutants: %s: %w: %s", strings.Join(words[:min(3, len(words))], " "), err, firstLines(complaint.String(), 5))
	}
	return out, nil
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(s), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "; ")
}
