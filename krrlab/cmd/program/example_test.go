package program_test

import (
	"fmt"
	"log"
	"math"
	"os"

	"github.com/krrlab/lab/krrlab/cmd/program"
	"github.com/krrlab/lab/krrlab/kernel"
)

// Cauchy is k(x, z) = 1/(1+‖x−z‖₂²/c²).
type Cauchy struct{ C float64 }

func (k Cauchy) String() string { return fmt.Sprintf("cauchy(c=%g)", k.C) }

func (k Cauchy) Eval(x, z []float64) float64 {
	sum := 1.0
	for i := range x {
		sum += math.Pow((x[i]-z[i])/k.C, 2)
	}
	return 1 / sum
}

// This is the main function of a program with all commands of krrlab and an additional kernel, which users select with
// --kernel "mylab.cauchy c=2".
func ExampleRun() {
	if err := kernel.Register("mylab.cauchy", Cauchy{C: 1}); err != nil {
		log.Fatal(err)
	}
	os.Exit(program.Run(""))
}
