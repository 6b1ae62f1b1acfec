package modules_test

import (
	"fmt"
	"os"

	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// What packages were added to the kernel, and whether it is of this program.
func ExampleKernel_Current() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	k := &modules.Kernel{Dir: dir, Program: "/usr/bin/krrlab", Version: "v0.3.0"}
	a, err := k.Current()
	fmt.Println(a == nil, err)
	// Output: true <nil>
}
