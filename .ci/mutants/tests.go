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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/cover"
)

// addressSpace bounds what a test may map, in KiB: a mutant that allocates without end must not take the machine.
const addressSpace = 12 << 20

// suite are the tests of a package that pass, the quickest first.
type suite struct {
	pkg   string
	tests []test
}

// test is one of them, with the blocks of the target's files that it covers.
type test struct {
	name    string
	seconds float64
	covers  map[string][]cover.ProfileBlock // by base name
}

// trace runs every test of pkg once for what it covers of the target.
func trace(ctx context.Context, pkg, target, folder string) (*suite, error) {
	s, binary := &suite{pkg: pkg}, filepath.Join(folder, "traced.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-cover", "-coverpkg=./"+target, "-o", binary, "./"+pkg).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	list := exec.CommandContext(ctx, binary, "-test.list", ".")
	list.Dir = pkg
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		profile, start := filepath.Join(folder, "profile"), time.Now()
		state, _, err := attempt(ctx, pkg, binary, []string{name}, 5*time.Minute, "-test.coverprofile", profile)
		if err != nil {
			return nil, err
		}
		if state != "survived" {
			fmt.Printf("  not used, it fails without a mutant: %s.%s\n", pkg, name)
			continue
		}
		files, err := cover.ParseProfiles(profile)
		if err != nil {
			return nil, err
		}
		t := test{name, time.Since(start).Seconds(), map[string][]cover.ProfileBlock{}}
		for _, f := range files {
			t.covers[filepath.Base(f.FileName)] = slices.DeleteFunc(f.Blocks, func(b cover.ProfileBlock) bool { return b.Count == 0 })
		}
		s.tests = append(s.tests, t)
	}
	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.seconds, b.seconds) })
	return s, os.Remove(binary)
}

// reaches reports whether the test runs the place.
func (t *test) reaches(m *mutant) bool {
	return slices.ContainsFunc(t.covers[m.File], func(b cover.ProfileBlock) bool {
		after := b.StartLine < m.line || b.StartLine == m.line && b.StartCol <= m.col
		return after && (m.line < b.EndLine || m.line == b.EndLine && m.col < b.EndCol)
	})
}

// kill gives a mutant to the tests that reach it, in runs that get longer; false where it does not compile.
func (s *suite) kill(ctx context.Context, m *mutant, folder string) (bool, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return false, err
	}
	broken, overlay, binary := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "mutant.test")
	js, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: broken}})
	text := slices.Concat(src[:m.at], []byte(m.text), src[m.end:])
	if err := cmp.Or(err, os.WriteFile(broken, text, 0o600), os.WriteFile(overlay, js, 0o600)); err != nil {
		return false, err
	}
	if err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+s.pkg).Run(); err != nil {
		return false, ctx.Err()
	}
	var names []string
	seconds, budget := 0.0, 1.0
	run := func() (err error) {
		if len(names) == 0 {
			return nil
		}
		limit := time.Duration((10 + 10*seconds) * float64(time.Second))
		m.State, m.By, err = attempt(ctx, s.pkg, binary, names, limit)
		names, seconds, budget = nil, 0, 2*budget
		return err
	}
	for _, t := range s.tests {
		if !t.reaches(m) {
			continue
		}
		names, seconds = append(names, t.name), seconds+t.seconds
		if seconds >= budget {
			if err := run(); err != nil || !m.lives() {
				return true, err
			}
		}
	}
	return true, run()
}

var failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// attempt runs tests of a binary and returns how that ended, and which failed.
func attempt(ctx context.Context, pkg, binary string, names []string, limit time.Duration, more ...string) (state, by string, err error) {
	words := append([]string{binary, "-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.short", "-test.timeout", limit.String()}, more...)
	if runtime.GOOS == "linux" {
		words = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, addressSpace)}, words...)
	}
	guard, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(guard, words[0], words[1:]...)
	cmd.Dir, cmd.WaitDelay = pkg, time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return "survived", "", nil
	case guard.Err() != nil, bytes.Contains(out, []byte("panic: test timed out after")):
		return "timed out", names[len(names)-1], nil
	case !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return "", "", err
	}
	if f := failLine.FindSubmatch(out); f != nil {
		return "killed", pkg + "." + string(f[1]), nil
	}
	return "killed", pkg + ": crash", nil
}
