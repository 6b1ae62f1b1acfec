package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/stage"
)

// Options are the options of Run. Zero values mean the defaults. The solver ASkotch runs only on problems with at most
// Exact points. In Go, Exact = -1 means that eigenvalues are never computed; on the command line, 0 means this.
type Options struct {
	Problems []string `flag:"problems" help:"names of problems, separated by commas (default: all whose data are on this machine)"`
	N        int      `flag:"n" default:"5000" check:">=100" help:"largest number of points of a problem"`
	Seeds    int      `flag:"seeds" default:"5" check:">=1" help:"number of random draws of each preconditioner"`
	Shares   []int    `flag:"shares" default:"100,40,10" check:">=1" help:"ranks, as the number of points divided by these"`
	Exact    int      `flag:"exact" default:"5000" check:">=-1" zero:"-1" help:"largest number of points for which all eigenvalues of K are computed too, on one thread; 0 for never"`
	MaxIter  int      `flag:"max-iter" default:"500" check:">=1" help:"iterations after which a preconditioner has failed"`
	Only     []string `flag:"only" help:"names of preconditioners to run, as in the file of runs, separated by commas (default: all)"`
	Dirs     []string // folders to search for data; default: datasets.Dirs()
	// Notify, if not nil, is called with a message after each group of runs.
	Notify func(text string)
}

// Preconditioners returns the names of the preconditioners: all variants of all kinds, and those of other programs, in
// the notation of the stage compare but without a rank, and the solver ASkotch. The suffix " alone" marks a
// preconditioner without a rank.
func Preconditioners() (names []string) {
	for _, k := range stage.Kinds() {
		for _, v := range k.Variants {
			names = append(names, variantName(k, v))
		}
	}
	return append(append(names, externalNames...), askotchName)
}

// variantName returns the name of a variant of a kind. A kind without the option features has no rank.
func variantName(k stage.Kind, variant string) string {
	name, withoutRank := strings.CutSuffix(strings.TrimSpace(k.Name+" "+variant), " features=0")
	if withoutRank || schema.Of(schema.Copy(k.Zero)).Lookup("features") == nil {
		name += " alone"
	}
	return name
}

// rankOf returns the rank of the runs of a preconditioner in a group of runs with the given rank. It is 0 if the
// preconditioner has no rank.
func rankOf(preconditioner string, rank int) int {
	if preconditioner == "none" || strings.HasSuffix(preconditioner, " alone") {
		return 0
	}
	return rank
}

// compareEntry returns the entry of the stage compare for one of the names of Preconditioners. If the name contains
// lambda-p=10, λ_p is 10λ. The rank is added unless the name ends in " alone".
func compareEntry(name string, rank int, lambda float64) stage.Entry {
	text, alone := strings.CutSuffix(name, " alone")
	text = strings.Replace(text, "lambda-p=10", fmt.Sprintf("lambda-p=%g", 10*lambda), 1)
	if !alone {
		text += fmt.Sprintf(" features=%d", rank)
	}
	return stage.Entry{Text: text}
}

// setup is a problem with its data and the options of Run.
type setup struct {
	*Problem
	data    *datasets.Dataset // points and targets
	options *Options          // options of Run, with defaults
}

