package experiments

import (
	_ "embed"
	"encoding/json"

	"github.com/krrlab/lab/krrlab/kernel"
)

// figures has the cases of figures 1 and 2 at each scale, as figures.json says them.
var figures = func() (f struct {
	Kernels []figure1Kernel
	Figure1 map[Scale]figure1Sizes
	Figure2 map[Scale][]figure2Row
}) {
	if err := json.Unmarshal(figuresJSON, &f); err != nil { // the file is ours
		panic(err)
	}
	return f
}()

//go:embed figures.json
var figuresJSON []byte

// figure1Kernel is a row of figure 1: one of the paper's two kernels, λ = 0.01 for both.
type figure1Kernel struct {
	Name   string
	Kernel kernel.Spec
}

// figure1Sizes are what figure 1 takes at a scale. s runs over Points/2ᵏ, k = First … 0 for random features, and for
// the exact method of each kernel k = From … 1.
type figure1Sizes struct {
	Data     string
	N, TestN int // rows of training and test; 0: all
	Points   int // training rows
	Seeds    int
	First    int
	From     [2]int
	Expect   [2][]int // iterations expected of the exact method, for each s
}

// figure2Row is one data set of figure 2.
type figure2Row struct {
	Name       string
	Data       string
	N          []int
	TestN      int        // 0: all
	Share      [2]float64 // s and n of the exact method, as a fraction: the paper's in table 1
	Seeds      int        // up to 20,000 points, at most three beyond
	Iterations float64    // expected at the largest n
	Power      float64    // of n that the iterations grow with: 0.5 on COVTYPE, from 80 at 1,000 to 213 at 5,000
	Constant   int        // the paper's constant s, if not by profile
	Auto       []int      // n of Auto, one seed each; 0: all rows
	Paper      string     // row of the published table 1 that is beside it
}
