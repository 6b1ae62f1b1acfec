// Command mutants breaks the core packages in many small ways, one at a time, and reports the changes that no test
// notices. It ends with status 1 if fewer than nine in ten are killed, or one survives without a reason in reasons.txt.
//
// A mutant is one change of one place (places.go). Every test runs once on the code as it is, for its seconds and its
// coverage; a mutant is compiled by the go command's -overlay, so that the tree is never touched, and given to the
// tests that cover its place, the quick ones first, until one fails. Which places are changed is drawn by a hash of
// their own text and the seed: an edit changes the mutants of what was edited and few others.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// target is a package whose code is broken, and who is to notice.
type target struct {
	pkg        string
	share      int      // of the mutants asked for, relative to the others
	files      []string // base names of the files that are changed; none means all
	dependants []string // packages whose tests see what the package's own let live
}

// targets are what an answer or a certificate comes from, and what guards files and sockets.
var targets = []target{
	{"krrlab/rng", 6, nil, nil},
	{"krrlab/points", 8, nil, nil},
	{"krrlab/estimate", 4, nil, nil},
	{"krrlab/comm", 8, []string{"fixed.go", "local.go"}, []string{"krrlab/gram"}},
	{"krrlab/kernel", 16, nil, []string{"krrlab/gram"}},
	{"krrlab/sketch", 12, nil, nil},
	{"datasets", 16, []string{"answers.go", "csv.go", "header.go", "formats.go", "scaling.go"}, nil},
	{"krrlab/internal/checkpoint", 6, nil, nil},
	{"krrlab/feature", 16, nil, nil},
	{"krrlab/gram", 28, nil, nil},
	{"krrlab/precond", 24, nil, nil},
	{"krrlab/pcg", 28, nil, nil},
	{"krrlab/lowrank", 14, nil, nil},
	{"krrlab/lanczos", 14, nil, nil},
	{"krrlab/adapt", 14, nil, []string{"theory"}},
	{"krrlab/statdim", 18, nil, nil},
	{"krrlab/lambdap", 10, nil, nil},
	{"krrlab/model", 14, nil, nil},
	{"krrlab/bound", 10, nil, []string{"krrlab"}},
	{"krrlab/verify", 12, nil, nil},
	{"krrlab/direct", 10, nil, []string{"krrlab"}},
	{"krrlab/loo", 12, nil, nil},
	{"krrlab/interval", 10, nil, nil},
	{"krrlab/tune", 12, nil, nil},
	{"krrlab/plan", 16, nil, []string{"krrlab"}},
	{"krrlab/race", 10, nil, []string{"krrlab"}},
	{"krrlab/notebook/jupyter", 8, nil, []string{"krrlab/notebook"}},
	{"krrlab", 24, []string{"checkpoint.go", "matrices.go", "quality.go", "residual.go", "solution.go", "solve.go"}, nil},
}

// atLeast is the share that must be killed.
const atLeast = 0.9

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	n := flag.Int("n", 300, "mutants in all packages together")
	seed := flag.Int("seed", 1, "seed of the draw")
	only := flag.String("packages", "", "regular expression: only these of the core packages, with their usual number of mutants")
	file := flag.String("json", "", "write all mutants and what became of them to this file")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	reasons := readReasons()
	folder, err := os.MkdirTemp("", "krrlab-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	total := 0
	for _, t := range targets {
		total += t.share
	}
	var all []*mutant
	fmt.Printf("%-26s %6s %8s %7s %9s %12s\n", "package", "places", "mutants", "killed", "survived", "with reason")
	for _, t := range targets {
		if !match.MatchString(t.pkg) {
			continue
		}
		places, drawn, err := try(ctx, t, max(1, *n*t.share/total), *seed, folder)
		if err != nil {
			return fmt.Errorf("%s: %w", t.pkg, err)
		}
		for _, m := range drawn {
			m.Reason = reasons[m.key()]
		}
		row(t.pkg, len(places), drawn)
		stale(t.pkg, places, reasons)
		all = append(all, drawn...)
	}
	killed, unexplained := row("all", 0, all)
	if *file != "" {
		b, err := json.MarshalIndent(all, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, b, 0o644); err != nil {
			return err
		}
	}
	if float64(killed) < atLeast*float64(len(all)) || unexplained > 0 {
		return fmt.Errorf("%d of %d killed, at least %.0f %% wanted; %d survived without a reason", killed, len(all), 100*atLeast, unexplained)
	}
	return nil
}

// try draws n mutants of a target and gives them to its tests, and what lives to those of its dependants.
func try(ctx context.Context, t target, n, seed int, folder string) (places, drawn []*mutant, err error) {
	if places, err = find(ctx, t); err != nil {
		return nil, nil, err
	}
	own, err := trace(ctx, t.pkg, t.pkg, folder)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range draw(places, seed) {
		if len(drawn) == n {
			break
		}
		if ok, err := own.kill(ctx, m, folder); err != nil {
			return nil, nil, err
		} else if ok { // it compiles
			drawn = append(drawn, m)
		}
	}
	for _, pkg := range t.dependants {
		if !slices.ContainsFunc(drawn, (*mutant).lives) {
			break
		}
		tests, err := trace(ctx, pkg, t.pkg, folder)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range drawn {
			if m.lives() {
				if _, err := tests.kill(ctx, m, folder); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return places, drawn, nil
}

// row prints a line of the table, and the survivors of a package.
func row(name string, places int, list []*mutant) (killed, unexplained int) {
	lived := 0
	for _, m := range list {
		switch {
		case !m.lives():
			killed++
		case m.Reason == "":
			unexplained++
			fallthrough
		default:
			lived++
		}
	}
	fmt.Printf("%-26s %6d %8d %7d %9d %12d\n", name, places, len(list), killed, lived, lived-unexplained)
	for _, m := range list {
		if m.lives() && places > 0 {
			fmt.Printf("  %s: %s: %s  %s\n", m.State, filepath.Join(m.Package, m.File), m.key(), m.Reason)
		}
	}
	return killed, unexplained
}

// stale names the reasons whose places are gone.
func stale(pkg string, places []*mutant, reasons map[string]string) {
	for key := range reasons {
		if strings.HasPrefix(key, pkg+" ") && !slices.ContainsFunc(places, func(m *mutant) bool { return m.key() == key }) {
			fmt.Printf("  in reasons.txt, but no longer in the code: %s\n", key)
		}
	}
}

//go:embed reasons.txt
var reasonsText string

// readReasons reads the reviewed list: a line at the margin is the key of a mutant, the indented lines below it are
// the reason why it may live; # begins a comment.
func readReasons() map[string]string {
	out, key := map[string]string{}, ""
	for s := bufio.NewScanner(strings.NewReader(reasonsText)); s.Scan(); {
		switch text := strings.TrimSpace(s.Text()); {
		case text == "" || text[0] == '#':
		case s.Text()[0] == '\t':
			out[key] = strings.TrimSpace(out[key] + " " + text)
		default:
			key = text
		}
	}
	return out
}
