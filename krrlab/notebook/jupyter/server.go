package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// Data is a value in several representations. Its maps are not nil and can be encoded as JSON.
type Data = struct {
	Data      map[string]any // representations by MIME type
	Metadata  map[string]any // metadata by MIME type
	Transient map[string]any // properties that are not saved with the notebook, such as display_id
}

// Failure describes why a cell failed: the kind of error, its message, and lines of text with the position and the
// cause.
type Failure struct {
	Name, Value string
	Traceback   []string
}

// Outcome is the result of a cell. Both fields are nil if the cell succeeded without a value.
type Outcome struct {
	Value   *Data
	Failure *Failure
}

// Language runs the cells of a kernel. Cursors are byte offsets.
type Language interface {
	// Info returns the language-dependent fields of a kernel_info_reply.
	Info() map[string]any
	// Run executes a cell and returns when it has ended, possibly because of cell.Interrupts. name identifies the cell
	// in messages of errors, for example Cell 5.
	Run(name, code string, cell *Cell) Outcome
	// Complete returns the completions at the cursor and the range of code that they replace.
	Complete(code string, cursor int) (matches []string, start, end int)
	// Inspect documents the name at the cursor.
	Inspect(code string, cursor int, detailed bool) (text string, ok bool)
	// IsComplete returns complete, incomplete (with the indentation of the next line), invalid or unknown.
	IsComplete(code string) (status, indent string)
	// Comms returns the open comms of a target, or of all targets if it is "", by their identifiers.
	Comms(target string) map[string]any
	// ReceiveComm handles a message of type comm_open, comm_msg or comm_close. Its content is undecoded JSON.
	// ReceiveComm must return promptly and may be called while a cell runs. publish sends an answer.
	ReceiveComm(messageType string, content []byte, publish func(messageType string, content, metadata map[string]any))
	// Interrupt ends what cells have left running in the background.
	Interrupt()
}

// Server is a kernel with open sockets.
type Server struct {
	lang    Language
	key     []byte
	session string // identifier in the headers of messages

	shell, control, stdin, heartbeat, iopub *zmtp.Socket

	signatures   signatures // signatures of received messages
	controlMutex sync.Mutex // serializes requests of the control channel

	mu           sync.Mutex    // guards the fields up to interrupts
	wake         *sync.Cond    // signals changes of queue and isStopping
	queue        []*Message    // requests of the shell channel
	isStopping   bool          // stop was called
	pendingInput *inputRequest // nil if there is none
	// interrupts of the request being answered, nil before the first. It has room for two: the first interrupts the
	// cell, the second abandons it. Further ones are dropped.
	interrupts chan struct{}

	cellCount int // number of cells stored in the history so far
	history   []historyEntry
	serving   chan struct{} // closed when Serve begins
	timeout   time.Duration // maximum time to wait for the last cell, and for sending the last messages
}

// Listen opens the sockets that c describes. Received messages wait until Serve is called.
func Listen(c Connection, lang Language) (*Server, error) {
	if err := c.setDefaults(); err != nil {
		return nil, fmt.Errorf("jupyter: %w", err)
	}
	s := &Server{lang: lang, key: []byte(c.Key), session: rand.Text(), timeout: 2 * time.Second,
		serving: make(chan struct{})}
	s.signatures.limit = signatureLimit
	s.wake = sync.NewCond(&s.mu)
	router := func(handle func(*Message)) zmtp.Options {
		return zmtp.Options{Type: "ROUTER", Receive: s.receive(handle)}
	}
	stdin := router(s.receiveInput)
	stdin.Connected = s.resendInputRequest
	for _, spec := range []struct {
		socket  **zmtp.Socket
		port    int
		options zmtp.Options
	}{
		{&s.shell, c.ShellPort, router(s.enqueue)}, {&s.control, c.ControlPort, router(s.handleControl)},
		{&s.stdin, c.StdinPort, stdin}, {&s.heartbeat, c.HBPort, zmtp.Options{Type: "REP"}},
		{&s.iopub, c.IOPubPort, zmtp.Options{Type: "XPUB", Welcome: s.welcome}},
	} {
		var err error
		spec.options.Owner = c.ownerUID
		if *spec.socket, err = zmtp.Listen(c.address(spec.port), spec.options); err != nil {
			s.Close()
			return nil, fmt.Errorf("jupyter: %w", err)
		}
	}
	return s, nil
}

// Close stops the server and closes the sockets immediately.
func (s *Server) Close() {
	s.stop()
	s.close(time.Now())
}

