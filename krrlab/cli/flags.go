package cli

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel"
)

// defaultLambda is the ridge where neither a flag nor the registry has one.
const defaultLambda = 0.01

// kernelFlags say which kernel to use.
type kernelFlags struct {
	name                string
	sigma, gamma, coef0 float64
	lengths             []float64 // σ_j of each feature; sigma is then 1
	degree              int
	matrix              string // file of a precomputed K
}

// sigmaValue is --sigma: a number, several, or a file of them.
type sigmaValue struct{ f *kernelFlags }

func (v *sigmaValue) String() string {
	if v.f == nil || v.f.sigma == 0 {
		return "0"
	}
	return fmt.Sprint(v.f.sigma)
}

func (v *sigmaValue) Type() string { return "float64" }

func (v *sigmaValue) Set(text string) (err error) {
	v.f.lengths = nil
	if v.f.sigma, err = strconv.ParseFloat(text, 64); err == nil {
		return nil
	}
	list := text
	if !strings.Contains(text, ",") {
		b, err := os.ReadFile(text)
		if err != nil {
			return usagef("--sigma %q: want a number, one for each feature separated by commas, or a file of numbers", text)
		}
		list = string(b)
	}
	v.f.sigma = 1
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		length, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return usagef("--sigma %s: %.40q is not a number", text, word)
		}
		v.f.lengths = append(v.f.lengths, length)
	}
	if v.f.lengths == nil {
		return usagef("--sigma %s: there are no numbers", text)
	}
	return nil
}

// lengthsOf returns the lengths that --sigma has for the features, nil where it is one number.
func lengthsOf(set *pflag.FlagSet) []float64 {
	value := set.Lookup("sigma").Value
	if c, ok := value.(checked); ok {
		value = c.Value
	}
	return value.(*sigmaValue).f.lengths
}

// renamed is the value of --kernel, which takes scikit-learn's name for the Gaussian.
type renamed struct{ pflag.Value }

func (v renamed) Set(name string) error {
	if name == "rbf" {
		name = "gaussian"
	}
	return v.Value.Set(name)
}

func (f *kernelFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.name, "kernel", "gaussian", "gaussian (or rbf), polynomial, laplacian, matern32, matern52, or precomputed: K of --matrix")
	kernelFlag := p.Lookup("kernel")
	kernelFlag.Value = renamed{kernelFlag.Value}
	p.StringVar(&f.matrix, "matrix", "", "K of --kernel precomputed: a symmetric matrix, float32 or float64, in a .npy file; row i belongs to row i of --train, of which only the targets are read")
	p.Var(&sigmaValue{f}, "sigma", "bandwidth σ of the scaled features; or one for each feature, separated by commas or in a file of numbers (default: the registry's for --data, else the median distance of 1,000 rows)")
	p.Float64Var(&f.gamma, "gamma", 0.01, "γ of the polynomial (γxᵀz+c)^q")
	p.Float64Var(&f.coef0, "coef0", 1, "c of the polynomial")
	p.IntVar(&f.degree, "degree", 3, "q of the polynomial")
	wantPositive(p, "sigma")
}

func (f *kernelFlags) check(set *pflag.FlagSet) error {
	if f.name == "precomputed" || f.matrix != "" {
		return f.checkMatrix(set)
	}
	k, err := f.build(1)
	if err != nil {
		return err
	}
	if set.Changed("sigma") {
		if k, err = f.build(f.sigma); err != nil {
			return err
		}
	}
	if _, poly := k.(kernel.Polynomial); poly && set.Changed("sigma") {
		return usagef("--sigma does not go with --kernel polynomial; it has --gamma, --coef0 and --degree")
	} else if !poly {
		for _, name := range []string{"gamma", "coef0", "degree"} {
			if set.Changed(name) {
				return usagef("--%s goes with --kernel polynomial only", name)
			}
		}
	}
	return nil
}

