package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// listenEcho opens a socket that returns each message to its sender.
func listenEcho(t *testing.T, options Options) *Socket {
	t.Helper()
	if options.Type == "" {
		options.Type = "ROUTER"
	}
	if options.Receive == nil {
		options.Receive = func(p *Peer, frames [][]byte) { p.Send(frames) }
	}
	socket := testkit.Must(Listen("tcp://127.0.0.1:0", options))
	t.Cleanup(func() { socket.Close(time.Time{}) })
	return socket
}

// dialRaw opens a connection and sends nothing.
func dialRaw(t *testing.T, s *Socket) net.Conn {
	t.Helper()
	conn := testkit.Must(net.Dial("tcp", s.Addr().String()))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dial connects as a DEALER.
func dial(t *testing.T, s *Socket, identity string) *Conn {
	t.Helper()
	conn := testkit.Must(Dial("tcp://"+s.Addr().String(), "DEALER", identity))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// checkAlive checks that the socket answers a message on the connection.
func checkAlive(t *testing.T, text string, conn *Conn) {
	t.Helper()
	_ = conn.netConn.SetReadDeadline(time.Now().Add(3 * time.Minute))
	testkit.OK(t, conn.Send([]byte(text)))
	if frames, err := conn.Recv(); err != nil || string(bytes.Join(frames, nil)) != strings.TrimPrefix(text, "\x01") {
		t.Fatalf("sent %q, received %q, %v", text, frames, err)
	}
}

// checkDropped waits until the other side has closed the connection.
func checkDropped(t *testing.T, name string, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: not dropped", name)
	}
}

// TestMalformedBytesAreRejected sends bytes that no correct peer sends. The socket must close each of these connections
// and answer another peer as before, and all together must not allocate more than 16 MB. An unknown command with a
// correct form is ignored.
func TestMalformedBytesAreRejected(t *testing.T) {
	s := listenEcho(t, Options{})
	other := dial(t, s, "other")
	handshakeBytes := string(greeting[:]) + "\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
	curveGreeting := strings.Replace(string(greeting[:]), "NULL\x00", "CURVE", 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, sent := range map[string]string{
		"http":                "GET / HTTP/1.1\r\n\r\n",
		"version 2":           "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01" + string(greeting[11:]),
		"curve":               curveGreeting,
		"short property":      string(greeting[:]) + string(readyShort),
		"long property":       string(greeting[:]) + "\x04\x0c\x05READY\x01A\xff\xff\xff\xff",
		"no name":             string(greeting[:]) + "\x04\x0b\x05READY\x00\x00\x00\x00\x00",
		"short command":       string(greeting[:]) + "\x04\x01\x05",
		"empty command":       string(greeting[:]) + "\x04\x00",
		"message":             string(greeting[:]) + "\x00\x05READY",
		"type":                string(greeting[:]) + "\x04\x1b\x05READY\x0bSocket-Type\x00\x00\x00\x05XPUSH",
		"no type":             string(greeting[:]) + "\x04\x06\x05READY",
		"2^62 bytes":          handshakeBytes + string(frameWithSize(0, 1<<62, "x")),
		"2^63 bytes":          handshakeBytes + string(frameWithSize(0, 1<<63, "x")),
		"2^36 bytes":          handshakeBytes + string(frameWithSize(0, 1<<36, "x")),
		"2^36 bytes of READY": string(greeting[:]) + string(frameWithSize(flagCommand, 1<<36, "x")),
		"limit in two frames": handshakeBytes + string(frameWithSize(flagMore, 1<<19, strings.Repeat("x",
			1<<19))) + string(frameWithSize(0,
			1<<19, "")),
		"unknown flag":         handshakeBytes + "\x08\x01x",
		"command with more":    handshakeBytes + "\x05\x05\x04PING",
		"257 frames":           handshakeBytes + strings.Repeat("\x01\x00", 257),
		"command that is none": handshakeBytes + "\x04\x01\x05",
	} {
		conn := dialRaw(t, s)
		if _, err := conn.Write([]byte(sent)); err != nil {
			continue // the connection was closed before everything was sent
		}
		checkDropped(t, name, conn)
		checkAlive(t, name, other)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d bytes allocated", allocated)
	}
	conn := dialRaw(t, s)
	testkit.Must(io.WriteString(conn, handshakeBytes+"\x04\x05\x04NONE"+"\x00\x02hi"))
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
	want := "\x00\x02hi"
	answer := make([]byte, 64+2+41+len(want)) // the greeting, READY with two properties, and the echo
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.HasSuffix(string(answer), want) {
		t.Errorf("answer %q, %v, want %q at the end", answer, err, want)
	}
}

// TestIncompleteHandshake opens connections that send nothing, or only a part of the handshake. They must not delay
// other peers, and must be closed once the time for the handshake is over.
func TestIncompleteHandshake(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, 300 * time.Millisecond} {
		s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.handshakeTime = limit })})
		var silent []net.Conn
		for i := range 20 {
			conn := dialRaw(t, s)
			if i%2 == 1 {
				testkit.Must(conn.Write(greeting[:30]))
			}
			silent = append(silent, conn)
		}
		if limit == time.Hour {
			checkAlive(t, "beside silent ones", dial(t, s, ""))
			continue
		}
		for _, conn := range silent {
			checkDropped(t, "silent", conn)
		}
	}
}

