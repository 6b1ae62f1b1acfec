package experiments

import (
	_ "embed"
	"encoding/json"

	"github.com/krrlab/lab/krrlab/kernel"
)

// figures contains the cases of figures 1 and 2 at each scale, read from figures.json.
var figures = func() (f struct {
	Kernels []figure1Kernel
	Figure1 map[Scale]figure1Sizes
	Figure2 map[Scale][]figure2Row
}) {
	if err := json.Unmarshal(figuresJSON, &f); err != nil { // the file is part of this program
		panic(err)
	}
	return f
}()

//go:embed figures.json
var figuresJSON []byte

// figure1Kernel is a row of figure 1: one of the paper's two kernels. Both have λ = 0.01.
type figure1Kernel struct {
	Name   string      // name of the row
	Kernel kernel.Spec // the kernel
}

// figure1Sizes is the size of figure 1 at a scale. The numbers of features are s = Points/2ᵏ.
type figure1Sizes struct {
	Data     string   // name in package datasets
	N, TestN int      // number of training and test rows; 0 for all
	Points   int      // number of training rows, also if N is 0
	Seeds    int      // number of seeds
	First    int      // largest k for random features, which have k = First, …, 0
	From     [2]int   // largest k for the exact method with each kernel, which has k = From, From−1, …
	Expect   [2][]int // predicted iterations of the exact method with each kernel, for each k
}

// figure2Row is one data set of figure 2.
type figure2Row struct {
	Name       string     // name of the row
	Data       string     // name in package datasets
	N          []int      // numbers of training rows, ascending
	TestN      int        // number of test rows; 0 for all
	Share      [2]float64 // the paper's s and n in table 1; the exact method has s = n·Share[0]/Share[1]
	Seeds      int        // number of seeds; at most three are used for more than 20,000 points
	Iterations float64    // predicted iterations at the largest n
	// Power is the exponent p of the predicted growth nᵖ of the iterations. COVTYPE was measured: 80 iterations at
	// n = 1,000 and 213 at n = 5,000.
	Power    float64
	Constant int    // s of the profile with constant s; 0 to compute it by profile
	Auto     []int  // numbers of training rows that Auto solves, with one seed each; 0 for all rows
	Paper    string // row of the published table 1 to compare with; empty if there is none
}
