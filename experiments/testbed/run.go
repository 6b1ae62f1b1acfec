package testbed

import (
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

// Options of Run. Zero values mean the defaults.
type Options struct {
	Problems []string `flag:"problems" help:"names, separated by commas (default: all whose data are at hand)"`
	N        int      `flag:"n" default:"5000" check:">=100" help:"points of a problem at most"`
	Seeds    int      `flag:"seeds" default:"5" check:">=1" help:"draws of each preconditioner"`
	Shares   []int    `flag:"shares" default:"100,40,10" check:">=1" help:"ranks, as the number of points divided by these"`
	Exact    int      `flag:"exact" default:"5000" check:">=-1" zero:"-1" help:"points up to which all eigenvalues of K are found too, on one thread; 0 for never"`
	MaxIter  int      `flag:"max-iter" default:"500" check:">=1" help:"iterations after which a preconditioner has failed"`
	Dirs     []string // to look for data in; default: datasets.Dirs
	// Tell, if not nil, is called with what was run.
	Tell func(text string)
}

// Preconditioners returns those of every rank, as compare names them: the variants of each kind.
func Preconditioners() (names []string) {
	for _, k := range stage.Kinds() {
		for _, v := range k.Variants {
			text := strings.TrimSpace(k.Name + " " + v)
			names = append(names, strings.Replace(text, " features=0", " alone", 1))
		}
	}
	return names
}

// entry returns what compare takes of one of Preconditioners(): λ_p in units of λ, the rank unless it is alone.
func entry(name string, rank int, lambda float64) stage.Entry {
	text, alone := strings.CutSuffix(name, " alone")
	text = strings.Replace(text, "lambda-p=10", fmt.Sprintf("lambda-p=%g", 10*lambda), 1)
	if !alone {
		text += fmt.Sprintf(" features=%d", rank)
	}
	return stage.Entry{Text: text}
}

// Run makes the runs that the file lacks, and saves it after each group of those that share a problem, λ and a rank:
// an interrupted Run is continued by the next. Each problem is run with its λ and with a hundredth of it, but those of
// PerPoint.
func Run(ctx context.Context, f *File, o Options) error {
	if err := schema.Settle(&o); err != nil {
		return err
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	problems, err := pick(o.Problems)
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
		mu := sync.OnceValues(func() (*spectrum, error) { return newSpectrum(ctx, &p, data, slices.Min(lambdas), &o) })
		for _, lambda := range lambdas {
			if err := f.run(ctx, &p, data, lambda, mu, &o); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes the runs of a problem with one λ.
func (f *File) run(ctx context.Context, p *Problem, data *datasets.Dataset, lambda float64,
	mu func() (*spectrum, error), o *Options) error {
	lab, err := krrlab.New(data, krrlab.Config{Kernel: p.Kernel, Lambda: lambda, Solver: krrlab.PCG,
		Precond: krrlab.None{}, MaxIter: o.MaxIter, Seed: 1, Tol: 1e-3})
	if err != nil {
		return err
	}
	defer lab.Free()
	n := data.Len()
	for i, share := range o.Shares {
		g := group{p.Name, n, lambda, max(1, n/share)}
		if ran, err := f.has(g, o); err != nil {
			return err
		} else if ran {
			continue
		}
		before, with := accel.ProcessorSeconds(), stage.Entries{}
		var names []string
		for _, name := range Preconditioners() {
			if alone := strings.HasSuffix(name, " alone"); alone && i > 0 {
				continue
			}
			with, names = append(with, entry(name, g.rank, lambda)), append(names, name)
		}
		r, err := lab.Compare(ctx, krrlab.CompareOptions{With: with, Seeds: o.Seeds, To: 1e-6, Steps: 60,
			ExactBelow: -1})
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		made := lines(p, r, names, g.rank, i == 0, o.MaxIter)
		if i == 0 {
			of, err := mu()
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			made[0].Exact = of.exact(lambda)
		}
		made[0].Group = short(accel.ProcessorSeconds() - before)
		f.Lines = append(f.Lines, made...)
		if err := f.Save(); err != nil {
			return err
		}
		o.Tell(fmt.Sprintf("%s, n = %d, λ = %g, rank %d: %.0f s, %.0f of processors", p.Name, n, lambda,
			g.rank, r.Seconds.Total, made[0].Group))
	}
	return nil
}

// lines returns the runs of a comparison, the one without a preconditioner if it is the first.
func lines(p *Problem, r *krrlab.Compare, names []string, rank int, first bool, maxIter int) (all []Line) {
	seen := -1
	for i := range r.Rows {
		row := &r.Rows[i]
		l := Line{Schema: version, Problem: p.Name, Source: p.Source, N: r.N, D: r.D, T: r.T, Kernel: r.Kernel.Short(),
			Lambda: r.Lambda, Machine: machine(), Preconditioner: "none", Draw: row.Draw, Reached: row.Reached,
			MaxIter: maxIter, Failed: row.Why, Build: short(row.Build), Apply: short(row.Solve),
			Product: short(r.Product), Bytes: row.Bytes,
			KBytes: r.KBytes, BuildFlops: short(row.BuildFlops), ApplyFlops: short(row.ApplyFlops)}
		for e, v := range []float64{row.Kappa.Lo, row.Kappa.Hi} {
			if stage.Number(v).Known() {
				l.Kappa[e] = v
			}
		}
		if row.LogDet.Known() {
			l.LogDet = short(float64(row.LogDet))
		}
		if i == 0 {
			if first {
				all = append(all, l)
			}
			continue
		}
		if row.Draw == 0 {
			seen++
		}
		if l.Preconditioner = names[seen]; !strings.HasSuffix(l.Preconditioner, " alone") {
			l.Rank = rank
		}
		all = append(all, l)
	}
	return all
}

// machine says in a few words what the seconds are of.
func machine() string { return fmt.Sprintf("%s, %d threads", accel.CPU().Model, accel.Threads()) }

// short rounds a measured number.
func short(v float64) float64 { return stage.RoundDigits(v, 4) }
