package notebook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// client is a front end for tests.
type client struct {
	t                            testing.TB
	conn                         jupyter.Connection
	shell, control, stdin, iopub *zmtp.Conn
	published                    chan *jupyter.Message // messages of iopub
	answers                      map[*zmtp.Conn]chan *jupyter.Message
	ended                        chan error     // receives the result of the kernel
	interrupt                    chan os.Signal // interrupts the kernel
}

// freePorts returns n ports on which nothing listens.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var out []int
	for range n {
		l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

// newConnection writes a connection file with free ports, and returns the connection and the path of the file.
func newConnection(t testing.TB) (jupyter.Connection, string) {
	p := freePorts(t, 5)
	c := jupyter.Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256", Key: "a key",
		ShellPort: p[0], IOPubPort: p[1], StdinPort: p[2], ControlPort: p[3], HBPort: p[4]}
	js := testkit.Must(json.Marshal(c))
	name := filepath.Join(t.TempDir(), "connection.json")
	testkit.OK(t, os.WriteFile(name, js, 0o600))
	return c, name
}

// startKernel runs a kernel in this process and connects a client to it.
func startKernel(t testing.TB) *client {
	conn, file := newConnection(t)
	c := &client{t: t, conn: conn, ended: make(chan error, 1), interrupt: make(chan os.Signal, 1)}
	ctx, stop := context.WithCancel(context.Background())
	go func() { c.ended <- ServeKernel(ctx, file, &Options{Version: "test", Interrupt: c.interrupt}) }()
	c.connect()
	t.Cleanup(func() {
		stop()
		<-c.ended
		for _, s := range []*zmtp.Conn{c.shell, c.control, c.stdin, c.iopub} {
			s.Close()
		}
	})
	return c
}

// connect opens the sockets and waits until the kernel publishes.
func (c *client) connect() {
	id := fmt.Sprintf("client-%p", c)
	for _, x := range []struct {
		conn    **zmtp.Conn
		typ, id string
		port    int
	}{{&c.shell, "DEALER", id, c.conn.ShellPort}, {&c.control, "DEALER", id, c.conn.ControlPort}, {&c.stdin, "DEALER",
		id, c.conn.StdinPort}, {&c.iopub, "SUB", "", c.conn.IOPubPort}} {
		*x.conn = c.dial(x.typ, x.id, x.port)
	}
	testkit.OK(c.t, c.iopub.Send([]byte{1})) // subscribes to all topics
	c.answers = map[*zmtp.Conn]chan *jupyter.Message{}
	for _, s := range []*zmtp.Conn{c.shell, c.control, c.stdin} {
		c.answers[s] = c.receiveAll(s)
	}
	c.published = c.receiveAll(c.iopub)
	c.wait(c.published, "iopub_welcome")
}

// dial connects to a port of the kernel, which may not listen yet.
func (c *client) dial(typ, id string, port int) *zmtp.Conn {
	c.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := zmtp.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port), typ, id)
		if err == nil {
			return conn
		}
		if time.Now().After(end) {
			c.t.Fatal(err)
		}
	}
}

// receiveAll returns a channel with the messages that a socket receives.
func (c *client) receiveAll(s *zmtp.Conn) chan *jupyter.Message {
	out := make(chan *jupyter.Message, 100000)
	go func() {
		for {
			frames, err := s.Recv()
			if err != nil {
				return
			}
			if m, err := jupyter.Decode(frames, []byte(c.conn.Key)); err == nil {
				out <- m
			}
		}
	}()
	return out
}

// wait returns the next message of a type, or ends the test after three minutes.
func (c *client) wait(from chan *jupyter.Message, typ string) *jupyter.Message {
	c.t.Helper()
	limit := time.After(3 * time.Minute)
	for {
		select {
		case m := <-from:
			if m.Header.Type == typ {
				return m
			}
		case <-limit:
			c.t.Fatalf("no %s came", typ)
		}
	}
}

// send sends a request and returns its message id.
func (c *client) send(s *zmtp.Conn, typ string, content any) string {
	c.t.Helper()
	frames := testkit.Must(jupyter.Encode(nil, typ, "session", nil, content, []byte(c.conn.Key)))
	testkit.OK(c.t, s.Send(frames...))
	var h jupyter.Header
	testkit.OK(c.t, json.Unmarshal(frames[2], &h))
	return h.ID
}

// request sends a request on the shell channel and returns the content of its reply.
func (c *client) request(typ string, content any) map[string]any {
	c.t.Helper()
	c.send(c.shell, typ+"_request", content)
	return contentOf(c.wait(c.answers[c.shell], typ+"_reply"))
}

// contentOf returns the content of a message.
func contentOf(m *jupyter.Message) map[string]any {
	var out map[string]any
	_ = json.Unmarshal(m.Content, &out)
	return out
}

// run runs a cell. It returns the messages published for the cell, in order and on one line, and the content of the
// reply. more has additional fields of the request.
func (c *client) run(code string, more ...map[string]any) (string, map[string]any) {
	c.t.Helper()
	content := map[string]any{"code": code, "allow_stdin": true}
	for _, m := range more {
		maps.Copy(content, m)
	}
	id := c.send(c.shell, "execute_request", content)
	reply := contentOf(c.wait(c.answers[c.shell], "execute_reply"))
	return c.publishedFor(id), reply
}

// publishedFor collects the messages published for a request until the kernel is idle.
func (c *client) publishedFor(id string) string {
	c.t.Helper()
	var out []string
	limit := time.After(3 * time.Minute)
	for {
		select {
		case m := <-c.published:
			var parent jupyter.Header
			_ = json.Unmarshal(m.Parent, &parent)
			if parent.ID != id {
				continue
			}
			f := contentOf(m)
			switch m.Header.Type {
			case "status":
				if f["execution_state"] == "idle" {
					return strings.Join(out, "|")
				}
				out = append(out, fmt.Sprint(f["execution_state"]))
			case "stream":
				out = append(out, fmt.Sprint(f["name"], " ", f["text"]))
			case "execute_result", "display_data", "update_display_data":
				text := f["data"].(map[string]any)["text/plain"]
				id := ""
				if tr, ok := f["transient"].(map[string]any); ok && tr["display_id"] != nil {
					id = fmt.Sprint("#", tr["display_id"])
				}
				out = append(out, fmt.Sprint(m.Header.Type, id, " ", text))
			case "error":
				out = append(out, fmt.Sprint("error ", f["ename"]))
			case "clear_output":
				out = append(out, fmt.Sprint("clear_output ", f["wait"]))
			case "execute_input":
				out = append(out, fmt.Sprint("in ", f["execution_count"]))
			default:
				out = append(out, m.Header.Type)
			}
		case <-limit:
			c.t.Fatalf("the kernel is not idle; so far: %q", out)
		}
	}
}
