package mutants

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say what Run does.
type Options struct {
	Root    string                           // the module's folder
	Targets []Target                         // empty means All
	N       int                              // mutants in all targets together; 0 means 300
	Seed    int                              // of the draw
	Slack   float64                          // a run may take this many times what it takes without a mutant; 0 means 10
	Reasons map[string]string                // why mutants may live, by their Keys
	Log     func(format string, args ...any) // nil means silence
}

// testLimit is for one test without a mutant.
const testLimit = 5 * time.Minute

// The ways a mutant ends.
const (
	killed    = "killed"
	timedOut  = "timed out" // killed by its taking too long
	survived  = "survived"
	unreached = "unreached" // survived, as no test runs the place
)

// Mutant is a site and what became of it.
type Mutant struct {
	Site
	State  string
	By     string `json:",omitempty"` // package and test that killed it
	Reason string `json:",omitempty"` // why it may live, from the reviewed list
}

// lives reports whether no test failed.
func (m *Mutant) lives() bool { return m.State == survived || m.State == unreached }

// Package is what Run found out about one target.
type Package struct {
	Path    string
	Sites   int      // that there are
	Broken  int      // drawn, and put back because they do not compile
	Failing []string `json:",omitempty"` // tests that fail without a mutant, and were not used
	Stale   []string `json:",omitempty"` // keys with a reason that no place of the package has
	Mutants []Mutant
}

