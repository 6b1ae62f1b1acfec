package recipe_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Example shows that a preconditioner is a value or a text, and that each kind predicts its cost.
func Example() {
	p, err := stage.ParsePreconditioner("nystrom features=500 lambda-p=0.1")
	fmt.Println(p, err)
	text, err := stage.PreconditionerText(recipe.RPCholesky{S: 200, Spectral: true}, kernel.Gaussian{Sigma: 1})
	fmt.Println(text, err)
	m := cost.Model{Rates: cost.Reference(), N: 10_000, D: 20, T: 1, Cores: 2}
	for _, p := range []stage.Preconditioner{p, recipe.Features{S: 500}} {
		c := cost.Candidate{Solver: cost.PCG, Preconditioner: p, Storage: gram.Float32, Iterations: 30}
		m.Predict(&c)
		fmt.Printf("%v: %.1f s\n", p, c.Seconds.Training())
	}
	// Output:
	// Nyström landmarks <nil>
	// rpcholesky features=200 spectral=true <nil>
	// Nyström landmarks: 0.7 s
	// random features: 0.6 s
}
