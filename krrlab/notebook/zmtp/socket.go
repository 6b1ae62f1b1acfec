package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// limits bounds the resources that a peer can use.
type limits struct {
	handshakeTime time.Duration // maximum time of a handshake
	writeTime     time.Duration // maximum time in which a peer accepts no data
	messageBytes  int           // maximum bytes of a message, including frameOverhead for each frame
	trustedBytes  int           // maximum bytes of a message of a trusted peer
	queueBytes    int           // queued bytes above which a peer is dropped
	maxPeers      int           // maximum number of connections, including those in handshake
}

// routerLimits are the limits of a ROUTER.
var routerLimits = limits{handshakeTime: 30 * time.Second, writeTime: 30 * time.Second, messageBytes: 1 << 20,
	trustedBytes: 64 << 20, queueBytes: 256 << 20, maxPeers: 128}

// maxTopics is the maximum number of topics of a subscriber. Front ends subscribe to one, the empty topic.
const maxTopics = 64

// Options describes a Socket and its callbacks.
type Options struct {
	Type  string // socket type, announced to peers: ROUTER, REP or XPUB
	Owner int    // user of this machine that may connect, in addition to root and the current user

	// Receive is called with each message of a peer of a ROUTER: sequentially for one peer, concurrently for several.
	// It is not used by a REP socket, which sends every message back, or by an XPUB.
	Receive func(*Peer, [][]byte)
	// Connected, if not nil, is called for each peer that completes its handshake.
	Connected func(*Peer)
	// Welcome returns the first message for a subscriber of an XPUB.
	Welcome func(topic []byte) [][]byte

	limits *limits // nil for the defaults of the socket type
}

// Socket accepts connections of peers.
type Socket struct {
	options  Options
	limits   limits
	listener net.Listener

	mu       sync.Mutex // guards peers and isClosed
	peers    []*Peer    // oldest first
	isClosed bool

	received atomic.Int64 // number of messages received so far
}

// Listen opens a socket at an address tcp://HOST:PORT or ipc://FILE.
func Listen(address string, options Options) (*Socket, error) {
	s := &Socket{options: options, limits: routerLimits}
	switch {
	case options.limits != nil:
		s.limits = *options.limits
	case options.Type == "REP": // heartbeats are small
		s.limits.queueBytes = 16 * maxCommand
		fallthrough
	case options.Type == "XPUB":
		s.limits.messageBytes = maxCommand
	}
	var err error
	if s.listener, err = listen(splitAddress(address)); err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	go s.accept()
	return s, nil
}

// splitAddress converts a ZeroMQ address to the arguments of net.Dial and net.Listen.
func splitAddress(address string) (network, addr string) {
	network, addr, _ = strings.Cut(address, "://")
	if network == "ipc" {
		network = "unix"
	}
	return network, addr
}

// listen opens a listener. Only its owner can access the file of an ipc socket. A stale file, left by a kernel that was
// killed, is replaced.
func listen(network, addr string) (net.Listener, error) {
	if network != "unix" {
		return net.Listen(network, addr)
	}
	if info, err := os.Lstat(addr); err == nil && info.Mode().Type() == fs.ModeSocket {
		if conn, err := net.Dial(network, addr); err == nil {
			conn.Close()
		} else {
			os.Remove(addr)
		}
	}
	listener, err := net.Listen(network, addr)
	if err == nil {
		err = os.Chmod(addr, 0o600)
	}
	return listener, err
}

// Addr returns the address of the socket.
func (s *Socket) Addr() net.Addr { return s.listener.Addr() }

// accept accepts connections until the socket is closed. An error of one connection does not end it.
func (s *Socket) accept() {
	for {
		netConn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of file descriptors, or the connection was aborted
			time.Sleep(10 * time.Millisecond)
		case isOtherUser(netConn, s.options.Owner) || !s.admit(netConn):
			netConn.Close()
		}
	}
}

// admit starts to serve a connection, displacing another one if necessary. It returns false if there is no room or the
// socket is closed.
func (s *Socket) admit(netConn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) >= s.limits.maxPeers {
		i := s.leastProtected()
		if i < 0 {
			return false
		}
		s.peers[i].Close()
		s.peers = slices.Delete(s.peers, i, i+1)
	}
	if s.isClosed {
		return false
	}
	p := &Peer{socket: s, conn: newConn(netConn, s.limits), writerDone: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	s.peers = append(s.peers, p)
	go p.serve()
	go p.writeQueue()
	return true
}

// leastProtected returns the index of the peer that is displaced by a new one, or −1 if there is none. This is the
// oldest peer in its handshake, or else the peer that has been silent for longest. Trusted peers, and subscribers of an
// XPUB, are never displaced.
func (s *Socket) leastProtected() (index int) {
	for i, p := range s.peers {
		if p.protection.Load() < s.peers[index].protection.Load() {
			index = i
		}
	}
	protection := s.peers[index].protection.Load()
	if protection == trusted || protection > greeted && s.options.Type == "XPUB" {
		return -1
	}
	return index
}

// forEachPeer calls f with every peer that has completed its handshake.
func (s *Socket) forEachPeer(f func(*Peer)) {
	s.mu.Lock()
	peers := slices.Clone(s.peers)
	s.mu.Unlock()
	for _, p := range peers {
		if p.protection.Load() >= greeted {
			f(p)
		}
	}
}

// SendTo sends a message to all peers with the given identity, or to none if the identity is empty.
func (s *Socket) SendTo(identity string, frames [][]byte) {
	s.forEachPeer(func(p *Peer) {
		if identity != "" && p.Identity() == identity {
			p.Send(frames)
		}
	})
}

