package krrlab

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
)

// PrecondNames are the names of the built-in preconditioners.
var PrecondNames = []string{"features", "none", "nystrom", "rpcholesky", "vecchia"}

// PrecondSpec is a built-in preconditioner as data, for flags and files. Zero values mean the defaults.
type PrecondSpec struct {
	// Name is one of PrecondNames, auto, or process: and the command of a Process; default: features, or rpcholesky for
	// a kernel without them.
	Name    string  `json:"precond,omitempty" flag:"precond" check:"one of auto features none nystrom rpcholesky vecchia process:"`
	S       int     `json:"features,omitempty" flag:"features" check:">=1" not:"sketch"`
	LambdaP float64 `json:"lambda_p,omitempty" flag:"lambda-p" check:"positive" not:"precond=vecchia"`
	// Levels are those of the feature map, if it is a chain.
	Levels    feature.Levels `json:"levels,omitempty" flag:"sketch" with:"precond=features|precond=auto|precond="`
	Neighbors int            `json:"neighbors,omitempty" flag:"neighbors" check:">=-1" zero:"-1" with:"precond=vecchia"`
	Damping   float64        `json:"damping,omitempty" flag:"damping" check:"(0,1]" with:"precond=vecchia"`
	Race      stage.Entries  `json:"race,omitempty" flag:"race" with:"precond=auto|precond=" help:"a preconditioner, as in compare --with, to try beside what auto plans; once for each"`
	Form      precond.Form   `json:"form,omitzero" flag:"form" default:"auto" not:"precond=vecchia|precond=none"`
	Landmarks []int          `json:"landmarks,omitempty" flag:"landmarks" check:">=0" with:"precond=nystrom"`
	Spectral  bool           `json:"spectral,omitempty" flag:"spectral" with:"precond=nystrom|precond=rpcholesky"`
}

// Help has the texts of its flags.
func (PrecondSpec) Help() map[string]string {
	return map[string]string{
		"precond": "what approximates K: " + strings.Join(PrecondNames, ", ") +
			", or process:COMMAND (default: features, or rpcholesky for a kernel without them)",
		"features": "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: n/10, at least " +
			"500, at most 10,000)",
		"lambda-p": "ridge λ_p > 0 of the preconditioner (default: λ)",
		"sketch": "features in several levels (Algorithm 2), such as features:8000,srht:4000,gaussian:2000; s is the " +
			"last width",
		"neighbors": "neighbors k of a point in the sparse inverse vecchia (default: 15 to 120, by a rule)",
		"damping":   "its damping ω in (0, 1] (default: by a rule)",
		"landmarks": "rows of the training data, from 0, that nystrom takes, separated by commas, or @FILE that has " +
			"them (default: drawn at random)",
		"spectral": "take λ_p+σ_s² for λ_p of nystrom or rpcholesky, and less of their factor, σ_s² being its least " +
			"squared singular value (Frangella, Tropp and Udell)",
		"form": "form of the preconditioner's inverse: auto, L, Linv, U or eigen",
	}
}

// parsePrecond reads a preconditioner from its name and its options, such as "nystrom features=500 lambda-p=0.1": the
// options are the flags of a PrecondSpec.
func parsePrecond(text string) (s PrecondSpec, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return s, fmt.Errorf("no name: want one of %s", strings.Join(PrecondNames, ", "))
	}
	options := schema.Of(&s)
	if strings.HasPrefix(words[0], stage.ProcessPrefix) {
		return s, options.Lookup("precond").Set(text)
	}
	given := map[string]bool{}
	for _, word := range append([]string{"precond=" + words[0]}, words[1:]...) {
		name, value, ok := strings.Cut(word, "=")
		f := options.Lookup(name)
		if !ok || f == nil || given[name] {
			return s, fmt.Errorf("%q: want an option and its value, such as features=500, each once", word)
		}
		given[name] = true
		if err := f.Set(value); err != nil {
			return s, err
		}
	}
	return s, options.Settle()
}

