package notebook

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// attackedKernel is the environment variable with the connection file for TestKernelProcess.
const attackedKernel = "KRRLAB_TEST_CONNECTION_FILE"

// TestKernelProcess is not a test by itself: it runs the kernel that TestAttack attacks, in a separate process.
func TestKernelProcess(t *testing.T) {
	file := os.Getenv(attackedKernel)
	if file == "" {
		t.Skip("run by TestAttack")
	}
	testkit.OK(t, ServeKernel(context.Background(), file, &Options{Version: "test"}))
}

// startProcess runs a kernel in a separate process and connects a client to it.
func startProcess(t *testing.T) (c *client, pid int) {
	t.Helper()
	conn, file := newConnection(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKernelProcess$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), attackedKernel+"="+file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	testkit.OK(t, cmd.Start())
	c = &client{t: t, conn: conn, ended: make(chan error, 1)}
	go func() { c.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Logf("the kernel said: %.3000s", out.String())
		}
	})
	c.connect()
	return c, cmd.Process.Pid
}

// peakMemory returns the peak memory of a process in MB, or 0 if it is not known.
func peakMemory(pid int) (mb float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, rest, ok := strings.Cut(string(b), "VmHWM:"); ok {
		fmt.Sscan(rest, &mb)
	}
	return mb / 1024
}

// attacker is one of the clients that attack the kernel at the same time.
type attacker struct {
	conn   jupyter.Connection
	rnd    *rand.Rand
	held   []net.Conn // connections that stay open and are not used any more
	signed [][]byte   // a correctly signed message that the kernel has already received
}

const attackers, maxHeld = 8, 60 // number of attackers, and of open connections that each of them keeps

// attack is a kind of attack: the ports, the bytes that are sent, and what happens to the connection then.
type attack struct {
	name  string
	ports func(jupyter.Connection) []int
	bytes func(*attacker) []byte
	then  int // refused, drained or kept
}

// These constants say what happens to the connection of an attack.
const (
	refused = iota // the kernel closes the connection
	drained        // the attacker sends no more, and the kernel closes the connection once it has read everything
	kept           // the connection stays open for a while
)

// anyPort returns all ports of a connection.
func anyPort(c jupyter.Connection) []int {
	return []int{c.ShellPort, c.IOPubPort, c.StdinPort, c.ControlPort, c.HBPort}
}

// routerPorts returns the ports at which the kernel receives requests.
func routerPorts(c jupyter.Connection) []int { return []int{c.ShellPort, c.StdinPort, c.ControlPort} }

// iopubPort returns the port at which the kernel publishes.
func iopubPort(c jupyter.Connection) []int { return []int{c.IOPubPort} }

// heartbeatPort returns the port that repeats each message.
func heartbeatPort(c jupyter.Connection) []int { return []int{c.HBPort} }

// zmtpGreeting, zmtpReady and zmtpMessage give the bytes that clients send, written without the code under test. The
// greeting has 64 bytes: the version 3.0 of ZMTP, and the mechanism NULL.
const zmtpGreeting = "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// zmtpReady returns the command READY of a type of socket.
func zmtpReady(typ string) string {
	body := "\x05READY\x0bSocket-Type" + string(binary.BigEndian.AppendUint32(nil, uint32(len(typ)))) + typ
	return "\x04" + string(rune(len(body))) + body
}

// handshake returns a complete handshake for a type of socket.
func handshake(typ string) []byte { return []byte(zmtpGreeting + zmtpReady(typ)) }

// frameWithSize returns a frame with any declared length, whatever its content. The bit 1 of flags says that more
// frames of the message follow, and 2 that the length has 8 bytes.
func frameWithSize(flags byte, declared uint64, content []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{flags | 2}, declared), content...)
}

// zmtpMessage returns a message of these frames.
func zmtpMessage(frames [][]byte) (b []byte) {
	for i, f := range frames {
		more := byte(1)
		if i == len(frames)-1 {
			more = 0
		}
		b = append(b, frameWithSize(more, uint64(len(f)), f)...)
	}
	return b
}

// garbage returns between 1 and maxLength random bytes.
func (a *attacker) garbage(maxLength int) []byte {
	b := make([]byte, 1+a.rnd.IntN(maxLength))
	for i := range b {
		b[i] = byte(a.rnd.Uint32())
	}
	return b
}

