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
func listenEcho(t *testing.T, o Options) *Socket {
	t.Helper()
	if o.Type == "" {
		o.Type = "ROUTER"
	}
	if o.Receive == nil {
		o.Receive = func(p *Peer, m [][]byte) { p.Send(m) }
	}
	s := testkit.Must(Listen("tcp://127.0.0.1:0", o))
	t.Cleanup(func() { s.Close(time.Time{}) })
	return s
}

// dialRaw opens a connection and sends nothing.
func dialRaw(t *testing.T, s *Socket) net.Conn {
	t.Helper()
	c := testkit.Must(net.Dial("tcp", s.Addr().String()))
	t.Cleanup(func() { c.Close() })
	return c
}

// dial connects as a DEALER.
func dial(t *testing.T, s *Socket, identity string) *Conn {
	t.Helper()
	c := testkit.Must(Dial("tcp://"+s.Addr().String(), "DEALER", identity))
	t.Cleanup(func() { c.Close() })
	return c
}

// checkAlive checks that the socket answers a message on the connection.
func checkAlive(t *testing.T, text string, c *Conn) {
	t.Helper()
	_ = c.rw.SetReadDeadline(time.Now().Add(3 * time.Minute))
	testkit.OK(t, c.Send([]byte(text)))
	if m, err := c.Recv(); err != nil || string(bytes.Join(m, nil)) != strings.TrimPrefix(text, "\x01") {
		t.Fatalf("sent %q, received %q, %v", text, m, err)
	}
}

// checkDropped waits until the other side has closed the connection.
func checkDropped(t *testing.T, name string, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: not dropped", name)
	}
}

// TestMalformed sends bytes that no correct peer sends. The socket must close each of these connections and answer
// another peer as before, and all together must not allocate more than 16 MB. An unknown command with a correct form is
// ignored.
func TestMalformed(t *testing.T) {
	s := listenEcho(t, Options{})
	other := dial(t, s, "other")
	hello := string(greeting[:]) + "\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
	curve := strings.Replace(string(greeting[:]), "NULL\x00", "CURVE", 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, b := range map[string]string{
		"http":                "GET / HTTP/1.1\r\n\r\n",
		"version 2":           "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01" + string(greeting[11:]),
		"curve":               curve,
		"short property":      string(greeting[:]) + string(readyShort),
		"long property":       string(greeting[:]) + "\x04\x0c\x05READY\x01A\xff\xff\xff\xff",
		"no name":             string(greeting[:]) + "\x04\x0b\x05READY\x00\x00\x00\x00\x00",
		"short command":       string(greeting[:]) + "\x04\x01\x05",
		"empty command":       string(greeting[:]) + "\x04\x00",
		"message":             string(greeting[:]) + "\x00\x05READY",
		"type":                string(greeting[:]) + "\x04\x1b\x05READY\x0bSocket-Type\x00\x00\x00\x05XPUSH",
		"no type":             string(greeting[:]) + "\x04\x06\x05READY",
		"2^62 bytes":          hello + string(frameWithSize(0, 1<<62, "x")),
		"2^63 bytes":          hello + string(frameWithSize(0, 1<<63, "x")),
		"2^36 bytes":          hello + string(frameWithSize(0, 1<<36, "x")),
		"2^36 bytes of READY": string(greeting[:]) + string(frameWithSize(flagCommand, 1<<36, "x")),
		"limit in two frames": hello + string(frameWithSize(flagMore, 1<<19, strings.Repeat("x",
			1<<19))) + string(frameWithSize(0,
			1<<19, "")),
		"unknown flag":         hello + "\x08\x01x",
		"command with more":    hello + "\x05\x05\x04PING",
		"257 frames":           hello + strings.Repeat("\x01\x00", 257),
		"command that is none": hello + "\x04\x01\x05",
	} {
		c := dialRaw(t, s)
		if _, err := c.Write([]byte(b)); err != nil {
			continue // the connection was closed before everything was sent
			// the greeting, READY with two properties, and the echo
		}
		checkDropped(t, name, c)
		checkAlive(t, name, other)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	c := dialRaw(t, s)
	testkit.Must(io.WriteString(c, hello+"\x04\x05\x04NONE"+"\x00\x02hi"))
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
	want := "\x00\x02hi"
	answer := make([]byte, 64+2+41+len(want)) // the greeting, READY with two properties, and the echo
	if _, err := io.ReadFull(c, answer); err != nil || !strings.HasSuffix(string(answer), want) {
		t.Errorf("answer %q, %v, want %q at the end", answer, err, want)
	}
}

// TestIncompleteHandshake opens connections that send nothing, or only a part of the handshake. They must not delay
// other peers, and must be closed once the time for the handshake is over.
func TestIncompleteHandshake(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, 300 * time.Millisecond} {
		s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.handshake = limit })})
		var silent []net.Conn
		for i := range 20 {
			c := dialRaw(t, s)
			if i%2 == 1 {
				testkit.Must(c.Write(greeting[:30]))
			}
			silent = append(silent, c)
		}
		if limit == time.Hour {
			checkAlive(t, "beside silent ones", dial(t, s, ""))
			continue
		}
		for _, c := range silent {
			checkDropped(t, "silent", c)
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
	s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.peers = 3 }), Receive: func(p *Peer, m [][]byte) {
		if string(m[0]) == "trust" {
			p.Trust()
		}
		p.Send(m)
	}})
	first, second := dial(t, s, "first"), dial(t, s, "second")
	checkAlive(t, "trust", first)
	checkAlive(t, "second", second)
	silent := dialRaw(t, s)
	idle := dial(t, s, "idle")
	checkDropped(t, "in handshake", silent)
	third := dial(t, s, "third")
	checkDropped(t, "idle", idle.rw)
	checkAlive(t, "third", third)
	checkAlive(t, "second again", second)
	fourth := dial(t, s, "fourth")
	checkAlive(t, "fourth", fourth)
	checkDropped(t, "third", third.rw)
	for _, c := range []*Conn{first, second, fourth} {
		checkAlive(t, "at last", c)
	}
}

