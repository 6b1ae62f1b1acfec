package commtest_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/comm/commtest"
)

// A test of a transport runs this on every rank.
func ExampleRun() {
	fmt.Println(commtest.Run(context.Background(), comm.Alone()))
	// Output: <nil>
}
