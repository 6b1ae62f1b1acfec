// Command mutants breaks the core packages in small ways, one at a time, and reports which of
// these mutants no test notices; see package mutants. It ends with status 1 if fewer than nine
// in ten are killed, or one survives without a reason in reasons.txt.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/internal/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// target is the share that must be killed.
const target = 0.9

func run(ctx context.Context) error {
	o := mutants.Options{Root: "."}
	flag.IntVar(&o.N, "n", 300, "mutants in all packages together")
	flag.IntVar(&o.Seed, "seed", 1, "seed of the draw")
	only := flag.String("packages", "", "regular expression: only these of the core packages, with their usual number of mutants")
	file := flag.String("json", "", "write all mutants and what became of them to this file")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("mutants: -packages: %w", err)
	}
	total, kept := 0, 0
	o.Targets = slices.Clone(mutants.All)
	o.Targets = slices.DeleteFunc(o.Targets, func(t mutants.Target) bool {
		total += t.Share
		if match.MatchString(t.Package) {
			kept += t.Share
			return false
		}
		return true
	})
	if len(o.Targets) == 0 {
		return fmt.Errorf("mutants: -packages %q names none of the core packages", *only)
	}
	o.N = o.N * kept / total
	start := time.Now()
	o.Log = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.0f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	if o.Reasons, err = mutants.Reasons(); err != nil {
		return err
	}
	packages, failed := mutants.Run(ctx, o)
	if err := mutants.Write(os.Stdout, packages); err != nil {
		return err
	}
	if *file != "" {
		b, err := json.MarshalIndent(map[string]any{"seed": o.Seed, "packages": packages}, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	t := mutants.Total(packages)
	if t.Share() < target || t.Lived > t.Excused {
		return fmt.Errorf("mutants: %d of %d killed (%.1f %%, at least %.0f wanted), %d survived without a reason", t.Killed, t.Mutants, 100*t.Share(), 100*target, t.Lived-t.Excused)
	}
	return nil
}
