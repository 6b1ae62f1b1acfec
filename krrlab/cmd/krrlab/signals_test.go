//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestServe starts the server on a free port, which its first line names, asks for predictions, and ends it by SIGTERM: it
// exits with 0, and listens no more.
func TestServe(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.krr")
	runs(t, krrlab(limited(t), t, -1, 0, "fit", "--data", "synthetic-regression", "--n", "50", "--out", model))
	cmd := krrlab(limited(t), t, -1, 0, "serve", model, "--listen", "127.0.0.1:0")
	out := testkit.Must(cmd.StdoutPipe())
	testkit.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // of no effect after Wait
	line := testkit.Must(bufio.NewReader(out).ReadString('\n'))
	address := strings.TrimSpace(line[strings.Index(line, "http://"):])
	row := "[" + strings.TrimSuffix(strings.Repeat("0.5,", 4), ",") + "]"
	for body, want := range map[string]int{"[" + row + "]": http.StatusOK, "[[1]]": http.StatusBadRequest} {
		answer := testkit.Must(http.Post(address+"/predict", "application/json", strings.NewReader(body)))
		text := testkit.Must(io.ReadAll(answer.Body))
		if answer.Body.Close(); answer.StatusCode != want || want == http.StatusOK && !strings.HasPrefix(string(text), `{"value":[`) {
			t.Errorf("%s: %d, %s", body, answer.StatusCode, text)
		}
	}
	testkit.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(address); err == nil {
		t.Error("the server still listens")
	}
}

// TestHangUp: SIGHUP ends a command as SIGTERM does, with a word and its code; under nohup it continues.
func TestHangUp(t *testing.T) {
	// what is caught here has its default in a program started, even if we are under nohup
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	hangUp := func(nohup bool, args ...string) (code int, errs string) {
		cmd := krrlab(limited(t), t, -1, 0, args...)
		if nohup {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = testkit.Must(exec.LookPath("sh"))
		}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out := testkit.Must(cmd.StdoutPipe())
		testkit.OK(t, cmd.Start())
		// The note on --n is the first line: it is at work.
		lines := bufio.NewReader(out)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		_ = cmd.Process.Signal(syscall.SIGHUP)
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	fit := []string{"fit", "--data", "synthetic-regression", "--n", "4000"}
	if code, errs := hangUp(false, append(fit, "--solver", "cg", "--lambda", "1e-9", "--tol", "1e-12", "--max-iter",
		"1000000")...); code != 130 ||
		!regexp.MustCompile(`^krrlab: interrupted( after \d+ iterations, recursive residual \S+)?; `+
			`nothing was written\n$`).MatchString(errs) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, errs := hangUp(true, fit...); code != 0 || errs != "" {
		t.Errorf("under nohup: exit %d, %s", code, errs)
	}
}

// TestSecondSignal: a second signal ends a process that waits for data, which knows of no signal.
func TestSecondSignal(t *testing.T) {
	caught := make(chan os.Signal, 1) // as in TestHangUp: a job in the background ignores it
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	for i := range 60 {
		state := interruptReading(t, time.Duration(i)*time.Second/4)
		if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGINT {
			return
		}
		if state.ExitCode() != 130 {
			t.Fatalf("ended by %v", state)
		}
		t.Log("it read data still at the first signal, and ended by itself: once more")
	}
	t.Error("none waited for data")
}

// interruptReading starts krrlab on data that do not end and, after a while, sends it signals until it does.
func interruptReading(t *testing.T, after time.Duration) *os.ProcessState {
	t.Helper()
	cmd := krrlab(limited(t), t, -1, 0, "fit", "--train", "/dev/stdin", "--format", "csv")
	in := testkit.Must(cmd.StdinPipe())
	testkit.OK(t, cmd.Start())
	// more than a pipe holds: it is being read
	testkit.Must(in.Write([]byte(strings.Repeat("1,2,3\n", 100000))))
	time.Sleep(after)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}
	}()
	_ = cmd.Wait()
	close(ended)
	return cmd.ProcessState
}
