package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/krrlab/lab/krrlab/cli"
)

// The exit code of a command line that cannot be understood is 2.
func ExampleMain() {
	code := cli.Main(context.Background(), []string{"fit", "--lambda", "small"},
		cli.Env{Stdout: os.Stdout, Stderr: os.Stdout})
	fmt.Println(code)
	// Output:
	// krrlab: --lambda "small": want a number (see krrlab fit --help)
	// 2
}
