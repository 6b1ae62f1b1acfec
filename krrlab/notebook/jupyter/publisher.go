package jupyter

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// publisher is an XPUB socket: it sends to each subscriber what has come since it
// subscribed, in order, from a queue of its own.
type publisher struct {
	listener net.Listener
	welcome  func(topic []byte) [][]byte // frames for a new subscriber

	mu     sync.Mutex
	subs   map[*subscriber]bool
	closed bool
}

// subscriber is one connection.
type subscriber struct {
	conn   *zmq4.Conn
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []zmq4.Msg
	topics [][]byte
	closed bool
	idle   bool // nothing is being sent
}

// listenPub opens the socket at a ZeroMQ address.
func listenPub(address string, welcome func(topic []byte) [][]byte) (*publisher, error) {
	network, addr, _ := strings.Cut(address, "://")
	if network == "ipc" {
		network = "unix"
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("jupyter: %w", err)
	}
	p := &publisher{listener: l, welcome: welcome, subs: map[*subscriber]bool{}}
	go p.accept()
	return p, nil
}

func (p *publisher) accept() {
	for {
		rw, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(rw)
	}
}

// serve speaks with one subscriber until it goes.
func (p *publisher) serve(rw net.Conn) {
	conn, err := zmq4.Open(rw, null.Security(), zmq4.XPub, zmq4.SocketIdentity(newID()), true, func(*zmq4.Conn) {})
	if err != nil {
		rw.Close()
		return
	}
	s := &subscriber{conn: conn, idle: true}
	s.wake = sync.NewCond(&s.mu)
	p.mu.Lock()
	p.subs[s] = true
	closed := p.closed
	p.mu.Unlock()
	go s.send()
	for !closed {
		m, err := conn.RecvMsg()
		if err != nil {
			break
		}
		if len(m.Frames) == 1 && len(m.Frames[0]) > 0 {
			s.subscribe(m.Frames[0], p.welcome)
		}
	}
	p.mu.Lock()
	delete(p.subs, s)
	p.mu.Unlock()
	s.close()
}

// subscribe takes a message 1+topic or 0+topic.
func (s *subscriber) subscribe(frame []byte, welcome func([]byte) [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := bytes.Clone(frame[1:])
	switch frame[0] {
	case 1:
		s.topics = append(s.topics, topic)
		s.queue = append(s.queue, zmq4.NewMsgFrom(welcome(topic)...))
		s.wake.Signal()
	case 0:
		for i, t := range s.topics {
			if bytes.Equal(t, topic) {
				s.topics = append(s.topics[:i], s.topics[i+1:]...)
				return
			}
		}
	}
}

// publish queues a message for all who subscribed to its topic, the first frame.
func (p *publisher) publish(frames [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		s.put(zmq4.NewMsgFrom(frames...))
	}
}

func (s *subscriber) put(m zmq4.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		if bytes.HasPrefix(m.Frames[0], t) {
			s.queue = append(s.queue, m)
			s.wake.Signal()
			return
		}
	}
}

// send writes the queue to the connection.
func (s *subscriber) send() {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.idle = true
			s.wake.Broadcast()
			s.wake.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		batch := s.queue
		s.queue, s.idle = nil, false
		s.mu.Unlock()
		for _, m := range batch {
			if s.conn.SendMsg(m) != nil {
				s.close()
				return
			}
		}
	}
}

func (s *subscriber) close() {
	s.mu.Lock()
	s.closed, s.idle, s.queue = true, true, nil
	s.wake.Broadcast()
	s.mu.Unlock()
	s.conn.Close()
}

// flush waits until all that was published is sent, but no longer than the limit: a subscriber
// that does not read gets no more.
func (p *publisher) flush(limit time.Duration) {
	end := time.Now().Add(limit)
	p.mu.Lock()
	subs := make([]*subscriber, 0, len(p.subs))
	for s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		s.flush(end)
	}
}

// flush waits until the queue is sent, at most until end.
func (s *subscriber) flush(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer time.AfterFunc(time.Until(end), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake.Broadcast()
	}).Stop()
	for (len(s.queue) > 0 || !s.idle) && !s.closed && time.Now().Before(end) {
		s.wake.Wait()
	}
}

func (p *publisher) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	subs := p.subs
	p.subs = map[*subscriber]bool{}
	p.mu.Unlock()
	for s := range subs {
		s.close()
	}
}
