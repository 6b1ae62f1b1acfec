package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/krrlab/lab/krrlab/cli"
)

// This example runs a command line with a wrong flag value: Main prints one line and returns the exit code 2.
func ExampleMain() {
	code := cli.Main(context.Background(), []string{"fit", "--lambda", "small"},
		cli.Env{Stdout: os.Stdout, Stderr: os.Stdout})
	fmt.Println(code)
	// Output:
	// krrlab: --lambda "small": want a number (see krrlab fit --help)
	// 2
}
