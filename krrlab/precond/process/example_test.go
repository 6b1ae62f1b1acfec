package process_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/process"
)

// Example starts a shell script that reports that it has no preconditioner. The folder experiments/peers has working
// preconditioners in Python and C.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x := points.NewDense(3, 1, []float64{0, 1, 2})
	k, err := gram.New(ctx, kernel.Gaussian{Sigma: 1}, x, 0.1, nil)
	if err != nil {
		panic(err)
	}
	_, err = process.Start(ctx, `read krrlab version n d t lambda; echo "error no M for $n points"`, k,
		process.Options{})
	fmt.Println(err)
	// Output:
	// process: read krrlab version n d t lambda; echo "error no M for $n points": no M for 3 points
}