// Publish sends a message to all subscribers of its topic, which is the first frame.
func (s *Socket) Publish(frames [][]byte) {
	s.forEachPeer(func(p *Peer) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if slices.ContainsFunc(p.topics, func(topic []byte) bool { return bytes.HasPrefix(frames[0], topic) }) {
			p.enqueue(frames)
		}
	})
}

// Close closes the socket and its connections. Each connection is closed when its queue has been written, but not later
// than the given time.
func (s *Socket) Close(deadline time.Time) {
	s.mu.Lock()
	peers := s.peers
	s.isClosed, s.peers = true, nil
	s.mu.Unlock()
	s.listener.Close()
	ctx, stop := context.WithDeadline(context.Background(), deadline)
	defer stop()
	for _, p := range peers {
		p.mu.Lock()
		p.isClosing = true
		p.wake.Broadcast()
		p.mu.Unlock()
		select {
		case <-p.writerDone:
		case <-ctx.Done():
			p.Close()
		}
	}
}

// Values of Peer.protection, in ascending order of protection from displacement: 0 during the handshake; greeted plus
// the number of messages that the socket had received at the peer's latest message; trusted.
const (
	greeted = 1 // the handshake is completed
	trusted = math.MaxInt64
)

// Peer is a connection of a Socket. Each peer has its own queue of outgoing messages, so a peer that does not read
// delays no others.
type Peer struct {
	socket     *Socket
	conn       *Conn
	protection atomic.Int64  // protection from displacement: 0, greeted or more
	writerDone chan struct{} // closed when the writer has ended

	mu          sync.Mutex // guards the fields below
	wake        *sync.Cond // signals a new message or the end
	queue       [][][]byte // messages to be written
	queuedBytes int        // size of the queue and of the message being written
	isClosing   bool       // no more messages are accepted
	topics      [][]byte   // subscribed prefixes
}

// Identity returns the identity that the peer claims. Several peers can claim the same identity.
func (p *Peer) Identity() string { return p.conn.peer.identity }

// Trust declares that the peer is authenticated. It can then send larger messages, and is not displaced. Trust must be
// called from Options.Receive.
func (p *Peer) Trust() {
	p.protection.Store(trusted)
	p.conn.maxMessage = p.socket.limits.trustedBytes
}

// serve performs the handshake and receives messages until the connection ends.
func (p *Peer) serve() {
	defer p.remove()
	options := &p.socket.options
	if p.conn.handshake(properties{socketType: options.Type}, p.socket.limits.handshakeTime) != nil {
		return
	}
	p.protection.Store(greeted)
	if options.Connected != nil {
		options.Connected(p)
	}
	for {
		frames, err := p.conn.Recv()
		if err != nil {
			return
		}
		if p.protection.Load() != trusted {
			p.protection.Store(greeted + p.socket.received.Add(1))
		}
		switch options.Type {
		case "XPUB":
			p.subscribe(frames)
		case "REP":
			p.Send(frames)
		default:
			options.Receive(p, frames)
		}
	}
}

// subscribe handles a message with the byte 1 (subscribe) or 0 (unsubscribe) followed by a topic. A new subscriber
// receives the welcome message before anything that is published later.
func (p *Peer) subscribe(frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	topic := frames[0][1:]
	i := slices.IndexFunc(p.topics, func(subscribed []byte) bool { return bytes.Equal(subscribed, topic) })
	switch action := frames[0][0]; {
	case action == 1 && len(p.topics) == maxTopics:
		p.close()
	case action == 1:
		p.topics = append(p.topics, topic)
		p.enqueue(p.socket.options.Welcome(topic))
	case action == 0 && i >= 0:
		p.topics = slices.Delete(p.topics, i, i+1)
	}
}

// remove removes the peer from its socket and closes it.
func (p *Peer) remove() {
	p.socket.mu.Lock()
	p.socket.peers = slices.DeleteFunc(p.socket.peers, func(peer *Peer) bool { return peer == p })
	p.socket.mu.Unlock()
	p.Close()
}

// Send queues a message and reports whether the peer is still connected. If too many bytes are queued, the peer is
// dropped.
func (p *Peer) Send(frames [][]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.enqueue(frames)
}

// enqueue is Send for a caller that holds p.mu.
func (p *Peer) enqueue(frames [][]byte) bool {
	if p.queuedBytes > p.socket.limits.queueBytes {
		p.close()
	}
	if p.isClosing || len(frames) == 0 {
		return false
	}
	p.queue = append(p.queue, frames)
	p.queuedBytes += messageSize(frames)
	p.wake.Broadcast()
	return true
}

// Reply sends a message to the peer or, if it is disconnected, to the current peers with the same identity.
func (p *Peer) Reply(frames [][]byte) {
	if !p.Send(frames) {
		p.socket.SendTo(p.Identity(), frames)
	}
}

// writeQueue writes the queue to the connection, which it closes after the last message.
func (p *Peer) writeQueue() {
	defer close(p.writerDone)
	defer p.Close()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.isClosing {
			p.wake.Wait()
		}
		if len(p.queue) == 0 {
			p.mu.Unlock()
			return
		}
		frames := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()
		if p.conn.Send(frames...) != nil {
			return
		}
		p.mu.Lock()
		p.queuedBytes -= messageSize(frames)
		p.mu.Unlock()
	}
}

// Close disconnects the peer and discards its queue.
func (p *Peer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

// close is Close for a caller that holds p.mu.
func (p *Peer) close() {
	p.isClosing, p.queue = true, nil
	p.wake.Broadcast()
	p.conn.Close()
}
