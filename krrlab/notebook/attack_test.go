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

// connectionFileEnv is the environment variable with the connection file for TestKernelProcess.
const connectionFileEnv = "KRRLAB_TEST_CONNECTION_FILE"

// TestKernelProcess is not a test by itself: it runs the kernel that TestAttack attacks, in a separate process.
func TestKernelProcess(t *testing.T) {
	file := os.Getenv(connectionFileEnv)
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
	cmd.Env = append(os.Environ(), connectionFileEnv+"="+file)
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
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Sscan(rest, &mb)
	}
	return mb / 1024
}

// attacker is one of the clients that attack the kernel at the same time.
type attacker struct {
	conn          jupyter.Connection
	random        *rand.Rand
	openConns     []net.Conn // connections that stay open and are not used any more
	signedRequest [][]byte   // a correctly signed message that the kernel has already received
}

const (
	attackerCount = 8  // attackers that work at the same time
	maxOpenConns  = 60 // open connections that an attacker keeps
)

// attack is a kind of attack: the ports, the bytes that are sent, and what happens to the connection afterwards.
type attack struct {
	name          string
	ports         func(jupyter.Connection) []int
	bytes         func(*attacker) []byte
	connectionEnd int // closedByKernel, halfClosed or keptOpen
}

// These constants say what happens to the connection of an attack.
const (
	closedByKernel = iota // the kernel closes the connection
	halfClosed            // the attacker sends no more, and the kernel closes the connection after reading everything
	keptOpen              // the connection stays open for a while
)

// allPorts returns all ports of a connection.
func allPorts(c jupyter.Connection) []int {
	return []int{c.ShellPort, c.IOPubPort, c.StdinPort, c.ControlPort, c.HBPort}
}

// routerPorts returns the ports at which the kernel receives requests.
func routerPorts(c jupyter.Connection) []int { return []int{c.ShellPort, c.StdinPort, c.ControlPort} }

// iopubPorts returns the only port at which the kernel publishes.
func iopubPorts(c jupyter.Connection) []int { return []int{c.IOPubPort} }

// heartbeatPorts returns the only port that repeats each message.
func heartbeatPorts(c jupyter.Connection) []int { return []int{c.HBPort} }

// zmtpGreeting is the greeting of a client of ZMTP (rfc.zeromq.org/spec/23). It has 64 bytes, with version 3.0 and the
// mechanism NULL. zmtpReady and zmtpMessage return the bytes that follow. They do not use the code under test.
const zmtpGreeting = "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// zmtpReady returns the command READY of a type of socket.
func zmtpReady(socketType string) string {
	size := binary.BigEndian.AppendUint32(nil, uint32(len(socketType)))
	body := "\x05READY\x0bSocket-Type" + string(size) + socketType
	return "\x04" + string(rune(len(body))) + body
}

// handshake returns a complete handshake for a type of socket.
func handshake(socketType string) []byte { return []byte(zmtpGreeting + zmtpReady(socketType)) }

// frameWithSize returns a frame that declares any length for its content. In flags, the bit 1 says that more frames of
// the message follow, and the bit 2 that the length has 8 bytes.
func frameWithSize(flags byte, declared uint64, content []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{flags | 2}, declared), content...)
}

// zmtpMessage returns the encoded message with the given frames.
func zmtpMessage(frames [][]byte) (message []byte) {
	for i, frame := range frames {
		more := byte(1)
		if i == len(frames)-1 {
			more = 0
		}
		message = append(message, frameWithSize(more, uint64(len(frame)), frame)...)
	}
	return message
}

// garbage returns between 1 and maxLength random bytes.
func (a *attacker) garbage(maxLength int) []byte {
	b := make([]byte, 1+a.random.IntN(maxLength))
	for i := range b {
		b[i] = byte(a.random.Uint32())
	}
	return b
}

