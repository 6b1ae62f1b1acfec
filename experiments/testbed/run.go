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

// Options of Run. Zero values mean the defaults. The solver ASkotch runs only on problems with at most Exact points. In
// Go, Exact = -1 means that eigenvalues are never computed; on the command line, 0 means this.
type Options struct {
	Problems []string `flag:"problems" help:"names of problems, separated by commas (default: all whose data are on this machine)"`
	N        int      `flag:"n" default:"5000" check:">=100" help:"largest number of points of a problem"`
	Seeds    int      `flag:"seeds" default:"5" check:">=1" help:"number of random draws of each preconditioner"`
	Shares   []int    `flag:"shares" default:"100,40,10" check:">=1" help:"ranks, as the number of points divided by these"`
	Exact    int      `flag:"exact" default:"5000" check:">=-1" zero:"-1" help:"largest number of points for which all eigenvalues of K are computed too, on one thread; 0 for never"`
	MaxIter  int      `flag:"max-iter" default:"500" check:">=1" help:"iterations after which a preconditioner has failed"`
	Only     []string `flag:"only" help:"names of preconditioners to run, as in the file of runs, separated by commas (default: all)"`
	Dirs     []string // folders to search for data; default: datasets.Dirs()
	// Tell, if not nil, is called with a message after each group of runs.
	Tell func(text string)
}

