package krrlab_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// InverseMultiquadric is a user-defined radial kernel, k(x, z) = (1+‖x−z‖²/c²)^−½.
type InverseMultiquadric struct{ C float64 }

func (k InverseMultiquadric) String() string { return fmt.Sprintf("imq(c=%g)", k.C) }

// Eval returns k(x, z).
func (k InverseMultiquadric) Eval(x, z []float64) float64 {
	var sq float64
	for i := range x {
		sq += (x[i] - z[i]) * (x[i] - z[i])
	}
	return 1 / math.Sqrt(1+sq/(k.C*k.C))
}

// Profile evaluates the kernel as a function g of squared distances. With it, tiles of K are formed by BLAS.
func (k InverseMultiquadric) Profile(dst, sq []float64) {
	scale := 1 / (k.C * k.C)
	for i, value := range sq {
		dst[i] = 1 / math.Sqrt(1+scale*value)
	}
}

// Slope returns |g′(0)|.
func (k InverseMultiquadric) Slope() float64 { return 1 / (2 * k.C * k.C) }

// Spread draws the random number s for which the kernel is the mixture of Gaussians E exp(−s²r²/2), which random
// features need. It follows from (1+t)^−½ = E e^−tw with 2w ∼ χ²(1).
func (k InverseMultiquadric) Spread(random rng.Stream) float64 {
	return math.Sqrt(random.ChiSquare(0, 1)) / k.C
}

// Validate checks the parameter of a kernel that was read from a file.
func (k InverseMultiquadric) Validate() error {
	if !(k.C > 0) {
		return fmt.Errorf("imq has c = %g, want a positive number", k.C)
	}
	return nil
}

// This example solves with a user-defined radial kernel, preconditioned with random features and with landmarks. The
// model is saved and predicts after it is loaded.
func Example_radialKernel() {
	if err := kernel.Register("example.imq", InverseMultiquadric{}); err != nil { // its name in files
		log.Fatal(err)
	}
	ctx := context.Background()
	all := datasets.SyntheticRegression(1500, 4, 0.1, 1)
	train, test := all.Slice(0, 1000), all.Slice(1000, 1500)
	dir, err := os.MkdirTemp("", "krrlab")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, precond := range []krrlab.Preconditioner{krrlab.Features{S: 300}, krrlab.RPCholesky{S: 300}} {
		lab, err := krrlab.New(train, krrlab.Config{Kernel: InverseMultiquadric{C: 2}, Lambda: 0.1, Precond: precond})
		if err != nil {
			log.Fatal(err)
		}
		sol, err := lab.Solve(ctx)
		if err != nil {
			log.Fatal(err)
		}
		file := filepath.Join(dir, "model.krr")
		if err := sol.Model.Save(file); err != nil {
			log.Fatal(err)
		}
		loaded, err := model.Load(file)
		if err != nil {
			log.Fatal(err)
		}
		score, err := loaded.Evaluate(ctx, test, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v with %s: %s; RMSE below 0.15: %v\n", loaded.Kernel, sol.Precond, sol.Status, score.RMSE < 0.15)
	}
	// Output:
	// imq(c=2) with features: converged; RMSE below 0.15: true
	// imq(c=2) with rpcholesky: converged; RMSE below 0.15: true
}
