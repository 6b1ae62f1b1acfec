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
	var paths []string
	for _, t := range o.Targets {
		paths = append(paths, t.Package)
	}
	m, err := open(ctx, o.Root, paths)
	if err != nil {
		return nil, err
	}
	var done []Package
	for i, n := range share(o.N, o.Targets) {
		p, err := m.try(ctx, o, o.Targets[i], n)
		if err != nil {
			return done, fmt.Errorf("%s: %w", o.Targets[i].Package, err)
		}
		done = append(done, p)
	}
	return done, nil
}

// try tries n mutants of one target.
func (m *module) try(ctx context.Context, o Options, t Target, n int) (Package, error) {
	p := Package{Path: t.Package}
	src, err := m.load(t.Package)
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
		b, err := m.build(ctx, pkg, overlay, folder)
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
