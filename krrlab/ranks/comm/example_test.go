package comm_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Example adds numbers of four ranks, each of which gets the sum.
func Example() {
	var wg sync.WaitGroup
	for _, c := range comm.Local(4, 0) {
		wg.Go(func() {
			x := []int64{int64(c.Rank()), 1}
			if err := c.AllReduceInt64(context.Background(), x); err != nil {
				panic(err)
			}
			if c.Rank() == 0 {
				fmt.Println(x)
			}
		})
	}
	wg.Wait()
	// Output: [6 4]
}
