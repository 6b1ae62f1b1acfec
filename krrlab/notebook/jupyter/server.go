package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// Data is a value in several representations, as a Language shows it. Its maps are there, and JSON can carry them.
type Data = struct {
	Data      map[string]any
	Metadata  map[string]any
	Transient map[string]any
}

// Failure is how a cell failed.
type Failure struct {
	Name, Value string
	Traceback   []string
}

// Outcome is how a cell ended: with a value, without one, or by failing.
type Outcome struct {
	Value   *Data
	Failure *Failure
}

// Language runs cells. Cursors count bytes.
type Language interface {
	Info() map[string]any                      // of a kernel_info_reply, what is not of the protocol
	Run(name, code string, cell *Cell) Outcome // until it ends, or cell.Interrupts ends it
	Complete(code string, cursor int) (matches []string, start, end int)
	Inspect(code string, cursor int, more bool) (text string, found bool)
	IsComplete(code string) (status, indent string)
}

// Server is a kernel that listens.
type Server struct {
	lang    Language
	key     []byte
	session string

	shell, control, stdin, hb, pub *zmtp.Socket

	seen        signatures
	controlling sync.Mutex // one request of the control channel at a time

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*Message // of the shell channel
	ended  bool
	asking *question
	halts  chan struct{} // interrupts of the request that is answered

	count   int // of cells
	history []entry
	serving chan struct{} // closed when Serve begins
	timeout time.Duration // how long the last cell and the last messages are waited for
}

// Listen opens the sockets that c names. Messages wait until Serve is called.
func Listen(c Connection, lang Language) (*Server, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("jupyter: %w", err)
	}
	s := &Server{lang: lang, key: []byte(c.Key), session: rand.Text(), timeout: 2 * time.Second,
		serving: make(chan struct{})}
	s.seen.limit = remembered
	s.wake = sync.NewCond(&s.mu)
	router := func(handle func(*Message)) zmtp.Options {
		return zmtp.Options{Type: "ROUTER", Receive: s.receive(handle)}
	}
	stdin := router(s.answered)
	stdin.Connected = s.askAgain
	for _, x := range []struct {
		socket **zmtp.Socket
		port   int
		o      zmtp.Options
	}{
		{&s.shell, c.ShellPort, router(s.enqueue)}, {&s.control, c.ControlPort, router(s.direct)},
		{&s.stdin, c.StdinPort, stdin}, {&s.hb, c.HBPort, zmtp.Options{Type: "REP"}},
		{&s.pub, c.IOPubPort, zmtp.Options{Type: "XPUB", Welcome: s.welcome}},
	} {
		var err error
		x.o.Owner = c.owner
		if *x.socket, err = zmtp.Listen(c.address(x.port), x.o); err != nil {
			s.Close()
			return nil, fmt.Errorf("jupyter: %w", err)
		}
	}
	return s, nil
}

// Close closes the sockets.
func (s *Server) Close() {
	s.end()
	s.close(time.Now())
}

// close closes the sockets when what waits for the front ends is sent, at the latest at end.
func (s *Server) close(end time.Time) {
	for _, x := range []*zmtp.Socket{s.shell, s.control, s.stdin, s.hb, s.pub} {
		if x != nil {
			x.Close(end)
		}
	}
}

// welcome is the first message of a subscriber.
func (s *Server) welcome(topic []byte) [][]byte {
	frames, err := Encode([][]byte{[]byte("iopub_welcome")}, "iopub_welcome", s.session, nil,
		map[string]any{"subscription": string(topic)}, s.key)
	if err != nil {
		return nil
	}
	return frames
}

// Serve answers messages until a shutdown_request comes or ctx ends, and closes the sockets.
func (s *Server) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.end)()
	s.publish("status", nil, map[string]any{"execution_state": "starting"})
	close(s.serving)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := s.next(); m != nil; m = s.next() {
			s.handle(m)
		}
	}()
	s.waitForEnd()
	s.Interrupt()
	select {
	case <-done:
	case <-time.After(s.timeout):
	}
	s.close(time.Now().Add(s.timeout))
	return nil
}

// end makes Serve return.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake.Broadcast()
}

func (s *Server) waitForEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		s.wake.Wait()
	}
}

// Interrupt ends the cell that runs, or is about to, and its question to the reader.
func (s *Server) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking != nil {
		close(s.asking.answer)
		s.asking = nil
	}
	select {
	case s.halts <- struct{}{}:
	default:
	}
}

// receive hands on the messages of a peer whose signature is right and new, and trusts the peer then.
// What the server itself has said, which all may read, is no request.
func (s *Server) receive(handle func(*Message)) func(*zmtp.Peer, [][]byte) {
	return func(p *zmtp.Peer, frames [][]byte) {
		m, err := Decode(frames, s.key)
		if err != nil || m.Header.Session == s.session || len(s.key) > 0 && !s.seen.fresh(m.signature) {
			return
		}
		p.Trust()
		m.from = p
		<-s.serving
		handle(m)
	}
}

// direct answers a request of the control channel.
func (s *Server) direct(m *Message) {
	s.controlling.Lock()
	defer s.controlling.Unlock()
	s.handle(m)
}

func (s *Server) enqueue(m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, m)
	s.wake.Broadcast()
}

// next returns the next request of the shell channel, nil at the end.
func (s *Server) next() *Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.ended {
		s.wake.Wait()
	}
	if s.ended {
		return nil
	}
	m := s.queue[0]
	s.queue, s.halts = s.queue[1:], make(chan struct{}, 2)
	return m
}

// reply answers a request on the connection that it came from.
func (s *Server) reply(m *Message, typ string, content any) {
	frames, err := Encode(m.Identities, typ, s.session, m.RawHeader, content, s.key)
	if err != nil {
		// of words only
		frames, _ = Encode(m.Identities, typ, s.session, m.RawHeader, failed("ReplyError", err.Error()), s.key)
	}
	if m.from != nil {
		m.from.Reply(frames)
	}
}

// publish sends to all who listen.
func (s *Server) publish(typ string, parent json.RawMessage, content any) {
	frames, err := Encode([][]byte{[]byte(typ)}, typ, s.session, parent, content, s.key)
	if err == nil {
		s.pub.Publish(frames)
	}
}

// failed is the content of a reply to a request that failed.
func failed(name, value string) map[string]any {
	return map[string]any{"status": "error", "ename": name, "evalue": value, "traceback": []string{}}
}
