package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
)

// A Preconditioner says how M is made. The built-in ones are those of package recipe; a user-defined one is any type with
// these methods, and stage.RegisterPreconditioner gives it a name.
type (
	Preconditioner = stage.Preconditioner
	Features       = recipe.Features
	Nystrom        = recipe.Nystrom
	RPCholesky     = recipe.RPCholesky
	Vecchia        = recipe.Vecchia
	Process        = recipe.Process
	None           = recipe.None
)

// Auto leaves the preconditioner to the plan (Lab.Plan), and the solver too unless it is set. What is not zero is
// held. It is what nil means with AutoSolver. Up to n = DirectBelow and with a Backend it is the fixed rule of
// AutoSolver, with Features.
type Auto struct {
	S       int     `flag:"features" symbol:"s" check:">=1"`        // rank
	LambdaP float64 `flag:"lambda-p" symbol:"λ_p" check:"positive"` // λ_p
	// Race are preconditioners to try beside what is planned: they iterate side by side, a product with K serving them
	// all, and the one that would be done first by its slope is taken. Of any number of points; not with a Backend or a
	// Checkpoint.
	Race []Preconditioner
}

func (Auto) String() string { return "auto" }

// Make is not called: the preconditioner that the plan chooses is made.
func (Auto) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) {
	return nil, fmt.Errorf("krrlab: the preconditioner auto is chosen by New")
}

func init() { stage.BuiltIn(stage.Kind{Name: "auto", Zero: Auto{}}) }

// Given is a matrix M that was made before, n×n.
type Given struct {
	M    pcg.Preconditioner
	Name string // for reports; default: "given"
}

func (g Given) String() string { return cmp.Or(g.Name, "given") }

// Make returns M.
func (g Given) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) { return g.M, nil }

// usual returns the preconditioner that is taken of a kernel where none is named, of a rank and a ridge, 0 for their
// defaults: random features, or landmarks of a kernel without them.
func defaultPrecond(k kernel.Kernel, s int, lambdaP float64) (Preconditioner, error) {
	text := stage.DefaultKind(k).Name
	if s != 0 {
		text += fmt.Sprintf(" features=%d", s)
	}
	if lambdaP != 0 {
		text += " lambda-p=" + strconv.FormatFloat(lambdaP, 'g', -1, 64)
	}
	return stage.ParsePreconditioner(text)
}

// noFeatures reports whether there are no random features for a kernel.
func noFeatures(k kernel.Kernel) bool {
	_, err := feature.For(k)
	return err != nil
}

// checkSize is the door of a problem's numbers: targets, λ, λ_p, and y/λ, the size of coefficients. Squares of what
// comes in, and their sums, are normal numbers of float64, and nothing behind the door guards against others.
func checkSize(what string, v float64) error {
	if !inRange(v) {
		return fmt.Errorf("%s = %g: want a positive number from 1e-100 to 1e100", what, v)
	}
	return nil
}

func inRange(v float64) bool { return v >= 1e-100 && v <= 1e100 }

// PrecondSpec is a preconditioner as flags and files have it: its name, with its options after it or in fields of their
// own, which are older. Zero values mean the defaults.
type PrecondSpec struct {
	// Name is a name of stage.Names with its options, such as "nystrom features=500"; default: features, or rpcholesky
	// for a kernel without them.
	Name    string        `json:"precond,omitempty" flag:"precond"`
	S       int           `json:"features,omitempty" flag:"features" check:">=1"`
	LambdaP float64       `json:"lambda_p,omitempty" flag:"lambda-p" check:"positive"`
	Race    stage.Entries `json:"race,omitempty" flag:"race" help:"a preconditioner, as in compare --with, to try beside what auto plans; once for each"`

	Levels    feature.Levels `json:"levels,omitempty" flag:"sketch" hidden:"yes"`
	Neighbors int            `json:"neighbors,omitempty" flag:"neighbors" check:">=-1" zero:"-1" hidden:"yes"`
	Damping   float64        `json:"damping,omitempty" flag:"damping" check:"(0,1]" hidden:"yes"`
	Form      precond.Form   `json:"form,omitzero" flag:"form" default:"auto" hidden:"yes"`
	Landmarks []int          `json:"landmarks,omitempty" flag:"landmarks" check:">=0" hidden:"yes"`
	Spectral  bool           `json:"spectral,omitempty" flag:"spectral" hidden:"yes"`
}

// Help has the texts of its flags.
func (PrecondSpec) Help() map[string]string {
	return map[string]string{
		"precond": "what approximates K, and its options, such as 'nystrom features=500 lambda-p=0.1': " +
			strings.Join(stage.Names(), ", ") + " (default: features, or rpcholesky for a kernel without them)",
		"features": "random features s, or the rank of a preconditioner, 1 ≤ s ≤ n (default: n/10, at least 500, at " +
			"most 10,000)",
		"lambda-p": "ridge λ_p > 0 of the preconditioner (default: λ)",
	}
}

// Text returns the name of the preconditioner and all its options, "" where nothing is set; of none that is named the
// usual one of the kernel.
func (s PrecondSpec) Text(k kernel.Kernel) (text string) {
	for _, f := range schema.Of(&s).Fields {
		if f.Name != "precond" && f.Name != "race" && !f.IsZero() {
			text += " " + f.Name + "=" + f.String()
		}
	}
	switch {
	case s.Name != "":
	case len(s.Race) > 0:
		s.Name = "auto"
	case text != "":
		s.Name = stage.DefaultKind(k).Name
	}
	return s.Name + text
}

// Preconditioner returns the preconditioner for a kernel: nil, a Config's default, where nothing is set.
func (s PrecondSpec) Preconditioner(k kernel.Kernel) (Preconditioner, error) {
	text := s.Text(k)
	if text == "" {
		return nil, nil
	}
	p, err := stage.ParsePreconditioner(text)
	if err != nil || len(s.Race) == 0 {
		return p, err
	}
	a, ok := p.(Auto)
	if !ok {
		return nil, fmt.Errorf("--race tries preconditioners beside what auto plans: take --precond auto, and %v among them",
			p)
	}
	for _, e := range s.Race {
		_, text := e.Split()
		racer, err := stage.ParsePreconditioner(text)
		if err != nil {
			return nil, fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
		}
		a.Race = append(a.Race, racer)
	}
	return a, nil
}