// changedLimits returns the usual limits with the changes that f makes.
func changedLimits(f func(*limits)) *limits {
	l := routerLimits
	f(&l)
	return &l
}

// TestPeerLimit opens more connections than the socket allows. Connections in the handshake are closed first, then
// those that have sent nothing, and then the untrusted one that has been silent for the longest time.
func TestPeerLimit(t *testing.T) {
	trustOnRequest := func(p *Peer, frames [][]byte) {
		if string(frames[0]) == "trust" {
			p.Trust()
		}
		p.Send(frames)
	}
	s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.maxPeers = 3 }), Receive: trustOnRequest})
	first, second := dial(t, s, "first"), dial(t, s, "second")
	checkAlive(t, "trust", first)
	checkAlive(t, "second", second)
	silent := dialRaw(t, s)
	idle := dial(t, s, "idle")
	checkDropped(t, "in handshake", silent)
	third := dial(t, s, "third")
	checkDropped(t, "idle", idle.netConn)
	checkAlive(t, "third", third)
	checkAlive(t, "second again", second)
	fourth := dial(t, s, "fourth")
	checkAlive(t, "fourth", fourth)
	checkDropped(t, "third", third.netConn)
	for _, conn := range []*Conn{first, second, fourth} {
		checkAlive(t, "at last", conn)
	}
}

// TestSubscribers checks that subscribers receive the messages that begin with one of their topics, that a new
// subscriber cannot displace one of them, and that the number of their topics is limited.
func TestSubscribers(t *testing.T) {
	s := listenEcho(t, Options{Type: "XPUB", limits: changedLimits(func(l *limits) { l.maxPeers = 2 }),
		Welcome: func(topic []byte) [][]byte { return [][]byte{topic} }})
	var subscribers []*Conn
	for range 2 {
		conn := testkit.Must(Dial("tcp://"+s.Addr().String(), "SUB", ""))
		defer conn.Close()
		for _, message := range []string{"\x01status", "\x01str", "\x00status", "\x01status", "\x01st", "\x00status",
			"\x00none", "\x02x", "\x00st", "\x01err"} {
			if message[0] == 1 {
				checkAlive(t, message, conn)
			} else {
				_ = conn.Send([]byte(message))
			}
		}
		_ = conn.Send([]byte("\x01a"), []byte("two frames"))
		_ = conn.Send([]byte{})
		checkAlive(t, "\x01more", conn)
		subscribers = append(subscribers, conn)
	}
	checkDropped(t, "one too many", dialRaw(t, s))
	for _, topic := range []string{"status", "stream", "a", "error"} {
		s.Publish([][]byte{[]byte(topic), []byte("x")})
	}
	for _, conn := range subscribers {
		for _, want := range []string{"streamx", "errorx"} {
			if message, err := conn.Recv(); err != nil || string(bytes.Join(message, nil)) != want {
				t.Errorf("%q, %v, want %s", message, err, want)
			}
		}
	}
	for range maxTopics - 3 {
		checkAlive(t, "\x01more", subscribers[0])
	}
	_ = subscribers[0].Send([]byte("\x01too many"))
	checkDropped(t, "too many topics", subscribers[0].netConn)
}

