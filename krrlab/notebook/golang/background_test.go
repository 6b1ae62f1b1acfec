package golang

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestBackgroundCommand leaves a command in the background: the cell must end without an error, and the later output of
// the command must be shown.
func TestBackgroundCommand(t *testing.T) {
	s := openSession(t, nil)
	t.Chdir(t.TempDir())
	output := &outputRecorder{}
	if r := s.Run("Cell 1", "!mkfifo line\n!echo now; (read x <line; echo $x; echo $x; : >ended) &", output); r.Err != nil {
		t.Error(r.Err)
	}
	testkit.Equal(t, output.joined(), "stdout: now\n")
	testkit.OK(t, os.WriteFile("line", []byte("late\n"), 0o600))
	for range 12000 { // wait for up to two minutes
		if _, err := os.Stat("ended"); err == nil && strings.Contains(output.joined(), "late\nlate\n") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the command was cut off: %q", output.joined())
}

// TestBackgroundCommandEndsWithSession checks that a command that a cell leaves in the background ends with the
// session.
func TestBackgroundCommandEndsWithSession(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := New(nil)
	testkit.OK(t, err)
	if r := s.Run("Cell 1", "!mkfifo line\n!sleep 600 >line 2>&1 &", &outputRecorder{}); r.Err != nil {
		t.Error(r.Err)
	}
	line := testkit.Must(os.Open("line")) // waits until the command has opened the pipe
	defer line.Close()
	s.Close()
	if text, err := io.ReadAll(line); err != nil || len(text) > 0 {
		t.Errorf("the command wrote %q, %v, want it ended by Close", text, err)
	}
}
