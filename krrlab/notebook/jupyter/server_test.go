package jupyter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// stuckLanguage is a Language whose cells run until the test ends, and cannot be interrupted.
type stuckLanguage struct {
	Language
	started chan struct{} // closed when the cell begins
	release chan struct{} // closed to end the cell
}

// Run implements Language.
func (l stuckLanguage) Run(string, string, *Cell) Outcome {
	close(l.started)
	<-l.release
	return Outcome{}
}

// Interrupt implements Language.
func (stuckLanguage) Interrupt() {}

// startServer starts a kernel with a short timeout that runs stuckLanguage. The channel is closed when Serve returns.
func startServer(t *testing.T) (*Server, <-chan struct{}) {
	t.Helper()
	lang := stuckLanguage{started: make(chan struct{}), release: make(chan struct{})}
	s := testkit.Must(Listen(Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256"}, lang))
	s.timeout = 50 * time.Millisecond
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(lang.release) })
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	return s, served
}

// awaitClosed fails the test unless the channel is closed within two minutes.
func awaitClosed(t *testing.T, name string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not end", name)
	}
}

// TestShutdownDuringUninterruptibleCell interrupts a cell that cannot be interrupted, and checks that the kernel still
// shuts down.
func TestShutdownDuringUninterruptibleCell(t *testing.T) {
	s, served := startServer(t)
	s.enqueue(&Message{Header: Header{Type: "execute_request"}, Content: []byte("{}")})
	<-s.lang.(stuckLanguage).started
	for range 4 { // The server keeps two interrupts, and no call may block.
		s.Interrupt()
	}
	s.stop()
	awaitClosed(t, "the kernel", served)
}

// TestSubscriberThatDoesNotRead checks that the kernel shuts down while a subscriber does not read, although more data
// wait for it than a connection can buffer.
func TestSubscriberThatDoesNotRead(t *testing.T) {
	s, served := startServer(t)
	conn := testkit.Must(zmtp.Dial("tcp://"+s.iopub.Addr().String(), "SUB", ""))
	defer conn.Close()
	testkit.OK(t, conn.Send([]byte{1}))    // subscribes to all topics
	if _, err := conn.Recv(); err != nil { // the welcome message
		t.Fatal(err)
	}
	s.publish("stream", nil, map[string]any{"name": "stdout", "text": strings.Repeat("x", 32<<20)})
	s.stop()
	awaitClosed(t, "the kernel", served)
}
