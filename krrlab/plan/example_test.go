package plan_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/plan"
)

func Example() {
	p := plan.Problem{N: 400_000, D: 784, T: 10, S: 10_000, Storage: gram.Float32, PointBytes: 4 * 400_000 * 784}
	ranks, err := plan.Ranks(p, 64e9, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Of(p, ranks))
	p.S = 60_000
	_, err = plan.Ranks(p, 32e9, 1000)
	fmt.Println(err)
	// Output:
	// 6 ranks, each at most 58.6 GB: points 1.25 GB, K 53.5 GB, features 2.68 GB, factor 800 MB, vectors 320 MB
	// on 1000 ranks each would hold 59 GB of the 32 GB allowed: 57.6 GB of them are the factor of ZᵀZ+λ_pI, 8s² and as much again while it is formed: take fewer features
}
