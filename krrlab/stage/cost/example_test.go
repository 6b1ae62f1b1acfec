package cost_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// The model predicts the memory of each rank of a large distributed problem, and says what most of it is needed for.
func Example() {
	model := cost.Model{N: 400_000, D: 784, T: 10, Ranks: 6, PointBytes: 4 * 400_000 * 784}
	memory := model.Memory(&cost.Candidate{Preconditioner: recipe.Features{S: 10_000}, Storage: gram.Float32})
	fmt.Printf("each of 6 ranks holds %s, %s\n", accel.FormatBytes(memory.Peak), memory.LargestPart())
	// Output:
	// each of 6 ranks holds 57.9 GB, 53.5 GB of them are K: take more ranks, or a storage of fewer bytes
}