// changed returns a copy of b with up to four bytes changed, cut to a random length.
func (a *attacker) changed(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + a.rnd.IntN(4) {
		b[a.rnd.IntN(len(b))] = byte(a.rnd.Uint32())
	}
	return b[:1+a.rnd.IntN(len(b))]
}

// request returns the frames of a request to run code that counts its own runs, signed with a key.
func (a *attacker) request(key string) [][]byte {
	frames, err := jupyter.Encode(nil, "execute_request", "attacker", nil, map[string]any{"code": "hits++"},
		[]byte(key))
	if err != nil {
		panic(err)
	}
	return frames
}

// badFrames returns a handshake and a frame whose declared length is far larger than its content.
func badFrames(declared uint64) func(*attacker) []byte {
	return func(a *attacker) []byte {
		return append(handshake("DEALER"), frameWithSize(byte(a.rnd.IntN(2)), declared, a.garbage(1000))...)
	}
}

// attacks returns all kinds of attacks.
func attacks() []attack {
	after := func(typ string, f func(*attacker) []byte) func(*attacker) []byte {
		return func(a *attacker) []byte { return append(handshake(typ), f(a)...) }
	}
	return []attack{
		{"silent connection", anyPort, func(*attacker) []byte { return nil }, kept},
		{"half a greeting", anyPort, func(a *attacker) []byte { return []byte(zmtpGreeting)[:1+a.rnd.IntN(63)] }, kept},
		{"half-open after part of a handshake", anyPort,
			func(a *attacker) []byte { return handshake("DEALER")[:1+a.rnd.IntN(90)] }, drained},
		{"random bytes", anyPort, func(a *attacker) []byte { return append(a.garbage(200), 0) }, drained},
		{"HTTP", anyPort, func(*attacker) []byte { return []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }, refused},
		{"changed handshake", anyPort, func(a *attacker) []byte { return a.changed(handshake("DEALER")) }, drained},
		{"wrong type of socket", anyPort, func(*attacker) []byte { return handshake("PUSH") }, refused},
		{"frame of 2^62 bytes", routerPorts, badFrames(1 << 62), refused},
		{"part of a large frame", routerPorts, badFrames(1 << 19), kept},
		{"random frames", routerPorts, after("DEALER", func(a *attacker) []byte { return a.garbage(500) }), drained},
		{"1000 frames", routerPorts,
			after("DEALER", func(*attacker) []byte { return bytes.Repeat([]byte{1, 1, 'x'}, 1000) }), refused},
		{"message that is none", routerPorts, after("DEALER", func(a *attacker) []byte {
			return zmtpMessage([][]byte{a.garbage(99), []byte("<IDS|MSG>"), a.garbage(99)})
		}), drained},
		{"unsigned message", routerPorts, after("DEALER", func(a *attacker) []byte { return zmtpMessage(a.request("")) }),
			drained},
		{"message with a wrong signature", routerPorts, after("DEALER",
			func(a *attacker) []byte { return zmtpMessage(a.request("guess")) }), drained},
		{"changed message", routerPorts, after("DEALER", func(a *attacker) []byte {
			m := a.request("guess")
			i := a.rnd.IntN(len(m))
			m[i] = a.changed(m[i])
			return zmtpMessage(m)
		}), drained},
		{"replayed message", routerPorts, after("DEALER", func(a *attacker) []byte { return zmtpMessage(a.signed) }),
			drained},
		{"subscriber that does not read", iopubPort, after("SUB", func(*attacker) []byte { return []byte{0, 1, 1} }), kept},
		{"subscriber of 1000 topics", iopubPort,
			after("SUB", func(*attacker) []byte { return bytes.Repeat([]byte{0, 2, 1, 'x'}, 1000) }), refused},
		{"heartbeat that does not read", heartbeatPort, after("REQ", func(a *attacker) []byte {
			return bytes.Repeat([]byte{1, 0, 0, 4, 'p', 'i', 'n', 'g'}, 1000+a.rnd.IntN(9000))
		}), kept},
	}
}

// attempt makes an attack. It returns an error if the kernel does not accept or close the connection as expected.
func (a *attacker) attempt(x attack) error {
	ports := x.ports(a.conn)
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", ports[a.rnd.IntN(len(ports))]), 30*time.Second)
	if err != nil {
		return err
	}
	_ = c.(*net.TCPConn).SetLinger(0) // otherwise closed connections would soon use up the ports
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if x.then == kept {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	}
	_, _ = c.Write(x.bytes(a)) // an error is allowed: the kernel may have closed the connection
	switch x.then {
	case drained:
		_ = c.(*net.TCPConn).CloseWrite()
		fallthrough
	case refused:
		_, err := io.Copy(io.Discard, c)
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	default:
		if a.held = append(a.held, c); len(a.held) > maxHeld {
			a.held[0].Close()
			a.held = a.held[1:]
		}
	}
	return nil
}