// TestTrustedPeer checks that a trusted peer may send longer messages than others, up to a limit of its own.
func TestTrustedPeer(t *testing.T) {
	s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.messageBytes, l.trustedBytes = 1000, 100000 }),
		Receive: func(p *Peer, frames [][]byte) { p.Trust(); p.Send(frames) }})
	large := strings.Repeat("x", 50000)
	conn := dial(t, s, "")
	if err := conn.Send([]byte(large)); err == nil {
		checkDropped(t, "not trusted", conn.netConn)
	}
	conn = dial(t, s, "")
	checkAlive(t, "x", conn)
	checkAlive(t, large, conn)
	if err := conn.Send([]byte(large + large)); err == nil {
		checkDropped(t, "trusted", conn.netConn)
	}
}

// TestPeerThatDoesNotRead sends to peers that do not read. They must be dropped once too much data wait for them, or
// once a write takes too long.
func TestPeerThatDoesNotRead(t *testing.T) {
	part := make([]byte, 1<<20)
	for _, l := range []*limits{changedLimits(func(l *limits) { l.queueBytes, l.writeTime = 32<<20, time.Hour }),
		changedLimits(func(l *limits) { l.queueBytes, l.writeTime = 1<<40, 300*time.Millisecond })} {
		peers := make(chan *Peer)
		s := listenEcho(t, Options{limits: l, Receive: func(p *Peer, frames [][]byte) {
			for i := 0; i < 64 && p.Send([][]byte{part}); i++ {
			}
			peers <- p
		}})
		conn := dial(t, s, "")
		testkit.OK(t, conn.Send([]byte("send")))
		select {
		case <-(<-peers).writerDone:
		case <-time.After(3 * time.Minute):
			t.Errorf("%+v: still there", l)
		}
	}
}

// TestReplyAfterReconnect checks that a reply to a peer that has connected again with the same identity goes to the new
// connection, and that messages for an unknown identity are dropped.
func TestReplyAfterReconnect(t *testing.T) {
	peers := make(chan *Peer, 3)
	s := listenEcho(t, Options{Receive: func(peer *Peer, frames [][]byte) { peers <- peer; peer.Send(frames) }})
	first := dial(t, s, "me")
	checkAlive(t, "first", first)
	peer := <-peers
	first.Close()
	reconnected, nameless := dial(t, s, "me"), dial(t, s, "")
	checkAlive(t, "again", reconnected)
	checkAlive(t, "nameless", nameless)
	peer.Close()
	peer.Reply([][]byte{[]byte("late")})
	s.SendTo("", [][]byte{[]byte("nobody")})
	if frames, err := reconnected.Recv(); err != nil || string(frames[0]) != "late" {
		t.Errorf("the reconnected peer received %q, %v, want late", frames, err)
	}
	checkAlive(t, "nameless again", nameless)
}

// TestIPCSocketFile checks a socket at a file: only its owner may use the file, a file left behind by a killed process
// is replaced, and one in use is not.
func TestIPCSocketFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	stale := testkit.Must(net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}))
	stale.SetUnlinkOnClose(false)
	stale.Close()
	echo := func(p *Peer, frames [][]byte) { p.Send(frames) }
	s := testkit.Must(Listen("ipc://"+name, Options{Type: "REP", Receive: echo}))
	defer s.Close(time.Time{})
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if s, err := Listen("ipc://"+name, Options{Type: "REP"}); err == nil {
		s.Close(time.Time{})
		t.Error("listens twice")
	}
	conn := testkit.Must(Dial("ipc://"+name, "REQ", ""))
	defer conn.Close()
	checkAlive(t, "ipc", conn)
}
