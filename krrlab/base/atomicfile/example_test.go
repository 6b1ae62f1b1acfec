package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
)

// ExampleWrite shows that a failed write leaves the old content.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "answer")
	fmt.Println(atomicfile.WriteFile(name, "42"))
	err = atomicfile.Write(name, func(w io.Writer) error {
		fmt.Fprint(w, "4")
		return errors.New("interrupted")
	})
	text, _ := os.ReadFile(name)
	fmt.Println(err != nil, string(text))
	// Output:
	// <nil>
	// true 42
}