// Preconditioners returns the names of the preconditioners: all variants of all kinds, and those of other programs, in
// the notation of the stage compare but without a rank, and the solver ASkotch. A name that ends in " alone" has no
// rank.
func Preconditioners() (names []string) {
	for _, k := range stage.Kinds() {
		for _, v := range k.Variants {
			text := strings.TrimSpace(k.Name + " " + v)
			names = append(names, strings.Replace(text, " features=0", " alone", 1))
		}
	}
	return append(append(names, externalNames...), askotchName)
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

// Run makes the runs that the file does not contain yet. It saves the file after each group of runs with the same
// problem, λ and rank, so that the next Run continues an interrupted one. Each problem is run with its λ and with
// λ/100, except the problems with PerPoint, which are run with one λ.
func Run(ctx context.Context, f *File, o Options) error {
	if err := cmp.Or(schema.Settle(&o), registerField()); err != nil {
		return err
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
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
	for _, p := range problems {
		data, err := p.Data(ctx, o.N, o.Dirs)
		if missing, ok := errors.AsType[*datasets.MissingError](err); ok && len(o.Problems) == 0 {
			o.Tell(p.Name + ": left out: " + missing.Error())
			continue
		}
		if err != nil {
			return err
		}
		lambdas := p.lambdas(data.Len())
		spectrumOnce := sync.OnceValues(func() (*spectrum, error) {
			return newSpectrum(ctx, &p, data, slices.Min(lambdas), &o)
		})
		for _, lambda := range lambdas {
			if err := f.run(ctx, &p, data, lambda, spectrumOnce, &o); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes the runs of a problem with one λ. spectrumOnce computes the eigenvalues of K.
func (f *File) run(ctx context.Context, p *Problem, data *datasets.Dataset, lambda float64,
	spectrumOnce func() (*spectrum, error), o *Options) error {
	lab, err := krrlab.New(data, krrlab.Config{Kernel: p.Kernel, Lambda: lambda, Solver: krrlab.PCG,
		Precond: krrlab.None{}, MaxIter: o.MaxIter, Seed: 1, Tol: 1e-3})
	if err != nil {
		return err
	}
	defer lab.Free()
	n := data.Len()
	for i, share := range o.Shares {
		g := group{p.Name, n, lambda, max(1, n/share)}
		names, err := f.missing(g, i == 0, o)
		if err != nil {
			return err
		}
		if names == nil {
			continue
		}
		startSeconds := accel.ProcessorSeconds()
		newLines, err := runGroup(ctx, lab, p, data, g, names, o)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		// The comparison begins with a run without a preconditioner. It is kept once for each problem and λ, with the
		// eigenvalues, and not if the user has selected preconditioners.
		if newLines[0].Preconditioner == "none" {
			exists := slices.ContainsFunc(f.Lines, func(l Line) bool {
				return l.Preconditioner == "none" && l.Problem == p.Name && l.N == n && l.Lambda == lambda
			})
			if exists || len(o.Only) > 0 {
				newLines = newLines[1:]
			} else {
				eigenvalues, err := spectrumOnce()
				if err != nil {
					return fmt.Errorf("%s: %w", p.Name, err)
				}
				newLines[0].Exact = eigenvalues.exact(lambda)
			}
		}
		newLines[0].Group = roundMeasured(accel.ProcessorSeconds() - startSeconds)
		f.Lines = append(f.Lines, newLines...)
		if err := f.Save(); err != nil {
			return err
		}
		o.Tell(fmt.Sprintf("%s, n = %d, λ = %g, rank %d: %.0f s of processors", p.Name, n, lambda, g.rank,
			newLines[0].Group))
	}
	return nil
}

// runGroup makes the runs of a group with the given names.
func runGroup(ctx context.Context, lab *krrlab.Lab, p *Problem, data *datasets.Dataset, g group, names []string,
	o *Options) (all []Line, err error) {
	n, d, t := lab.Dims()
	base := Line{Schema: version, Problem: p.Name, Source: p.Source, N: n, D: d, T: t, Kernel: p.Kernel.String(),
		Lambda: g.lambda, Machine: machineName(), MaxIter: o.MaxIter, Rank: g.rank}
	var entries stage.Entries
	compared := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == askotchName })
	for _, name := range compared {
		entries = append(entries, compareEntry(name, g.rank, g.lambda))
	}
	if entries != nil {
		r, err := lab.Compare(ctx, krrlab.CompareOptions{With: entries, Seeds: o.Seeds, To: 1e-6, Steps: 60,
			ExactBelow: -1})
		if err != nil {
			return nil, err
		}
		all = lines(base, r, compared)
	}
	if len(compared) == len(names) || n > o.Exact {
		return all, nil
	}
	runs, err := runASkotch(ctx, lab, p, data, base, o)
	return append(all, runs...), err
}

// lines returns the runs of a comparison, completed from base. The first line is the run without a preconditioner; the
// names belong to the other preconditioners, in order.
func lines(base Line, r *krrlab.Compare, names []string) (all []Line) {
	nameIndex := -1
	for i := range r.Rows {
		row, l := &r.Rows[i], base
		l.Draw, l.Reached, l.Failed, l.Bytes, l.KBytes = row.Draw, row.Reached, row.Why, row.Bytes, r.KBytes
		l.Build, l.Apply, l.Product = roundMeasured(row.Build), roundMeasured(row.Solve), roundMeasured(r.Product)
		l.BuildFlops, l.ApplyFlops = roundMeasured(row.BuildFlops), roundMeasured(row.ApplyFlops)
		for e, v := range []float64{row.Kappa.Lo, row.Kappa.Hi} {
			if stage.Number(v).Known() {
				l.Kappa[e] = v
			}
		}
		if row.LogDet.Known() {
			l.LogDet = roundMeasured(float64(row.LogDet))
		}
		if i > 0 && row.Draw == 0 {
			nameIndex++
		}
		if l.Preconditioner = "none"; i > 0 {
			l.Preconditioner = names[nameIndex]
		}
		if i == 0 || strings.HasSuffix(l.Preconditioner, " alone") {
			l.Rank = 0
		}
		all = append(all, l)
	}
	return all
}

// machineName describes the processor and the number of threads.
func machineName() string { return fmt.Sprintf("%s, %d threads", accel.CPU().Model, accel.Threads()) }

// roundMeasured rounds a measured number to four digits.
func roundMeasured(v float64) float64 { return stage.RoundDigits(v, 4) }
