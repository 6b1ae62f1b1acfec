package jupyter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// deaf is a Language whose cells run until the test ends, and cannot be interrupted.
type deaf struct {
	Language
	begun, ended chan struct{}
}

func (d deaf) Run(string, string, *Cell) Outcome { close(d.begun); <-d.ended; return Outcome{} }

// serve starts a kernel with a short timeout. The channel is closed when Serve returns.
func serve(t *testing.T) (*Server, <-chan struct{}) {
	t.Helper()
	lang := deaf{begun: make(chan struct{}), ended: make(chan struct{})}
	s := testkit.Must(Listen(Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256"}, lang))
	s.timeout = 50 * time.Millisecond
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(lang.ended) })
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	return s, served
}

// Interrupt implements Language.
func (deaf) Interrupt() {}

// within fails the test unless the channel is closed soon.
func within(t *testing.T, name string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not end", name)
	}
}

// TestInterruptInVain interrupts a cell that cannot be interrupted, and checks that the kernel still shuts down.
func TestInterruptInVain(t *testing.T) {
	s, served := serve(t)
	s.enqueue(&Message{Header: Header{Type: "execute_request"}, Content: []byte("{}")})
	<-s.lang.(deaf).begun
	for range 4 {
		s.Interrupt()
	}
	s.stop()
	within(t, "the kernel", served)
}

// TestSubscriberThatDoesNotRead checks that the kernel shuts down while a subscriber does not read, although more data
// wait for it than a connection can buffer.
func TestSubscriberThatDoesNotRead(t *testing.T) {
	s, served := serve(t)
	conn := testkit.Must(zmtp.Dial("tcp://"+s.pub.Addr().String(), "SUB", ""))
	defer conn.Close()
	testkit.OK(t, conn.Send([]byte{1}))
	if _, err := conn.Recv(); err != nil { // the welcome message
		t.Fatal(err)
	}
	s.publish("stream", nil, map[string]any{"name": "stdout", "text": strings.Repeat("x", 32<<20)})
	s.stop()
	within(t, "the kernel", served)
}
