//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignal: while data are read, which knows of no signal, a second one ends the process.
func TestSecondSignal(t *testing.T) {
	cmd := krrlab(limited(t), t, -1, 0, "fit", "--train", "/dev/stdin", "--format", "csv")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte(strings.Repeat("1,2,3\n", 100000))); err != nil { // more than a pipe holds: it is being read
		t.Fatal(err)
	}
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
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGINT {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
}
