//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestDeadline checks that a command that waits for more input from a pipe ends with the interruption code soon after
// its context is cancelled, and says that it was interrupted. The grace period is shortened for the test.
func TestDeadline(t *testing.T) {
	defer func(was time.Duration) { grace = was }(grace)
	grace = time.Millisecond
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"fit", "--train", name, "--format", "csv"}, Env{Stdout: &out, Stderr: &errs,
			UseBLAS: func(context.Context, string) (string, error) { return "", nil }})
	}()
	in := testkit.Must(os.OpenFile(name, os.O_WRONLY, 0)) // waits until the command reads
	defer in.Close()
	cancel()
	testkit.Equal(t, <-code, exitInterrupted)
	testkit.Contains(t, errs.String(), "krrlab: interrupted")
}