// Run tries the mutants of every target; on an error it returns what is done.
func Run(ctx context.Context, o Options) ([]Package, error) {
	o.N, o.Slack = cmp.Or(o.N, 300), cmp.Or(o.Slack, 10)
	if o.Targets == nil {
		o.Targets = All
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	var done []Package
	for i, n := range share(o.N, o.Targets) {
		p, err := try(ctx, o, o.Targets[i], n)
		if err != nil {
			return done, fmt.Errorf("%s: %w", o.Targets[i].Package, err)
		}
		done = append(done, p)
	}
	return done, nil
}

// try tries n mutants of one target.
func try(ctx context.Context, o Options, t Target, n int) (Package, error) {
	p := Package{Path: t.Package}
	src, err := load(ctx, o.Root, t.Package)
	if err != nil {
		return p, err
	}
	all := src.sites(t.wants)
	p.Sites, p.Stale = len(all), stale(t.Package, all, o.Reasons)
	var drawn []*Site
	drawn, p.Broken = src.sample(all, n, o.Seed)
	if err := src.compiles(drawn); err != nil {
		return p, err
	}
	folder, err := os.MkdirTemp("", "krrlab-mutants-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(folder)
	overlay, err := src.overlay(folder, drawn)
	if err != nil {
		return p, err
	}
	for _, s := range drawn {
		p.Mutants = append(p.Mutants, Mutant{Site: *s, State: unreached})
	}
	for _, pkg := range append([]string{t.Package}, t.Dependants...) {
		left := Total([]Package{p}).Lived
		if left == 0 {
			break
		}
		start := time.Now()
		b, err := build(ctx, o.Root, pkg, overlay, folder)
		if err != nil {
			return p, err
		}
		built := time.Since(start)
		bad, err := b.trace(ctx)
		if err != nil {
			return p, err
		}
		for _, name := range bad {
			p.Failing = append(p.Failing, pkg+"."+name)
		}
		o.Log("%s: %d mutants; tests of %s: built in %.0f s, traced in %.0f s", t.Package, left, pkg, built.Seconds(), (time.Since(start) - built).Seconds())
		for i := range p.Mutants {
			x := &p.Mutants[i]
			if !x.lives() {
				continue
			}
			state, by, err := b.kill(ctx, i+1, o.Slack)
			if err != nil {
				return p, err
			}
			if state != unreached { // or reached by the tests of a package before
				x.State = state
			}
			if !x.lives() {
				x.By = pkg + "." + by
			}
		}
		_ = os.Remove(filepath.Join(folder, filepath.Base(b.file)))
	}
	for i := range p.Mutants {
		if x := &p.Mutants[i]; x.lives() {
			x.Reason = o.Reasons[x.Key()]
			o.Log("%s: %s/%s:%d: %s", x.State, x.Package, x.File, x.Line, x.Key())
		}
	}
	return p, nil
}

// stale returns the keys of one package that no site has.
func stale(pkg string, all []*Site, reasons map[string]string) (out []string) {
	for key := range reasons {
		if strings.HasPrefix(key, pkg+" ") && !slices.ContainsFunc(all, func(s *Site) bool { return s.Key() == key }) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// All are the core packages: what an answer or a certificate comes from, and what guards
// the files and sockets that come from outside.
var All = []Target{
	{Package: "krrlab/rng", Share: 6},
	{Package: "krrlab/points", Share: 8},
	{Package: "krrlab/estimate", Share: 4},
	{Package: "krrlab/comm", Files: []string{"fixed.go", "local.go"}, Dependants: []string{"krrlab/gram"}, Share: 8},
	{Package: "krrlab/kernel", Dependants: []string{"krrlab/gram"}, Share: 16},
	{Package: "krrlab/sketch", Share: 12},
	{Package: "datasets", Files: []string{"answers.go", "csv.go", "header.go", "formats.go", "scaling.go"}, Share: 16},
	{Package: "krrlab/internal/checkpoint", Share: 6},
	{Package: "krrlab/feature", Share: 16},
	{Package: "krrlab/gram", Share: 28},
	{Package: "krrlab/precond", Share: 24},
	{Package: "krrlab/pcg", Share: 28},
	{Package: "krrlab/lowrank", Share: 14},
	{Package: "krrlab/lanczos", Share: 14},
	{Package: "krrlab/adapt", Dependants: []string{"theory"}, Share: 14},
	{Package: "krrlab/statdim", Share: 18},
	{Package: "krrlab/lambdap", Share: 10},
	{Package: "krrlab/model", Share: 14},
	{Package: "krrlab/bound", Dependants: []string{"krrlab"}, Share: 10},
	{Package: "krrlab/verify", Share: 12},
	{Package: "krrlab/notebook/jupyter", Dependants: []string{"krrlab/notebook"}, Share: 8},
	{Package: "krrlab", Files: []string{"checkpoint.go", "matrices.go", "quality.go", "residual.go", "solution.go", "solve.go"}, Share: 24},
}

// Target is a package whose code is broken, and who is to notice.
type Target struct {
	Package    string   // its path in the module
	Files      []string // base names of the files that are changed; none means all
	Dependants []string // packages whose tests see the mutants that the package's own let live
	Share      int      // of the mutants asked for, relative to the others
}

func (t Target) wants(file string) bool { return len(t.Files) == 0 || slices.Contains(t.Files, file) }

// sample draws up to n of the sites: by turns of the operators, in the order of the hashes,
// those that compile and do not touch one another. tried is how many did not compile.
func (s *source) sample(all []*Site, n, seed int) (drawn []*Site, broken int) {
	byOp := map[string][]*Site{}
	var ops []string
	for _, site := range all {
		site.draw(seed)
		if byOp[site.Op] == nil {
			ops = append(ops, site.Op)
		}
		byOp[site.Op] = append(byOp[site.Op], site)
	}
	slices.Sort(ops)
	for _, op := range ops {
		slices.SortFunc(byOp[op], func(a, b *Site) int { return strings.Compare(a.hash, b.hash) })
	}
	for left := true; left && len(drawn) < n; {
		left = false
		for _, op := range ops {
			for len(byOp[op]) > 0 && len(drawn) < n {
				site := byOp[op][0]
				byOp[op] = byOp[op][1:]
				left = true
				if slices.ContainsFunc(drawn, site.overlaps) {
					continue
				}
				if s.compiles([]*Site{site}) == nil {
					drawn = append(drawn, site)
					break
				}
				broken++
			}
		}
	}
	return drawn, broken
}

// share divides n among targets by their shares, at least one each.
func share(n int, targets []Target) []int {
	total := 0
	for _, t := range targets {
		total += t.Share
	}
	out := make([]int, len(targets))
	given, sum := 0, 0
	for i, t := range targets {
		sum += t.Share
		out[i] = max(1, n*sum/total-given)
		given += out[i]
	}
	return out
}