// changed returns a copy of b with up to four bytes changed, cut to a random length.
func (a *attacker) changed(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + a.random.IntN(4) {
		b[a.random.IntN(len(b))] = byte(a.random.Uint32())
	}
	return b[:1+a.random.IntN(len(b))]
}

// request returns the frames of a request, signed with a key, to run code that counts its own runs.
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
		return append(handshake("DEALER"), frameWithSize(byte(a.random.IntN(2)), declared, a.garbage(1000))...)
	}
}

// attacks returns all kinds of attacks.
func attacks() []attack {
	afterHandshake := func(socketType string, payload func(*attacker) []byte) func(*attacker) []byte {
		return func(a *attacker) []byte { return append(handshake(socketType), payload(a)...) }
	}
	return []attack{
		{"silent connection", allPorts, func(*attacker) []byte { return nil }, keptOpen},
		{"half a greeting", allPorts,
			func(a *attacker) []byte { return []byte(zmtpGreeting)[:1+a.random.IntN(63)] }, keptOpen},
		{"half-open after part of a handshake", allPorts,
			func(a *attacker) []byte { return handshake("DEALER")[:1+a.random.IntN(90)] }, halfClosed},
		{"random bytes", allPorts, func(a *attacker) []byte { return append(a.garbage(200), 0) }, halfClosed},
		{"HTTP", allPorts,
			func(*attacker) []byte { return []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }, closedByKernel},
		{"changed handshake", allPorts, func(a *attacker) []byte { return a.changed(handshake("DEALER")) }, halfClosed},
		{"wrong type of socket", allPorts, func(*attacker) []byte { return handshake("PUSH") }, closedByKernel},
		{"frame of 2^62 bytes", routerPorts, badFrames(1 << 62), closedByKernel},
		{"part of a large frame", routerPorts, badFrames(1 << 19), keptOpen},
		{"random frames", routerPorts,
			afterHandshake("DEALER", func(a *attacker) []byte { return a.garbage(500) }), halfClosed},
		{"1000 frames", routerPorts,
			afterHandshake("DEALER", func(*attacker) []byte { return bytes.Repeat([]byte{1, 1, 'x'}, 1000) }),
			closedByKernel},
		{"message that is none", routerPorts, afterHandshake("DEALER", func(a *attacker) []byte {
			return zmtpMessage([][]byte{a.garbage(99), []byte("<IDS|MSG>"), a.garbage(99)})
		}), halfClosed},
		{"unsigned message", routerPorts,
			afterHandshake("DEALER", func(a *attacker) []byte { return zmtpMessage(a.request("")) }), halfClosed},
		{"message with a wrong signature", routerPorts, afterHandshake("DEALER",
			func(a *attacker) []byte { return zmtpMessage(a.request("guess")) }), halfClosed},
		{"changed message", routerPorts, afterHandshake("DEALER", func(a *attacker) []byte {
			frames := a.request("guess")
			i := a.random.IntN(len(frames))
			frames[i] = a.changed(frames[i])
			return zmtpMessage(frames)
		}), halfClosed},
		{"replayed message", routerPorts,
			afterHandshake("DEALER", func(a *attacker) []byte { return zmtpMessage(a.signedRequest) }), halfClosed},
		{"subscriber that does not read", iopubPorts,
			afterHandshake("SUB", func(*attacker) []byte { return []byte{0, 1, 1} }), keptOpen},
		{"subscriber of 1000 topics", iopubPorts,
			afterHandshake("SUB", func(*attacker) []byte { return bytes.Repeat([]byte{0, 2, 1, 'x'}, 1000) }),
			closedByKernel},
		{"heartbeat that does not read", heartbeatPorts, afterHandshake("REQ", func(a *attacker) []byte {
			return bytes.Repeat([]byte{1, 0, 0, 4, 'p', 'i', 'n', 'g'}, 1000+a.random.IntN(9000))
		}), keptOpen},
	}
}

