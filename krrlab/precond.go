package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
)

// Preconditioner specifies how M is built. The built-in types are those of package recipe. A user-defined one is any
// type with these methods; stage.RegisterPreconditioner gives it a name.
type (
	Preconditioner = stage.Preconditioner
	Features       = recipe.Features
	Nystrom        = recipe.Nystrom
	RPCholesky     = recipe.RPCholesky
	Vecchia        = recipe.Vecchia
	Process        = recipe.Process
	None           = recipe.None
)

// Auto leaves the preconditioner to the plan (Lab.Plan), and also the solver unless it is set. Fields that are not zero
// are fixed. AutoSolver with a nil preconditioner means Auto. Up to n = DirectBelow, and with a Backend, the fixed rule
// of AutoSolver applies instead, with Features.
type Auto struct {
	S       int     `flag:"features" symbol:"s" check:">=1"`        // rank
	LambdaP float64 `flag:"lambda-p" symbol:"λ_p" check:"positive"` // ridge λ_p
	// Race has preconditioners to try in addition to the planned one. Conjugate gradients with each of them iterate
	// side by side, sharing the products with K, until the slopes of the residuals predict which finishes first; that
	// one is used. There can be a race for any number of points, but not with a Backend or a Checkpoint.
	Race []Preconditioner
}

// String returns "auto".
func (Auto) String() string { return "auto" }

// Make is never called, since the preconditioner that the plan chooses is built instead.
func (Auto) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) {
	return nil, fmt.Errorf("krrlab: the preconditioner auto is chosen by New")
}

func init() { stage.RegisterBuiltIn(stage.Kind{Name: "auto", Zero: Auto{}}) }

// Given is a preconditioner M, n×n, that was built already.
type Given struct {
	M    pcg.Preconditioner
	Name string // name for reports; default: "given"
}

// String returns the name for reports.
func (g Given) String() string { return cmp.Or(g.Name, "given") }

// Make returns M, or an error if M is nil.
func (g Given) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) {
	if g.M == nil {
		return nil, fmt.Errorf("krrlab: Given without M: check the error of what built it; None means M = I")
	}
	return g.M, nil
}

// noFeatures reports whether a kernel has no random features.
func noFeatures(k kernel.Kernel) bool {
	_, err := feature.For(k)
	return err != nil
}

// PrecondSpec specifies a preconditioner in flags and files: its name with options, and the options that most kinds
// have in separate fields. Zero values mean the defaults.
type PrecondSpec struct {
	// Name is a name of stage.KindNames with options, such as "nystrom features=500". Default: features, or rpcholesky
	// for a kernel without random features.
	Name    string        `json:"precond,omitempty" flag:"precond" options:"own"`
	S       int           `json:"features,omitempty" flag:"features" check:">=1"`        // number of features, or rank
	LambdaP float64       `json:"lambda_p,omitempty" flag:"lambda-p" check:"positive"`   // ridge λ_p
	Race    stage.Entries `json:"race,omitempty" flag:"race" in:"precond" options:"own"` // as Auto.Race
}

// Help returns the help texts of the flags.
func (PrecondSpec) Help() map[string]string {
	return map[string]string{
		"precond": "preconditioner and its options, such as 'nystrom features=500 lambda-p=0.1': " +
			strings.Join(stage.KindNames(), ", ") + " (default: features, or rpcholesky for a kernel without them)",
		"features": "random features s, or the rank of a preconditioner, 1 ≤ s ≤ n (default: n/10, at least 500, at " +
			"most 10,000)",
		"lambda-p": "ridge λ_p > 0 of the preconditioner (default: λ)",
	}
}

// Text returns the name of the preconditioner with all its options, or "" if nothing is set. If only options are set,
// the name is the default one for the kernel.
func (s PrecondSpec) Text(k kernel.Kernel) (text string) {
	for _, field := range schema.Of(&s).Fields {
		if field.Name != "precond" && field.Name != "race" && !field.IsZero() {
			text += " " + field.Name + "=" + field.String()
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

// Preconditioner returns the preconditioner for a kernel, or nil, the default in a Config, if nothing is set.
func (s PrecondSpec) Preconditioner(k kernel.Kernel) (Preconditioner, error) {
	text := s.Text(k)
	if text == "" {
		return nil, nil
	}
	p, err := stage.ParsePreconditioner(text)
	if err != nil || len(s.Race) == 0 {
		return p, err
	}
	auto, ok := p.(Auto)
	if !ok {
		return nil, fmt.Errorf("a race tries preconditioners next to the planned one: name auto first, and %v after "+
			"race=", p)
	}
	for _, entry := range s.Race {
		_, text := entry.Split()
		racer, err := stage.ParsePreconditioner(text)
		if err != nil {
			return nil, fmt.Errorf("krrlab: the preconditioner %q: %w", entry.Text, err)
		}
		auto.Race = append(auto.Race, racer)
	}
	return auto, nil
}

// describe returns the description of the preconditioner m for reports: its own or, if it has none, the String of the
// recipe that built it. It returns "" for M = I.
func describe(m pcg.Preconditioner, recipe Preconditioner) string {
	if m == nil {
		return ""
	}
	if described, ok := m.(interface{ Description() string }); ok {
		return described.Description()
	}
	return recipe.String()
}