// attackAll makes n attacks, of all kinds, from several attackers at the same time.
func attackAll(t *testing.T, conn jupyter.Connection, signed [][]byte, n int) {
	kinds := attacks()
	var next atomic.Int64
	var wait sync.WaitGroup
	for i := range attackers {
		wait.Go(func() {
			a := &attacker{conn: conn, rnd: rand.New(rand.NewPCG(1, uint64(i))), signed: signed}
			for k := int(next.Add(1)) - 1; k < n && !t.Failed(); k = int(next.Add(1)) - 1 {
				if x := kinds[k%len(kinds)]; a.attempt(x) != nil {
					t.Errorf("%s: the kernel is not there, or does not close the connection", x.name)
				}
			}
			for _, c := range a.held {
				c.Close()
			}
		})
	}
	wait.Wait()
}

// checkAfterAttack checks that the attacks did not change the kernel, neither for its earlier client nor for a new one.
func checkAfterAttack(t *testing.T, c *client, cells int) {
	if got, _ := c.run("hits"); !strings.HasSuffix(got, "execute_result 1") {
		t.Errorf("code that was sent once: %q", got)
	}
	c.send(c.control, "kernel_info_request", map[string]any{})
	c.wait(c.answers[c.control], "kernel_info_reply")
	newcomer := &client{t: t, conn: c.conn}
	newcomer.connect()
	if got, _ := newcomer.run("n"); !strings.HasSuffix(got, fmt.Sprint("execute_result ", cells)) {
		t.Errorf("a new client: %q", got)
	}
	newcomer.send(newcomer.shell, "execute_request", map[string]any{"code": "Input(\"? \")", "allow_stdin": true})
	newcomer.wait(newcomer.answers[newcomer.stdin], "input_request")
	newcomer.send(newcomer.stdin, "input_reply", map[string]any{"value": "me"})
	if r := contentOf(newcomer.wait(newcomer.answers[newcomer.shell], "execute_reply")); r["status"] != "ok" {
		t.Errorf("a question: %v", r)
	}
}

// TestAttack attacks a running kernel from many connections without its key, while a client works. The client must get
// all its answers, the state of the kernel must be kept, no code of the attackers may run, and the memory must stay
// below 400 MB.
func TestAttack(t *testing.T) {
	n := suite.Scale(1000, 3000, 100000)
	c, pid := startProcess(t)
	c.run("hits, n := 0, 0")
	signed := (&attacker{}).request(c.conn.Key)
	testkit.OK(t, c.shell.Send(signed...))
	c.wait(c.answers[c.shell], "execute_reply")
	c.send(c.control, "kernel_info_request", map[string]any{})
	c.wait(c.answers[c.control], "kernel_info_reply")
	hb := c.dial("REQ", "", c.conn.HBPort)
	defer hb.Close()
	calm, begin := peakMemory(pid), time.Now()
	done := make(chan bool)
	go func() { defer close(done); attackAll(t, c.conn, signed, n) }()
	cells := 0
	for attacked := true; attacked; {
		cells++
		if got, r := c.run("n++\nn"); r["status"] != "ok" ||
			!strings.HasSuffix(got, fmt.Sprint("execute_result ", cells)) {
			t.Fatalf("cell %d: %q, %v", cells, got, r)
		}
		testkit.OK(t, hb.Send(nil, []byte("ping")))
		if m, err := hb.Recv(); err != nil || string(bytes.Join(m, nil)) != "ping" {
			t.Fatalf("heartbeat: %q, %v", m, err)
		}
		select {
		case attacked = <-done:
		case err := <-c.ended:
			c.ended <- err
			t.Fatalf("the kernel ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	peak := peakMemory(pid)
	t.Logf("%d attacks in %v, %d cells run meanwhile, peak %.0f MB (%.0f before)", n, time.Since(begin), cells, peak, calm)
	checkAfterAttack(t, c, cells)
	if peak > 400 {
		t.Errorf("%.0f MB", peak)
	}
}
