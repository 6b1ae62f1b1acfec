package safe_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// Example shows a line for a terminal, two names and a shell word.
func Example() {
	fmt.Println(safe.Line("a label\x1b[2J"), safe.Name("price"), safe.Name("a\nb"), safe.Shell("my file"))
	// Output: a label\x1b[2J price "a\nb" 'my file'
}
