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

// TestServe starts the prediction server on a free port, which its first line names, and requests predictions for a
// correct and a wrong body. After SIGTERM, the server must exit with code 0 and no longer listen.
func TestServe(t *testing.T) {
	model := filepath.Join(t.TempDir(), "m.krr")
	mustRun(t, krrlab(testContext(t), t, -1, 0, "fit", "--data", "synthetic-regression", "--n", "50", "--out", model))
	cmd := krrlab(testContext(t), t, -1, 0, "serve", model, "--listen", "127.0.0.1:0")
	output := testkit.Must(cmd.StdoutPipe())
	testkit.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // has no effect once Wait has returned
	line := testkit.Must(bufio.NewReader(output).ReadString('\n'))
	address := strings.TrimSpace(line[strings.Index(line, "http://"):])
	row := "[" + strings.TrimSuffix(strings.Repeat("0.5,", 4), ",") + "]"
	for body, want := range map[string]int{"[" + row + "]": http.StatusOK, "[[1]]": http.StatusBadRequest} {
		response := testkit.Must(http.Post(address+"/predict", "application/json", strings.NewReader(body)))
		responseBody := testkit.Must(io.ReadAll(response.Body))
		if response.Body.Close(); response.StatusCode != want || want == http.StatusOK &&
			!strings.HasPrefix(string(responseBody), `{"value":[`) {
			t.Errorf("%s: status %d, want %d: %s", body, response.StatusCode, want, responseBody)
		}
	}
	testkit.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	testkit.OK(t, cmd.Wait())
	if _, err := http.Get(address); err == nil {
		t.Error("the server still listens")
	}
}

// TestHangUp checks that SIGHUP ends a command as SIGTERM does, with a message and exit code 130, and that a command
// under nohup ignores it.
func TestHangUp(t *testing.T) {
	// The test itself may run under nohup, where SIGHUP is ignored. A signal that this process catches has its default
	// effect in the programs that it starts.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	hangUp := func(nohup bool, args ...string) (code int, stderrText string) {
		cmd := krrlab(testContext(t), t, -1, 0, args...)
		if nohup {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = testkit.Must(exec.LookPath("sh"))
		}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		output := testkit.Must(cmd.StdoutPipe())
		testkit.OK(t, cmd.Start())
		// The note on --n is the first line of output; once it is there, the fit is running.
		lines := bufio.NewReader(output)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		_ = cmd.Process.Signal(syscall.SIGHUP)
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	fit := []string{"fit", "--data", "synthetic-regression", "--n", "4000"}
	if code, stderrText := hangUp(false, append(fit, "--solver", "cg", "--lambda", "1e-9", "--tol", "1e-12",
		"--max-iter",
		"1000000")...); code != 130 ||
		!regexp.MustCompile(`^krrlab: interrupted( after \d+ iterations, recursive residual \S+)?; `+
			`nothing was written\n$`).MatchString(stderrText) {
		t.Errorf("SIGHUP: exit %d, want 130 and a message: %s", code, stderrText)
	}
	if code, stderrText := hangUp(true, fit...); code != 0 || stderrText != "" {
		t.Errorf("SIGHUP under nohup: exit %d, want 0 and no message: %s", code, stderrText)
	}
}

// TestSecondSignal checks that a second SIGINT kills a process that waits for input data and cannot react to the first
// one. If the process still had data to read, it ends by itself with exit code 130; then the test tries again and waits
// longer before the first signal.
func TestSecondSignal(t *testing.T) {
	caught := make(chan os.Signal, 1) // as in TestHangUp: background jobs may ignore this signal
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	for i := range 60 {
		state := interruptReading(t, time.Duration(i)*time.Second/4)
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() &&
			status.Signal() == syscall.SIGINT {
			return
		}
		if state.ExitCode() != 130 {
			t.Fatalf("the process ended with %v, want SIGINT or exit code 130", state)
		}
		t.Log("the process was still reading at the first signal and ended by itself; trying again")
	}
	t.Error("no process waited for data")
}

// interruptReading starts krrlab on an input that does not end. After the given time it sends signals until the process
// ends, and returns how it ended.
func interruptReading(t *testing.T, after time.Duration) *os.ProcessState {
	t.Helper()
	cmd := krrlab(testContext(t), t, -1, 0, "fit", "--train", "/dev/stdin", "--format", "csv")
	in := testkit.Must(cmd.StdinPipe())
	testkit.OK(t, cmd.Start())
	// This is more than a pipe holds, so the process reads once Write returns.
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
