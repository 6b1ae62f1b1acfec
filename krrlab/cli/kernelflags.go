package cli

import (
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// kernelFlags say which kernel to use.
type kernelFlags struct {
	name                string
	sigma, gamma, coef0 float64
	degree              int
}

func (f *kernelFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.name, "kernel", "gaussian", "gaussian, polynomial, laplacian, matern32 or matern52")
	p.Float64Var(&f.sigma, "sigma", 0, "bandwidth σ (default: the registry's for --data, else the median distance of 1,000 rows)")
	p.Float64Var(&f.gamma, "gamma", 0.01, "γ of the polynomial (γxᵀz+c)^q")
	p.Float64Var(&f.coef0, "coef0", 1, "c of the polynomial")
	p.IntVar(&f.degree, "degree", 3, "q of the polynomial")
	wantPositive(p, "sigma")
}

func (f *kernelFlags) check(set *pflag.FlagSet) error {
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
	sigma := f.sigma
	if !set.Changed("sigma") && f.name != "polynomial" {
		if sigma = data.sigma; sigma == 0 || f.name != "gaussian" {
			sigma = rounded(krrlab.MedianDistance(data.train.X, f.name == "laplacian"))
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
