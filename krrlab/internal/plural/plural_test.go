package plural

import "fmt"

func Example() {
	for n := range 3 {
		fmt.Println(Count(n, "iteration"))
	}
	// Output:
	// 0 iterations
	// 1 iteration
	// 2 iterations
}