// Run makes the runs that the file does not contain yet. It saves the file after each group of runs with the same
// problem, λ and rank, so that the next Run continues an interrupted one. Each problem is run with its λ and with
// λ/100, except the problems with LambdaPerPoint, which are run with one λ.
func Run(ctx context.Context, f *File, o Options) error {
	if err := cmp.Or(schema.Complete(&o), registerExternal()); err != nil {
		return err
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	for _, name := range o.Only {
		if _, err := indexOf("preconditioner", name, Preconditioners()); err != nil {
			return err
		}
	}
	problems, err := selectProblems(o.Problems)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		data, err := problem.Data(ctx, o.N, o.Dirs)
		if missing, ok := errors.AsType[*datasets.MissingFilesError](err); ok && len(o.Problems) == 0 {
			o.Notify(problem.Name + ": left out: " + missing.Error())
			continue
		}
		if err != nil {
			return err
		}
		s := &setup{&problem, data, &o}
		lambdas := problem.lambdas(data.Len())
		spectrumOnce := sync.OnceValues(func() (*spectrum, error) { return s.spectrum(ctx, slices.Min(lambdas)) })
		for _, lambda := range lambdas {
			if err := f.run(ctx, s, lambda, spectrumOnce); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes the runs of a problem with one λ. spectrumOnce computes the eigenvalues of K.
func (f *File) run(ctx context.Context, s *setup, lambda float64, spectrumOnce func() (*spectrum, error)) error {
	lab, err := krrlab.New(s.data, krrlab.Config{Kernel: s.Kernel, Lambda: lambda, Solver: krrlab.PCG,
		Precond: krrlab.None{}, MaxIter: s.options.MaxIter, Seed: 1, Tol: 1e-3})
	if err != nil {
		return err
	}
	defer lab.Free()
	n, d, t := lab.Dims()
	base := Line{Schema: version, Problem: s.Name, Source: s.Source, N: n, D: d, T: t, Kernel: s.Kernel.String(),
		Lambda: lambda, Machine: machineName(), MaxIter: s.options.MaxIter}
	names := slices.DeleteFunc(Preconditioners(), func(name string) bool {
		return len(s.options.Only) > 0 && !slices.Contains(s.options.Only, name) || name == askotchName &&
			n > s.options.Exact
	})
	for _, share := range s.options.Shares {
		base.Rank = max(1, n/share)
		missing, err := f.missing(names, &base, s.options)
		if err != nil {
			return err
		}
		if missing == nil {
			continue
		}
		startSeconds := accel.ProcessorSeconds()
		newLines, err := s.runGroup(ctx, lab, base, missing)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		// The comparison begins with a run without a preconditioner. It is kept once for each problem and λ, with the
		// eigenvalues, and not if the user has selected preconditioners.
		if newLines[0].Preconditioner == "none" {
			if draws, _ := f.runsOf("none", &base); draws > 0 || len(s.options.Only) > 0 {
				newLines = newLines[1:]
			} else {
				eigenvalues, err := spectrumOnce()
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				newLines[0].Exact = eigenvalues.exact(lambda)
			}
		}
		newLines[0].GroupSeconds = roundMeasured(accel.ProcessorSeconds() - startSeconds)
		f.Lines = append(f.Lines, newLines...)
		if err := f.Save(); err != nil {
			return err
		}
		s.options.Notify(fmt.Sprintf("%s, n = %d, λ = %g, rank %d: %.0f s of processors", s.Name, n, lambda, base.Rank,
			newLines[0].GroupSeconds))
	}
	return nil
}

// runGroup makes the runs of the named preconditioners with the λ and the rank of base.
func (s *setup) runGroup(ctx context.Context, lab *krrlab.Lab, base Line, names []string) (all []Line, err error) {
	var entries stage.Entries
	compared := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == askotchName })
	for _, name := range compared {
		entries = append(entries, compareEntry(name, base.Rank, base.Lambda))
	}
	if entries != nil {
		comparison, err := lab.Compare(ctx, krrlab.CompareOptions{With: entries, Seeds: s.options.Seeds, To: 1e-6,
			Steps:     60,
			MaxExactN: -1})
		if err != nil {
			return nil, err
		}
		all = linesOf(base, comparison, append([]string{"none"}, compared...))
	}
	if len(compared) == len(names) {
		return all, nil
	}
	runs, err := s.runASkotch(ctx, lab, base)
	return append(all, runs...), err
}

// linesOf returns the runs of a comparison, completed from base. names are the preconditioners of the runs in order,
// each with its draws.
func linesOf(base Line, comparison *krrlab.Compare, names []string) (all []Line) {
	for i := range comparison.Rows {
		row, line := &comparison.Rows[i], base
		if i > 0 && row.Draw == 0 {
			names = names[1:]
		}
		line.Preconditioner, line.Rank = names[0], rankOf(names[0], base.Rank)
		line.Draw, line.Reached, line.FailureReason = row.Draw, row.Reached, row.FailureReason
		line.Bytes, line.KBytes = row.Bytes, comparison.KBytes
		line.BuildSeconds, line.ApplySeconds = roundMeasured(row.Build), roundMeasured(row.Solve)
		line.ProductSeconds = roundMeasured(comparison.Product)
		line.BuildFlops, line.ApplyFlops = roundMeasured(row.BuildFlops), roundMeasured(row.ApplyFlops)
		for k, end := range []float64{row.Kappa.Lo, row.Kappa.Hi} {
			if stage.Number(end).Known() {
				line.Kappa[k] = end
			}
		}
		if row.LogDet.Known() {
			line.LogDet = roundMeasured(float64(row.LogDet))
		}
		all = append(all, line)
	}
	return all
}

// machineName describes the processor and the number of threads.
func machineName() string { return fmt.Sprintf("%s, %d threads", accel.CPU().Model, accel.Threads()) }

// roundMeasured rounds a measured number to four digits.
func roundMeasured(v float64) float64 { return stage.RoundDigits(v, 4) }
