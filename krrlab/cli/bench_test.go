package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// quickBench measures small loops as if every rate were 1e9 a second.
func quickBench(t *testing.T, repeat int) *benchReport {
	t.Helper()
	f := &benchFlags{n: 150, d: 5, repeat: repeat}
	if err := f.settle(); err != nil {
		t.Fatal(err)
	}
	b := newLoopBench(t.Context(), f, func(string) {})
	b.window = time.Microsecond
	b.rate = func(_ context.Context, kind rate, order int) float64 {
		if order != 150 {
			t.Errorf("rates are measured with matrices of order %d", order)
		}
		return 1e9
	}
	r, err := b.measure()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBenchLoops measures everything, and checks the arithmetic of the floors.
func TestBenchLoops(t *testing.T) {
	r := quickBench(t, 2)
	floors := map[string]float64{ // at 1e9 a second: n = 150, d = 5, s = 30
		"exp, per element and core": 1e-9,
		"K·P, float32, t = 10":      2 * 150 * 150 * 10 * 1e-9, // flops: longer than reading
		"M⁻¹R, form Linv, t = 1":    8 * 30 * (150 + 30) * 1e-9,
		"K·P, fixed16, t = 10":      2 * 150 * 150 * 10 * 1e-9,
		"K·P, float64, t = 1":       150 * 151 / 2 * 8 * 1e-9,
		"Z formed":                  2 * 150 * 30 * 5 * 1e-9,
		"ZᵀZ, products in float64":  150 * 30 * 30 * 1e-9,
	}
	for _, l := range r.Loops {
		if !(l.Seconds > 0) || !(l.AtLeast > 0) || !(l.Ratio > 0) {
			t.Errorf("%+v", l)
		}
		if measured := strings.HasPrefix(l.Floor, "K·P"); !measured && math.Abs(l.Ratio/(l.Seconds/l.AtLeast)-1) > 1e-9 {
			t.Errorf("%+v", l)
		}
		if want, ok := floors[l.Name]; ok {
			if math.Abs(l.AtLeast/want-1) > 1e-9 {
				t.Errorf("%s: the floor is %g s, want %g", l.Name, l.AtLeast, want)
			}
			delete(floors, l.Name)
		}
	}
	if len(floors) > 0 || len(r.Rates) != 5 {
		t.Errorf("not measured: %v; rates %v", floors, r.Rates)
	}
	text := r.table().Text()
	for _, want := range []string{"n = 150, d = 5, s = 30", "K formed, float32", "M⁻¹R", "an iteration of block PCG, t = 40", "reading 1 GB/s (1 to 1)", "first touch", "at most", "last"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	js, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(js), `"floor_seconds"`) {
		t.Errorf("%v: %s", err, js)
	}
}

// TestBenchMedians checks that ratios are taken within a repetition.
func TestBenchMedians(t *testing.T) {
	b := &loopBench{report: &benchReport{}}
	b.add(loop{name: "K·P, float32, t = 1", floor: "reading 800 MB or sgemm"}, []sample{{2, 1}, {9, 3}, {3, 4}})
	if l := b.report.Loops[0]; l.Seconds != 3 || l.AtLeast != 3 || l.Ratio != 2 || l.Best != 2 || *l.Asked != 1.3 {
		t.Errorf("%+v", l)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median %v", m)
	}
	for s, want := range map[float64]string{2: "2 s", 0.25: "250 ms", 0.99999: "1 s", 3.14159e-6: "3.14 µs", 0.9e-9: "0.9 ns"} {
		if got := duration(s); got != want {
			t.Errorf("duration(%g) = %q, want %q", s, got, want)
		}
	}
}

// TestBenchBounds: each bound has a row of its own and its reason, and a ratio beyond one is an error that names it.
func TestBenchBounds(t *testing.T) {
	r := quickBench(t, 1)
	used := map[*float64]bool{}
	for i := range r.Loops {
		used[r.Loops[i].Asked], r.Loops[i].Best = true, 0.5
	}
	for i, b := range benchBounds {
		if !used[&benchBounds[i].atMost] || b.why == "" || !(b.atMost > 0) {
			t.Errorf("%+v is nobody's", b)
		}
	}
	if err := r.beyond(); err != nil {
		t.Errorf("ratios of 0.5: %v", err)
	}
	for i := range r.Loops {
		if l := &r.Loops[i]; l.Name == "Z formed" || l.Asked == nil {
			l.Best = 7.25
		}
	}
	want := fmt.Sprintf("1 ratios of %d are beyond their bounds: Z formed: 7.25 times its floor (sgemm of its flops), at most 1.60", len(r.Loops))
	if err := r.beyond(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestBenchHistory: a run has the ratios of the last one on a like machine, and damage to the file is passed over.
func TestBenchHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "bench.jsonl")
	run := func(n int, best float64) *benchReport {
		r := &benchReport{CPU: "a", N: n, Loops: []benchLoop{{Name: "x", Floor: "y", Best: best}, {Name: "new", Floor: fmt.Sprint(best)}}}
		if note := r.remember(file); note != "" {
			t.Errorf("not kept: %s", note)
		}
		return r
	}
	last := func(r *benchReport) float64 {
		if r.Loops[1].Last != nil {
			t.Errorf("%+v was measured before", r.Loops[1])
		}
		if r.Loops[0].Last == nil {
			return 0
		}
		return *r.Loops[0].Last
	}
	if v := last(run(100, 1.5)); v != 0 {
		t.Errorf("the first run has %v", v)
	}
	run(200, 9)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"loops\": [\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if v := last(run(100, 1.25)); v != 1.5 {
		t.Errorf("the second has %v, want 1.5", v)
	}
	if v := last(run(100, 1.75)); v != 1.25 {
		t.Errorf("the third has %v, want 1.25", v)
	}
	r := &benchReport{}
	if note := r.remember(filepath.Join(file, "x")); !strings.Contains(note, "not kept") {
		t.Errorf("a folder that cannot be: %q", note)
	}
	if note := r.remember(""); !strings.Contains(note, "no cache") {
		t.Errorf("no folder: %q", note)
	}
}

// TestBenchRefuses checks that command lines that make no sense end before anything is measured.
func TestBenchRefuses(t *testing.T) {
	file := write(t, t.TempDir(), "file", "")
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitUsage, []string{"--n", "10"}},
		{exitUsage, []string{"--d", "0"}},
		{exitUsage, []string{"--features", "-1"}},
		{exitUsage, []string{"--repeat", "0"}},
		{exitUsage, []string{"mnist"}},
		{exitError, []string{"--n", "100000000"}},
		{exitError, []string{"--json", filepath.Join(file, "b.json")}},
	} {
		code, out, errs := command(t, slices.Concat([]string{"bench"}, c.args)...)
		if code != c.code || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out, errs)
		}
	}
}

// TestBenchInterrupted checks that bench ends when it is told to.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	code, out, errs := commandContext(t, ctx, "bench", "--n", "200", "--json", filepath.Join(dir, "b.json"))
	if code != exitInterrupted || out != "" || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
