package jupyter

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
)

// Data is a value in several representations, as a Language shows it.
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

// Info is what a kernel says of itself.
type Info struct {
	Implementation, Version, Banner string
	Language                        map[string]any // language_info
	Links                           [][2]string    // text, address
}

// Language runs cells. Cursors count bytes.
type Language interface {
	Info() Info
	Run(name, code string, cell *Cell) Outcome
	Complete(code string, cursor int) (matches []string, start, end int)
	Inspect(code string, cursor int, more bool) (text string, found bool)
	IsComplete(code string) (status, indent string)
	Interrupt() bool // ends the cell that runs; false if none does
}

// Server is a kernel that listens.
type Server struct {
	lang    Language
	key     []byte
	session string

	shell, control, stdin, hb zmq4.Socket
	pub                       *publisher
	send                      sync.Mutex // one sender at a time on the sockets that answer

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*Message // of the shell channel
	ended  bool
	asking *question
	busy   atomic.Int64 // number of the execute_request that is answered; 0 for none

	count    int   // of cells
	executed int64 // of execute_requests
	history  []entry
	stop     context.CancelFunc
	patience time.Duration // how long an interrupt, the last cell and the last messages are waited for
}

// Listen opens the sockets that c names.
func Listen(c Connection, lang Language) (*Server, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{lang: lang, key: []byte(c.Key), session: newID(), stop: stop, patience: 2 * time.Second}
	s.wake = sync.NewCond(&s.mu)
	quiet := zmq4.WithLogger(log.New(io.Discard, "", 0))
	s.shell, s.control = zmq4.NewRouter(ctx, quiet), zmq4.NewRouter(ctx, quiet)
	s.stdin, s.hb = zmq4.NewRouter(ctx, quiet), zmq4.NewRouter(ctx, quiet)
	for _, x := range []struct {
		socket zmq4.Socket
		port   int
	}{{s.shell, c.ShellPort}, {s.control, c.ControlPort}, {s.stdin, c.StdinPort}, {s.hb, c.HBPort}} {
		if err := x.socket.Listen(c.address(x.port)); err != nil {
			s.Close()
			return nil, fmt.Errorf("jupyter: %w", err)
		}
	}
	var err error
	if s.pub, err = listenPub(c.address(c.IOPubPort), s.welcome); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the sockets.
func (s *Server) Close() {
	s.end()
	s.stop()
	for _, x := range []zmq4.Socket{s.shell, s.control, s.stdin, s.hb} {
		x.Close()
	}
	if s.pub != nil {
		s.pub.close()
	}
}

// welcome is the first message of a subscriber.
func (s *Server) welcome(topic []byte) [][]byte {
	frames, err := Encode([][]byte{[]byte("iopub_welcome")}, "iopub_welcome", s.session, nil, map[string]any{"subscription": string(topic)}, s.key)
	if err != nil {
		return nil
	}
	return frames
}

// Serve answers messages until a shutdown_request comes or ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	go s.read(s.shell, s.enqueue)
	go s.read(s.control, func(m *Message) { s.handle(s.control, m) })
	go s.read(s.stdin, s.answered)
	go s.beat()
	defer context.AfterFunc(ctx, s.end)()
	s.publish("status", nil, map[string]any{"execution_state": "starting"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := s.next(); m != nil; m = s.next() {
			s.handle(s.shell, m)
		}
	}()
	s.waitForEnd()
	go s.Interrupt() // the cell may be about to begin
	select {
	case <-done:
	case <-time.After(s.patience):
	}
	s.pub.flush(s.patience)
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

// Interrupt ends the cell that runs, and its question to the reader.
func (s *Server) Interrupt() {
	s.mu.Lock()
	q := s.asking
	s.asking = nil
	s.mu.Unlock()
	if q != nil {
		close(q.answer)
	}
	// A front end may interrupt as soon as it hears that a cell runs, before it does. It may never
	// do: the goroutine that runs cells may be gone.
	end := time.Now().Add(s.patience)
	for n := s.busy.Load(); !s.lang.Interrupt() && n != 0 && s.busy.Load() == n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// read hands on the messages of a socket whose signature is right.
func (s *Server) read(socket zmq4.Socket, handle func(*Message)) {
	for {
		msg, err := socket.Recv()
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // a connection broke; others go on
			continue
		}
		if m, err := Decode(msg.Frames, s.key); err == nil {
			handle(m)
		}
	}
}

// beat returns every heartbeat.
func (s *Server) beat() {
	for {
		msg, err := s.hb.Recv()
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return
		}
		if err == nil {
			err = s.hb.SendMulti(msg)
		}
		if err != nil {
			time.Sleep(time.Millisecond)
		}
	}
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
	s.queue = s.queue[1:]
	return m
}

// reply answers a request on the socket it came from.
func (s *Server) reply(socket zmq4.Socket, m *Message, typ string, content any) {
	frames, err := Encode(m.Identities, typ, s.session, m.RawHeader, content, s.key)
	if err != nil {
		frames, err = Encode(m.Identities, typ, s.session, m.RawHeader, failed("ReplyError", err.Error()), s.key)
	}
	if err == nil {
		s.send.Lock()
		defer s.send.Unlock()
		_ = socket.SendMulti(zmq4.NewMsgFrom(frames...)) // who asked may be gone
	}
}

// publish sends to all who listen.
func (s *Server) publish(typ string, parent json.RawMessage, content any) {
	frames, err := Encode([][]byte{[]byte(typ)}, typ, s.session, parent, content, s.key)
	if err == nil {
		s.pub.publish(frames)
	}
}

// failed is the content of a reply to a request that failed.
func failed(name, value string) map[string]any {
	return map[string]any{"status": "error", "ename": name, "evalue": value, "traceback": []string{}}
}
