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
	published                    chan *jupyter.Message                // messages of iopub
	answers                      map[*zmtp.Conn]chan *jupyter.Message // received messages, by the other connections
	ended                        chan error                           // delivers the result of ServeKernel
	interrupt                    chan os.Signal                       // a signal on this channel interrupts the kernel
}

// freePorts returns n ports on which nothing listens.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// newConnection writes a connection file with free ports, and returns the connection and the path of the file.
func newConnection(t testing.TB) (jupyter.Connection, string) {
	ports := freePorts(t, 5)
	connection := jupyter.Connection{Transport: "tcp", IP: "127.0.0.1", SignatureScheme: "hmac-sha256", Key: "a key",
		ShellPort: ports[0], IOPubPort: ports[1], StdinPort: ports[2], ControlPort: ports[3], HBPort: ports[4]}
	content := testkit.Must(json.Marshal(connection))
	name := filepath.Join(t.TempDir(), "connection.json")
	testkit.OK(t, os.WriteFile(name, content, 0o600))
	return connection, name
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
		for _, conn := range []*zmtp.Conn{c.shell, c.control, c.stdin, c.iopub} {
			conn.Close()
		}
	})
	return c
}

// connect opens the connections and waits until the kernel has accepted the subscription to its publications.
func (c *client) connect() {
	id := fmt.Sprintf("client-%p", c)
	for _, socket := range []struct {
		conn           **zmtp.Conn
		socketType, id string
		port           int
	}{{&c.shell, "DEALER", id, c.conn.ShellPort}, {&c.control, "DEALER", id, c.conn.ControlPort}, {&c.stdin, "DEALER",
		id, c.conn.StdinPort}, {&c.iopub, "SUB", "", c.conn.IOPubPort}} {
		*socket.conn = c.dial(socket.socketType, socket.id, socket.port)
	}
	testkit.OK(c.t, c.iopub.Send([]byte{1})) // subscribes to all topics
	c.answers = map[*zmtp.Conn]chan *jupyter.Message{}
	for _, conn := range []*zmtp.Conn{c.shell, c.control, c.stdin} {
		c.answers[conn] = c.receiveAll(conn)
	}
	c.published = c.receiveAll(c.iopub)
	c.wait(c.published, "iopub_welcome")
}

// dial connects to a port of the kernel, which may not listen yet.
func (c *client) dial(socketType, id string, port int) *zmtp.Conn {
	c.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := zmtp.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port), socketType, id)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

// receiveAll returns a channel with the messages that a connection receives.
func (c *client) receiveAll(conn *zmtp.Conn) chan *jupyter.Message {
	messages := make(chan *jupyter.Message, 100000)
	go func() {
		for {
			frames, err := conn.Recv()
			if err != nil {
				return
			}
			if message, err := jupyter.Decode(frames, []byte(c.conn.Key)); err == nil {
				messages <- message
			}
		}
	}()
	return messages
}

// wait returns the next message of a type, or ends the test after three minutes.
func (c *client) wait(from chan *jupyter.Message, messageType string) *jupyter.Message {
	c.t.Helper()
	limit := time.After(3 * time.Minute)
	for {
		select {
		case message := <-from:
			if message.Header.Type == messageType {
				return message
			}
		case <-limit:
			c.t.Fatalf("no %s came", messageType)
		}
	}
}

// send sends a request and returns its message id.
func (c *client) send(conn *zmtp.Conn, messageType string, content any) string {
	c.t.Helper()
	frames := testkit.Must(jupyter.Encode(nil, messageType, "session", nil, content, []byte(c.conn.Key)))
	testkit.OK(c.t, conn.Send(frames...))
	var header jupyter.Header
	testkit.OK(c.t, json.Unmarshal(frames[2], &header))
	return header.ID
}

// request sends a request on the shell channel and returns the content of its reply.
func (c *client) request(requestName string, content any) map[string]any {
	c.t.Helper()
	c.send(c.shell, requestName+"_request", content)
	return contentOf(c.wait(c.answers[c.shell], requestName+"_reply"))
}

// contentOf returns the content of a message.
func contentOf(message *jupyter.Message) map[string]any {
	var content map[string]any
	_ = json.Unmarshal(message.Content, &content)
	return content
}

// run runs a cell. It returns the messages published for the cell, in order and on one line, and the content of the
// reply. more has additional fields of the request.
func (c *client) run(code string, more ...map[string]any) (string, map[string]any) {
	c.t.Helper()
	content := map[string]any{"code": code, "allow_stdin": true}
	for _, fields := range more {
		maps.Copy(content, fields)
	}
	id := c.send(c.shell, "execute_request", content)
	reply := contentOf(c.wait(c.answers[c.shell], "execute_reply"))
	return c.publishedFor(id), reply
}

// publishedFor collects the messages published for a request until the kernel is idle.
func (c *client) publishedFor(id string) string {
	c.t.Helper()
	var texts []string
	limit := time.After(3 * time.Minute)
	for {
		select {
		case message := <-c.published:
			var parent jupyter.Header
			_ = json.Unmarshal(message.Parent, &parent)
			if parent.ID != id {
				continue
			}
			content := contentOf(message)
			switch message.Header.Type {
			case "status":
				if content["execution_state"] == "idle" {
					return strings.Join(texts, "|")
				}
				texts = append(texts, fmt.Sprint(content["execution_state"]))
			case "stream":
				texts = append(texts, fmt.Sprint(content["name"], " ", content["text"]))
			case "execute_result", "display_data", "update_display_data":
				text := content["data"].(map[string]any)["text/plain"]
				id := ""
				if transient, ok := content["transient"].(map[string]any); ok && transient["display_id"] != nil {
					id = fmt.Sprint("#", transient["display_id"])
				}
				texts = append(texts, fmt.Sprint(message.Header.Type, id, " ", text))
			case "error":
				texts = append(texts, fmt.Sprint("error ", content["ename"]))
			case "clear_output":
				texts = append(texts, fmt.Sprint("clear_output ", content["wait"]))
			case "execute_input":
				texts = append(texts, fmt.Sprint("in ", content["execution_count"]))
			default:
				texts = append(texts, message.Header.Type)
			}
		case <-limit:
			c.t.Fatalf("the kernel is not idle; so far: %q", texts)
		}
	}
}
