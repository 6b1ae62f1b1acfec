package tune

import (
	"cmp"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/rng"
)

// Options of Sweep. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// LambdaP is the grid. Default: Grid(λ, η, Points).
	LambdaP []float64
	// Points is the number of λ_p of the default grid, marks aside. Default 13.
	Points int
	// Confidence of κ's interval at each λ_p, in (0, 1). Half of what is left is spent on η.
	// Default 0.95.
	Confidence float64
	// Width is the relative width of κ's interval at which its process stops. Default 0.3.
	Width float64
	// Steps is the most steps of Lanczos, for κ and for η; 16nk bytes are held for each λ_p
	// and k steps. Default 150.
	Steps int
	// Columns is the number of right-hand sides that iterations are counted with, the first
	// of Y; negative means none. Default 1.
	Columns int
	// Tol is τ, and MaxIter where counting ends. Defaults 1e-3 and 200.
	Tol     float64
	MaxIter int
	// KError bounds ‖K_stored−K‖₂, for which the intervals are widened. Default 0.
	KError float64
	// Comm is the group of ranks that have the rows of Z, as of precond.Options, and share K.
	// Default: comm.Alone().
	Comm comm.Comm
	// Stream is where starts are drawn from.
	Stream rng.Stream
	// Progress, if not nil, is called with "eta", "lanczos" or "solve" as these go on.
	Progress func(part string, done, total int)
}

// settled returns a copy of o with the defaults filled in.
func (o *Options) settled() Options {
	var s Options
	if o != nil {
		s = *o
	}
	s.Comm = comm.OrAlone(s.Comm)
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&s.Points, 13)
	set(&s.Steps, 150)
	set(&s.Columns, 1)
	set(&s.MaxIter, 200)
	s.Confidence = cmp.Or(s.Confidence, estimate.DefaultConfidence)
	s.Width = cmp.Or(s.Width, 0.3)
	s.Tol = cmp.Or(s.Tol, 1e-3)
	if s.Progress == nil {
		s.Progress = func(string, int, int) {}
	}
	return s
}

// Check returns an error for options that no data could make right.
func (o *Options) Check() error {
	s := o.settled()
	if err := estimate.CheckConfidence(s.Confidence); err != nil {
		return err
	}
	for _, l := range s.LambdaP {
		if !(l > 0) || math.IsInf(l, 1) {
			return fmt.Errorf("λ_p = %g: want a positive number", l)
		}
	}
	switch {
	case s.LambdaP != nil && len(s.LambdaP) == 0:
		return fmt.Errorf("an empty grid of λ_p: want at least one value")
	case s.Points < 2:
		return fmt.Errorf("a grid of %d values of λ_p: want at least 2", s.Points)
	case !(s.Width > 0) || math.IsInf(s.Width, 1):
		return fmt.Errorf("width %g of κ's interval: want a positive number, such as 0.3", s.Width)
	case s.Steps < 1:
		return fmt.Errorf("%d steps of Lanczos: want at least 1", s.Steps)
	case s.MaxIter < 1:
		return fmt.Errorf("maximum of %d iterations: want at least 1", s.MaxIter)
	case !(s.Tol > 0 && s.Tol < 1):
		return fmt.Errorf("τ = %g: want a tolerance in (0, 1)", s.Tol)
	}
	return nil
}

// half returns the confidence that leaves half of the failure probability.
func (o *Options) half() float64 { return 1 - (1-o.Confidence)/2 }