// Preconditioner returns the preconditioner for a kernel: nil, a Config's default, where nothing is set.
func (s PrecondSpec) Preconditioner(k kernel.Kernel) (Preconditioner, error) {
	if reflect.ValueOf(s).IsZero() {
		return nil, nil
	}
	if err := schema.Settle(&s); err != nil {
		return nil, err
	}
	switch {
	case s.Name != "":
	case len(s.Race) > 0:
		s.Name = "auto"
	case len(s.Levels) > 0:
		s.Name = "features"
	default:
		s.Name = usual(k, 0, 0).parts().Method
	}
	if command, ok := strings.CutPrefix(s.Name, stage.ProcessPrefix); ok {
		if !reflect.DeepEqual(s, PrecondSpec{Name: s.Name}) {
			return nil, fmt.Errorf("a process has no options but those of its command")
		}
		return Process{Command: command}, nil
	}
	switch s.Name {
	case "features":
		f := Features{S: s.S, LambdaP: s.LambdaP, Form: s.Form}
		if len(s.Levels) == 0 {
			return f, nil
		}
		f.S = s.Levels[len(s.Levels)-1].Width
		chain, err := feature.ChainFor(k, s.Levels)
		f.Map = chain
		return f, err
	case "nystrom":
		return Nystrom{s.S, s.LambdaP, s.Form, s.Spectral, s.Landmarks}, nil
	case "rpcholesky":
		return RPCholesky{s.S, s.LambdaP, s.Form, s.Spectral}, nil
	case "vecchia":
		return Vecchia{S: s.S, Neighbors: s.Neighbors, Damping: s.Damping}, nil
	case "none":
		return None{}, nil
	}
	a := Auto{S: s.S, LambdaP: s.LambdaP}
	for _, e := range s.Race {
		one, err := parsePrecond(e.Text)
		var p Preconditioner
		if err == nil {
			p, err = one.Preconditioner(k)
		}
		if err != nil {
			return nil, fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
		}
		a.Race = append(a.Race, p)
	}
	return a, nil
}

// SpecOf is the inverse of PrecondSpec.Preconditioner. It returns an error for a user-defined
// preconditioner or feature map, which is no data.
func SpecOf(p Preconditioner, k kernel.Kernel) (s PrecondSpec, err error) {
	switch p := p.(type) {
	case nil:
		return s, nil
	case None:
		return PrecondSpec{Name: "none"}, nil
	case Process:
		return PrecondSpec{Name: p.String()}, nil
	case Vecchia:
		return PrecondSpec{Name: "vecchia", S: p.S, Neighbors: p.Neighbors, Damping: p.Damping}, nil
	case approximation:
		r := p.parts()
		s = PrecondSpec{Name: r.Method, S: r.S, LambdaP: r.LambdaP, Form: r.Form, Spectral: r.Spectral,
			Landmarks: r.Landmarks}
	}
	if s.Name == "" {
		return s, fmt.Errorf("the preconditioner %v is user-defined", p)
	}
	if f, ok := p.(Features); ok && f.Map != nil {
		if s.Levels, err = feature.LevelsOf(f.Map, k); len(s.Levels) > 0 { // the last says S
			s.S = 0
		}
	}
	return s, err
}

// flags returns those of krrlab fit.
func (s PrecondSpec) flags() (text string) {
	v := reflect.ValueOf(s)
	for i, f := range schema.Of(&s).Fields {
		if !v.Field(i).IsZero() {
			text += f.Flag()
		}
	}
	return text
}

// precondName names the configured preconditioner as JSON and flags do, a user-defined one by its String.
func (l *Lab) precondName() string {
	if s, err := SpecOf(l.cfg.Precond, l.cfg.Kernel); err == nil {
		return s.Name
	}
	return l.cfg.Precond.String()
}