// close closes the sockets when all queued messages have been sent, but not later than the deadline.
func (s *Server) close(deadline time.Time) {
	for _, socket := range []*zmtp.Socket{s.shell, s.control, s.stdin, s.heartbeat, s.iopub} {
		if socket != nil {
			socket.Close(deadline)
		}
	}
}

// welcome returns the first message for a subscriber, or nil if the message cannot be encoded.
func (s *Server) welcome(topic []byte) [][]byte {
	frames, err := Encode([][]byte{[]byte("iopub_welcome")}, "iopub_welcome", s.session, nil,
		map[string]any{"subscription": string(topic)}, s.key)
	if err != nil {
		return nil
	}
	return frames
}

// Serve answers messages until it receives a shutdown_request or ctx ends. Then it interrupts the running cell, waits
// for it until the timeout, discards the requests in the queue, and closes the sockets. The error is always nil.
func (s *Server) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.stop)()
	s.publish("status", nil, map[string]any{"execution_state": "starting"})
	close(s.serving)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for m := s.nextRequest(); m != nil; m = s.nextRequest() {
			s.handle(m)
		}
	}()
	s.waitForStop()
	s.Interrupt()
	select {
	case <-finished:
	case <-time.After(s.timeout):
	}
	s.close(time.Now().Add(s.timeout))
	return nil
}

// stop makes Serve return.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStopping = true
	s.wake.Broadcast()
}

// waitForStop returns after the call of stop.
func (s *Server) waitForStop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.isStopping {
		s.wake.Wait()
	}
}

// Interrupt interrupts the running cell, or the cell that is about to run, and cancels its pending question. It also
// ends what cells have left running in the background.
func (s *Server) Interrupt() {
	defer s.lang.Interrupt()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pendingInput != nil {
		close(s.pendingInput.answer)
		s.pendingInput = nil
	}
	select {
	case s.interrupts <- struct{}{}:
	default:
	}
}

// receive returns a function that passes the messages of a peer to handle. It drops messages with a wrong or, if there
// is a key, a repeated signature. It also drops messages of the server itself: they are published to all subscribers,
// so a copy of one must not be accepted as a request. The sender of any other message is declared trusted, and the
// message waits until Serve begins.
func (s *Server) receive(handle func(*Message)) func(*zmtp.Peer, [][]byte) {
	return func(peer *zmtp.Peer, frames [][]byte) {
		m, err := Decode(frames, s.key)
		if err != nil || m.Header.Session == s.session || len(s.key) > 0 && !s.signatures.isNew(m.signature) {
			return
		}
		peer.Trust()
		m.sender = peer
		<-s.serving
		handle(m)
	}
}

// handleControl answers a request of the control channel.
func (s *Server) handleControl(m *Message) {
	s.controlMutex.Lock()
	defer s.controlMutex.Unlock()
	s.handle(m)
}

// enqueue adds a request of the shell channel to the queue. Messages of comms are handled immediately: they do not wait
// for running cells, and they take no memory in the queue.
func (s *Server) enqueue(m *Message) {
	if strings.HasPrefix(m.Header.Type, "comm_") && m.Header.Type != "comm_info_request" {
		s.handle(m)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, m)
	s.wake.Broadcast()
}

// nextRequest waits for the next request of the shell channel. It returns nil if the server stops.
func (s *Server) nextRequest() *Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.isStopping {
		s.wake.Wait()
	}
	if s.isStopping {
		return nil
	}
	m := s.queue[0]
	s.queue, s.interrupts = s.queue[1:], make(chan struct{}, 2)
	return m
}

// reply answers a request on the connection from which it was received.
func (s *Server) reply(m *Message, messageType string, content any) {
	frames, err := Encode(m.Identities, messageType, s.session, m.RawHeader, content, s.key)
	if err != nil {
		// This content can be encoded, so the error is always nil.
		failure := errorContent("ReplyError", err.Error())
		frames, _ = Encode(m.Identities, messageType, s.session, m.RawHeader, failure, s.key)
	}
	if m.sender != nil {
		m.sender.Reply(frames)
	}
}

// contentWithMetadata is the content of a message that has metadata, too.
type contentWithMetadata struct {
	content  any
	metadata map[string]any
}

// publish sends a message to all subscribers, unless its content cannot be encoded. content may be of type
// contentWithMetadata.
func (s *Server) publish(messageType string, parent json.RawMessage, content any) {
	frames, err := Encode([][]byte{[]byte(messageType)}, messageType, s.session, parent, content, s.key)
	if err == nil {
		s.iopub.Publish(frames)
	}
}

// errorContent returns the content of a reply to a failed request.
func errorContent(name, value string) map[string]any {
	return map[string]any{"status": "error", "ename": name, "evalue": value, "traceback": []string{}}
}
