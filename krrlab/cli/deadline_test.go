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

// TestGracePeriod checks that a command that waits for more input from a pipe ends with the interruption code soon
// after its context is canceled, and says that it was interrupted. The grace period is shortened for the test.
func TestGracePeriod(t *testing.T) {
	defer func(saved time.Duration) { grace = saved }(grace)
	grace = time.Millisecond
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"fit", "--train", name, "--format", "csv"}, Env{Stdout: &out, Stderr: &stderr,
			UseBLAS: useGoBLAS})
	}()
	in := testkit.Must(os.OpenFile(name, os.O_WRONLY, 0)) // waits until the command reads
	defer in.Close()
	cancel()
	testkit.Equal(t, <-code, exitInterrupted)
	testkit.Contains(t, stderr.String(), "krrlab: interrupted")
}
