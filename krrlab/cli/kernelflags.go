package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
)

// defaultLambda is the ridge λ if neither a flag nor the registry of data sets sets it.
const defaultLambda = 0.01

// kernelFlags are the flags that choose the kernel and its parameters.
type kernelFlags struct {
	Matrix string `flag:"matrix" in:"kernel" with:"kernel=precomputed" not:"sigma|data|test|scale|impute|categorical|dates|dim|tune|precond=features"`

	KernelName kernelName `flag:"kernel" default:"gaussian"`
	Sigma      bandwidth  `flag:"sigma"`
}

// Help returns the help texts of flags whose tags have none.
func (kernelFlags) Help() map[string]string {
	return map[string]string{
		"kernel": "kernel and its parameters, such as 'polynomial gamma=0.01 coef0=1 degree=3': " +
			strings.Join(kernel.Names(), ", ") + ", or 'precomputed matrix=K.npy'; rbf is gaussian",
		"sigma": "bandwidth σ for the scaled features: a number, or one for each feature, or the d² numbers of a " +
			"matrix L for the distance ‖L(x−z)‖, separated by commas or in a file (default: the registry's for " +
			"--data, else the median distance)",
	}
}

// kernelName is the value of --kernel: the name of a kernel, optionally followed by parameters as in kernel.Parse. Set
// also accepts "rbf", scikit-learn's name of the Gaussian kernel.
type kernelName string

// Set stores the text, or returns an error for an unknown kernel or an invalid parameter.
func (k *kernelName) Set(text string) error {
	if text == "rbf" {
		text = defaultKernel
	}
	if _, _, err := kernel.Parse(text); err != nil && text != "precomputed" {
		return err
	}
	*k = kernelName(text)
	return nil
}

// defaultKernel is the kernel for which the registry of data sets has a bandwidth σ.
const defaultKernel = "gaussian"

// bandwidth is the value of --sigma: nil if it is not set, one bandwidth σ, or a distance for datasets.ChangeDistance:
// a bandwidth for each of the d features, or the d² entries of a matrix.
type bandwidth []float64

// Type returns the text that stands for the value in the help text.
func (b *bandwidth) Type() string { return "float64" }

// Set parses a number, numbers separated by commas, or the name of a file of numbers. A single number must be positive.
func (b *bandwidth) Set(text string) error {
	*b = nil
	if _, err := strconv.ParseFloat(text, 64); err != nil && !strings.Contains(text, ",") {
		file, err := os.ReadFile(text)
		if err != nil {
			return errors.New("want a number, one for each feature separated by commas, or a file of numbers")
		}
		text = string(file)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		switch {
		case len(words) == 1 && (err != nil || !(v > 0) || math.IsInf(v, 0)):
			return fmt.Errorf("%.40q: want a positive number", word)
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0): // entries of a matrix may be negative
			return fmt.Errorf("%.40q: want a number", word)
		}
		*b = append(*b, v)
	}
	if len(words) == 0 {
		return errors.New("want a file with numbers")
	}
	return nil
}

// scaleAndDistance returns the bandwidth σ of the kernel and the distance for datasets.ChangeDistance. If --sigma is
// one number, σ is this number, and distance is nil. If it is several numbers, they are the distance, and σ is 1. If
// --sigma is not set, the results are 0 and nil.
func (b bandwidth) scaleAndDistance() (sigma float64, distance []float64) {
	switch len(b) {
	case 0:
		return 0, nil
	case 1:
		return b[0], nil
	}
	return 1, b
}

// check returns an error if the flags are invalid for any data.
func (f *kernelFlags) check() error {
	if f.KernelName == "precomputed" {
		if f.Matrix == "" {
			return errors.New("--kernel precomputed: want K in a .npy file: --kernel 'precomputed matrix=K.npy'")
		}
		return nil
	}
	_, err := f.buildKernel(1)
	return err
}

// buildKernel returns the kernel that the flags describe, with the length scale sigma unless --kernel sets one or the
// kernel has none, as a function of inner products. It returns an error if --sigma is set for such a kernel, or if a
// parameter is invalid.
func (f *kernelFlags) buildKernel(sigma float64) (kernel.Kernel, error) {
	k, hasScale, err := kernel.Parse(string(f.KernelName))
	if err != nil {
		return nil, err
	}
	scaled, isScaled := k.(kernel.Scaled)
	isScaled = isScaled && kernel.ArgumentOf(k) != kernel.InnerProduct
	switch {
	case f.Sigma != nil && !isScaled:
		return nil, fmt.Errorf("--sigma: the kernel %v has no length scale (kernel.Scaled)", k)
	case f.Sigma != nil && hasScale:
		return nil, fmt.Errorf("--sigma: --kernel %q has the length scale already", string(f.KernelName))
	case isScaled && !hasScale:
		k = scaled.WithScale(sigma)
	}
	return k, kernel.Validate(k)
}

// kernelFor returns the kernel for the data: that of data if it is set, and else the one that the flags describe. The
// length scale σ is --sigma if that is set, else the registry's value for the data if the kernel is Gaussian, else the
// median distance between points, rounded to three digits.
func (f *kernelFlags) kernelFor(data *problemData) (kernel.Kernel, error) {
	if data.kernel != nil {
		return data.kernel, nil
	}
	sigma, _ := f.Sigma.scaleAndDistance()
	if sigma == 0 && f.KernelName == defaultKernel {
		sigma = data.sigma
	}
	k, _, err := kernel.Parse(string(f.KernelName))
	if err != nil {
		return nil, err
	}
	if argument := kernel.ArgumentOf(k); sigma == 0 && argument != kernel.InnerProduct {
		// Three digits are enough for a guess, and can be copied from a report without loss.
		sigma = outward.Rounded(kernel.MedianDistance(data.train.X, argument == kernel.L1Distance), 3)
		if !(sigma > 0) || math.IsInf(sigma, 0) {
			sigma = 1 // all points coincide
		}
	}
	return f.buildKernel(sigma)
}

// usePrecomputed reads the precomputed K of --kernel and makes the row numbers of K the training points. It returns an
// error if K has fewer rows than the training data, or more without --n having cut these. Rows of d.train keep their
// groups if they have any; otherwise rows with equal rows of K are grouped by the rule --repeats.
func (d *problemData) usePrecomputed(ctx context.Context, f *labFlags) error {
	matrix, err := datasets.ReadMatrix(ctx, f.Matrix, f.Memory)
	if err != nil {
		return err
	}
	k, err := kernel.NewPrecomputed(matrix)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Matrix, err)
	}
	d.kernel = k
	n := d.train.Len()
	if rows := k.N(); rows < n || rows > n && (f.MaxRows == 0 || n < f.MaxRows) {
		headerHint := ""
		if n == rows+1 {
			headerHint = "; if its first line is a header, say --format header=yes"
		}
		return fmt.Errorf("%s: K has %d rows, and %s has %d: want a target for each row%s", f.Matrix, rows, f.Train, n,
			headerHint)
	}
	d.train.X, d.train.Columns = kernel.PrecomputedPoints(n), nil
	if d.train.Groups != nil {
		d.train = d.train.GroupBy(d.train.Groups)
		return nil
	}
	d.train, err = d.train.GroupByRule(f.Repeats, kernel.FirstEqual(k, d.train.X))
	return err
}