// build returns the kernel of the flags with bandwidth sigma.
func (f *kernelFlags) build(sigma float64) (kernel.Kernel, error) {
	spec := kernel.Spec{Name: f.name, Sigma: sigma}
	if f.name == "polynomial" {
		spec = kernel.Spec{Name: f.name, Gamma: f.gamma, Coef0: f.coef0, Degree: f.degree}
	}
	k, err := kernel.FromSpec(spec)
	if err != nil {
		return nil, errUsage{err}
	}
	return k, nil
}

// kernel returns the kernel for the data; σ is the flag's, the registry's for the
// Gaussian, or the median distance.
func (f *kernelFlags) kernel(set *pflag.FlagSet, data *loaded) (kernel.Kernel, error) {
	if data.given != nil {
		return data.given, nil
	}
	sigma := f.sigma
	if !set.Changed("sigma") && f.name != "polynomial" {
		if sigma = data.sigma; sigma == 0 || f.name != "gaussian" {
			sigma = rounded(kernel.MedianDistance(data.train.X, f.name == "laplacian"))
		}
		if !(sigma > 0) || math.IsInf(sigma, 0) {
			sigma = 1 // all points coincide
		}
	}
	return f.build(sigma)
}

// rounded returns v to three significant digits: a guess needs no more, and is copied
// from a report without loss.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// checkpointFlags say where the state of a solve is kept.
type checkpointFlags struct {
	dir, every string
	resume     bool
}

func (f *checkpointFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.dir, "checkpoint", "", "keep the state of the solve in this folder")
	p.StringVar(&f.every, "checkpoint-every", "1m", "how often to write a checkpoint: a time such as 30s, or 10it for every tenth iteration")
	p.BoolVar(&f.resume, "resume", false, "continue from the newest checkpoint in --checkpoint, if there is one")
}

// settings returns what the flags ask for, nil for no checkpoints.
func (f *checkpointFlags) settings(set *pflag.FlagSet) (*krrlab.Checkpoint, error) {
	if f.dir == "" {
		for _, name := range []string{"checkpoint-every", "resume"} {
			if set.Changed(name) {
				return nil, usagef("--%s goes with --checkpoint DIR", name)
			}
		}
		return nil, nil
	}
	c := &krrlab.Checkpoint{Dir: f.dir, Resume: f.resume}
	var err error
	if n, ok := strings.CutSuffix(f.every, "it"); ok {
		c.EveryIter, err = strconv.Atoi(n)
	} else {
		c.Every, err = time.ParseDuration(f.every)
	}
	if err != nil || c.Every <= 0 && c.EveryIter <= 0 {
		return nil, usagef("--checkpoint-every %q: want a time such as 30s, or iterations such as 10it", f.every)
	}
	return c, nil
}

// keep puts the flags into a configuration. What is resumed or refused is said on stderr, unless --quiet.
func (a *app) keep(cfg *krrlab.Config, set *pflag.FlagSet, f *checkpointFlags, progress *progress) error {
	c, err := f.settings(set)
	if err != nil || c == nil {
		return err
	}
	c.Note = func(text string) {
		if a.first() && !a.quiet {
			progress.clear()
			fmt.Fprintf(a.env.Stderr, "krrlab: %s\n", text)
		}
	}
	cfg.Checkpoint, a.kept = c, c.Dir
	return nil
}

// hasCheckpoint reports whether the run has left a checkpoint.
func (a *app) hasCheckpoint() bool {
	if a.kept == "" {
		return false
	}
	empty, err := checkpoint.Empty(a.kept)
	return err == nil && !empty
}

// goOnText says how to go on from a checkpoint.
func (a *app) goOnText() string {
	return fmt.Sprintf("the checkpoint in %s is kept; --resume continues from it", a.kept)
}

// interruptedText says what is left of an interrupted command.
func (a *app) interruptedText() string {
	if a.hasCheckpoint() {
		return "interrupted" + a.reached + "; " + a.goOnText()
	}
	return "interrupted" + a.reached + "; nothing was written"
}
