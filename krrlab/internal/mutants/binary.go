package mutants

import (
	"bufio"
	"bytes"
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
	pkg   string // path in the module
	file  string
	dir   string
	tests []test // that pass without a mutant, the quickest first
}

// test is one of them.
type test struct {
	name    string
	seconds float64
	reaches map[int]bool
}

// overlay writes the woven files and the list that the go command reads, and returns the
// list's name.
func (s *source) overlay(folder string, sites []*Site, first, last int) (string, error) {
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		file := filepath.Join(folder, name)
		replace[filepath.Join(s.dir, name)] = file
		return os.WriteFile(file, text, 0o600)
	}
	for name, text := range s.weave(sites, first) {
		if err := put(name, text); err != nil {
			return "", err
		}
	}
	if err := put(supportName, []byte(support(s.pkg.Name(), last))); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// build compiles the tests of pkg with the overlay; a package without tests gives none.
func (m *module) build(ctx context.Context, pkg, overlay, folder string) (*binary, error) {
	b := &binary{pkg: pkg, dir: filepath.Join(m.root, pkg), file: filepath.Join(folder, strings.ReplaceAll(pkg, "/", "_")+".test")}
	if _, err := output(ctx, m.root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.file, "./"+pkg); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.file); err != nil {
		return nil, fmt.Errorf("mutants: %s has no tests", pkg)
	}
	return b, nil
}

// verdict is how a run of tests ended.
type verdict int

const (
	passed verdict = iota
	failed
	timedOut
)

// run runs the tests of those names with a mutant on, 0 for none.
func (b *binary) run(ctx context.Context, names []string, active int, trace string, limit time.Duration) (verdict, string, error) {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	args := []string{"-test.run", "^(" + strings.Join(quoted, "|") + ")$", "-test.failfast", "-test.short", "-test.timeout", limit.String()}
	words := append([]string{b.file}, args...)
	if runtime.GOOS == "linux" {
		words = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, addressSpace)}, words...)
	}
	guard, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(guard, words[0], words[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(cmd.Environ(), activeVariable+"="+strconv.Itoa(active), traceVariable+"="+trace)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return passed, "", ctx.Err()
	case err == nil:
		return passed, "", nil
	case guard.Err() != nil, bytes.Contains(out.Bytes(), []byte("panic: test timed out after")):
		return timedOut, "", nil
	case errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay):
		return failed, failure(out.Bytes()), nil
	}
	return passed, "", err
}

var failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failure names the test that failed, as far as the output says.
func failure(out []byte) string {
	if f := failLine.FindSubmatch(out); f != nil {
		return string(f[1])
	}
	return "crash"
}

// trace runs every test once without a mutant: those that pass are kept, with their seconds
// and what they reach; it returns the names of those that fail.
func (b *binary) trace(ctx context.Context, limit time.Duration) (bad []string, err error) {
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
		v, _, err := b.run(ctx, []string{name}, 0, file, limit)
		if err != nil {
			return nil, err
		}
		if v != passed {
			bad = append(bad, name)
			continue
		}
		reaches, err := readReached(file)
		if err != nil {
			return nil, err
		}
		if len(reaches) > 0 {
			b.tests = append(b.tests, test{name, time.Since(start).Seconds(), reaches})
		}
	}
	slices.SortFunc(b.tests, func(x, y test) int {
		switch {
		case x.seconds < y.seconds:
			return -1
		case x.seconds > y.seconds:
			return 1
		}
		return strings.Compare(x.name, y.name)
	})
	return bad, nil
}

func readReached(file string) (map[int]bool, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reached := map[int]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if id, err := strconv.Atoi(s.Text()); err == nil {
			reached[id] = true
		}
	}
	return reached, nil
}

// kill gives a mutant to the tests that reach it, in runs that get longer. by is the test
// that failed, "" if none did; reached says whether there was any.
func (b *binary) kill(ctx context.Context, id int, slack float64) (v verdict, by string, reached bool, err error) {
	var names []string
	seconds, budget := 0.0, 1.0
	flush := func() error {
		if len(names) > 0 && v == passed {
			limit := time.Duration((10 + slack*seconds) * float64(time.Second))
			if v, by, err = b.run(ctx, names, id, "", limit); v == timedOut {
				by = names[len(names)-1]
			}
			budget *= 2
		}
		names, seconds = nil, 0
		return err
	}
	for _, t := range b.tests {
		if !t.reaches[id] {
			continue
		}
		reached = true
		names, seconds = append(names, t.name), seconds+t.seconds
		if seconds >= budget {
			if err := flush(); err != nil || v != passed {
				return v, by, reached, err
			}
		}
	}
	err = flush()
	return v, by, reached, err
}
