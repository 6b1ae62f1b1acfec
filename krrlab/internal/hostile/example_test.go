package hostile_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/hostile"
)

func ExampleEach() {
	v := struct {
		Rows int
		Fine bool
	}{3, true}
	hostile.Each(&v, func(name string) {
		if v.Rows < 0 || !v.Fine {
			fmt.Println(name)
		}
	})
	fmt.Println(v)
	// Output:
	// .Rows = -1
	// .Rows = -2147483648
	// .Fine = the other
	// {3 true}
}