// attempt makes an attack. It returns an error if the kernel does not accept or close the connection as expected.
func (a *attacker) attempt(kind attack) error {
	ports := kind.ports(a.conn)
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", ports[a.random.IntN(len(ports))]), 30*time.Second)
	if err != nil {
		return err
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // otherwise closed connections would soon use up the ports
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if kind.connectionEnd == keptOpen {
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	}
	_, _ = conn.Write(kind.bytes(a)) // an error is allowed: the kernel may have closed the connection
	switch kind.connectionEnd {
	case halfClosed:
		_ = conn.(*net.TCPConn).CloseWrite()
		fallthrough
	case closedByKernel:
		_, err := io.Copy(io.Discard, conn)
		conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	default:
		if a.openConns = append(a.openConns, conn); len(a.openConns) > maxOpenConns {
			a.openConns[0].Close()
			a.openConns = a.openConns[1:]
		}
	}
	return nil
}

// attackAll makes the given number of attacks, of all kinds, from several attackers at the same time.
func attackAll(t *testing.T, conn jupyter.Connection, signedRequest [][]byte, total int) {
	kinds := attacks()
	var attempted atomic.Int64
	var wait sync.WaitGroup
	for i := range attackerCount {
		wait.Go(func() {
			a := &attacker{conn: conn, random: rand.New(rand.NewPCG(1, uint64(i))), signedRequest: signedRequest}
			for n := int(attempted.Add(1)) - 1; n < total && !t.Failed(); n = int(attempted.Add(1)) - 1 {
				if kind := kinds[n%len(kinds)]; a.attempt(kind) != nil {
					t.Errorf("%s: the kernel is not there, or does not close the connection", kind.name)
				}
			}
			for _, c := range a.openConns {
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
	if reply := contentOf(newcomer.wait(newcomer.answers[newcomer.shell], "execute_reply")); reply["status"] != "ok" {
		t.Errorf("a question: %v", reply)
	}
}

// TestAttack attacks a running kernel from many connections without its key, while a client works. The client must get
// all its answers, the state of the kernel must be kept, no code of the attackers may run, and the memory must stay
// below 400 MB.
func TestAttack(t *testing.T) {
	attackTotal := suite.Scale(1000, 3000, 100000)
	c, pid := startProcess(t)
	c.run("hits, n := 0, 0")
	signedRequest := (&attacker{}).request(c.conn.Key)
	testkit.OK(t, c.shell.Send(signedRequest...))
	c.wait(c.answers[c.shell], "execute_reply")
	c.send(c.control, "kernel_info_request", map[string]any{})
	c.wait(c.answers[c.control], "kernel_info_reply")
	heartbeat := c.dial("REQ", "", c.conn.HBPort)
	defer heartbeat.Close()
	memoryBefore, start := peakMemory(pid), time.Now()
	attacksDone := make(chan bool)
	go func() { defer close(attacksDone); attackAll(t, c.conn, signedRequest, attackTotal) }()
	cellCount := 0
	for isAttacked := true; isAttacked; {
		cellCount++
		if got, r := c.run("n++\nn"); r["status"] != "ok" ||
			!strings.HasSuffix(got, fmt.Sprint("execute_result ", cellCount)) {
			t.Fatalf("cell %d: %q, %v", cellCount, got, r)
		}
		testkit.OK(t, heartbeat.Send(nil, []byte("ping")))
		if frames, err := heartbeat.Recv(); err != nil || string(bytes.Join(frames, nil)) != "ping" {
			t.Fatalf("heartbeat: %q, %v", frames, err)
		}
		select {
		case isAttacked = <-attacksDone:
		case err := <-c.ended:
			c.ended <- err
			t.Fatalf("the kernel ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	peak := peakMemory(pid)
	t.Logf("%d attacks in %v, %d cells run meanwhile, peak %.0f MB (%.0f before)", attackTotal,
		time.Since(start), cellCount, peak, memoryBefore)
	checkAfterAttack(t, c, cellCount)
	if peak > 400 {
		t.Errorf("%.0f MB", peak)
	}
}