// TestSubscribers checks that subscribers receive the messages that begin with one of their topics, that a new
// subscriber cannot displace one of them, and that the number of their topics is limited.
func TestSubscribers(t *testing.T) {
	s := listenEcho(t, Options{Type: "XPUB", limits: changedLimits(func(l *limits) { l.peers = 2 }),
		Welcome: func(topic []byte) [][]byte { return [][]byte{topic} }})
	var subscribers []*Conn
	for range 2 {
		c := testkit.Must(Dial("tcp://"+s.Addr().String(), "SUB", ""))
		defer c.Close()
		for _, m := range []string{"\x01status", "\x01str", "\x00status", "\x01status", "\x01st", "\x00status", "\x00none",
			"\x02x", "\x00st", "\x01err"} {
			if m[0] == 1 {
				checkAlive(t, m, c)
			} else {
				_ = c.Send([]byte(m))
			}
		}
		_ = c.Send([]byte("\x01a"), []byte("two frames"))
		_ = c.Send([]byte{})
		checkAlive(t, "\x01more", c)
		subscribers = append(subscribers, c)
	}
	checkDropped(t, "one too many", dialRaw(t, s))
	for _, topic := range []string{"status", "stream", "a", "error"} {
		s.Publish([][]byte{[]byte(topic), []byte("x")})
	}
	for _, c := range subscribers {
		for _, want := range []string{"streamx", "errorx"} {
			if m, err := c.Recv(); err != nil || string(bytes.Join(m, nil)) != want {
				t.Errorf("%q, %v, want %s", m, err, want)
			}
		}
	}
	for range maxTopics - 3 {
		checkAlive(t, "\x01more", subscribers[0])
	}
	_ = subscribers[0].Send([]byte("\x01too many"))
	checkDropped(t, "too many topics", subscribers[0].rw)
}

// TestTrustedPeer checks that a trusted peer may send longer messages than others, up to a limit of its own.
func TestTrustedPeer(t *testing.T) {
	s := listenEcho(t, Options{limits: changedLimits(func(l *limits) { l.message, l.trusted = 1000, 100000 }),
		Receive: func(p *Peer, m [][]byte) { p.Trust(); p.Send(m) }})
	large := strings.Repeat("x", 50000)
	c := dial(t, s, "")
	if err := c.Send([]byte(large)); err == nil {
		checkDropped(t, "not trusted", c.rw)
	}
	c = dial(t, s, "")
	checkAlive(t, "x", c)
	checkAlive(t, large, c)
	if err := c.Send([]byte(large + large)); err == nil {
		checkDropped(t, "trusted", c.rw)
	}
}

// TestPeerThatDoesNotRead sends to peers that do not read. They must be dropped once too much data wait for them, or
// once a write takes too long.
func TestPeerThatDoesNotRead(t *testing.T) {
	part := make([]byte, 1<<20)
	for _, l := range []*limits{changedLimits(func(l *limits) { l.queue, l.write = 32<<20, time.Hour }),
		changedLimits(func(l *limits) { l.queue, l.write = 1<<40, 300*time.Millisecond })} {
		peers := make(chan *Peer)
		s := listenEcho(t, Options{limits: l, Receive: func(p *Peer, m [][]byte) {
			for i := 0; i < 64 && p.Send([][]byte{part}); i++ {
			}
			peers <- p
		}})
		c := dial(t, s, "")
		testkit.OK(t, c.Send([]byte("send")))
		select {
		case <-(<-peers).written:
		case <-time.After(3 * time.Minute):
			t.Errorf("%+v: still there", l)
		}
	}
}

// TestReplyAfterReconnect checks that a reply to a peer that has connected again with the same identity goes to the new
// connection, and that messages for an unknown identity are dropped.
func TestReplyAfterReconnect(t *testing.T) {
	peers := make(chan *Peer, 3)
	s := listenEcho(t, Options{Receive: func(peer *Peer, m [][]byte) { peers <- peer; peer.Send(m) }})
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
	if m, err := reconnected.Recv(); err != nil || string(m[0]) != "late" {
		t.Errorf("the reconnected peer received %q, %v, want late", m, err)
	}
	checkAlive(t, "nameless again", nameless)
}

// TestIPC checks a socket at a file: only its owner may use the file, a file left behind by a killed process is
// replaced, and one in use is not.
func TestIPC(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	stale := testkit.Must(net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}))
	stale.SetUnlinkOnClose(false)
	stale.Close()
	s := testkit.Must(Listen("ipc://"+name, Options{Type: "REP", Receive: func(p *Peer, m [][]byte) { p.Send(m) }}))
	defer s.Close(time.Time{})
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	if s, err := Listen("ipc://"+name, Options{Type: "REP"}); err == nil {
		s.Close(time.Time{})
		t.Error("listens twice")
	}
	c := testkit.Must(Dial("ipc://"+name, "REQ", ""))
	defer c.Close()
	checkAlive(t, "ipc", c)
}
