package jupyter

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/widget"
	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// scriptedLanguage is a Language whose cells are single words: fail fails, none has no value, name has the name of the
// cell as its value, ask asks a question, slide opens a comm, and show shows each kind of output. Any other code has a
// value that repeats it.
type scriptedLanguage struct {
	info   content
	models *widget.Set
}

func (l scriptedLanguage) Comms(target string) map[string]any { return l.models.Comms(target) }

func (l scriptedLanguage) ReceiveComm(messageType string, content []byte, publish func(string, map[string]any,
	map[string]any)) {
	l.models.Receive(messageType, content, publish)
}

func (scriptedLanguage) Interrupt() {}

func (l scriptedLanguage) Info() content { return maps.Clone(l.info) }

func (l scriptedLanguage) Run(name, code string, cell *Cell) Outcome {
	text := func(value string) Outcome {
		return Outcome{Value: &Data{Data: content{"text/plain": value}, Metadata: content{}}}
	}
	switch code {
	case "fail":
		return Outcome{Failure: &Failure{Name: "Bad", Value: "why", Traceback: []string{"where"}}}
	case "none":
		return Outcome{}
	case "name":
		return text(name)
	case "ask":
		line, err := cell.Input("who? ", true)
		return text(fmt.Sprint(line, err))
	case "slide":
		model, err := l.models.Open(widget.Spec{Kind: widget.IntSlider, Value: 3, Max: 9, Step: 1}, cell.Comm, nil)
		return text(fmt.Sprint(model != nil, err))
	case "show":
		cell.Stream("stdout", "printed")
		cell.Display(Data{content{"a": 1}, content{}, content{"display_id": "7"}})
		cell.Update(Data{content{}, content{"c": 2}, content{}})
		cell.Clear(true)
		return Outcome{}
	}
	return text("value of " + code)
}

func (scriptedLanguage) Complete(code string, cursor int) ([]string, int, int) {
	return []string{code[:cursor]}, cursor - 1, len(code)
}

func (scriptedLanguage) Inspect(code string, cursor int, more bool) (string, bool) {
	return fmt.Sprint(cursor, more), code != "unknown"
}

func (scriptedLanguage) IsComplete(code string) (string, string) { return code, "  " }

// frontEnd is a front end: its connections to the server, and its session.
type frontEnd struct {
	t                            *testing.T
	server                       *Server
	shell, control, stdin, iopub *zmtp.Conn
	session                      string
	served                       chan struct{} // closed when Serve returns
}

// connect starts a kernel with the given key and connects a front end to it.
func connect(t *testing.T, key string) *frontEnd {
	t.Helper()
	language := scriptedLanguage{content{"implementation": "impl", "banner": "welcome"}, new(widget.Set)}
	server := testkit.Must(Listen(Connection{IP: "127.0.0.1", Key: key}, language))
	f := &frontEnd{t: t, server: server, session: "of the front end", served: make(chan struct{})}
	t.Cleanup(server.Close)
	dial := func(socket *zmtp.Socket, socketType string) *zmtp.Conn {
		conn := testkit.Must(zmtp.Dial("tcp://"+socket.Addr().String(), socketType, "me"))
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	f.iopub = dial(server.iopub, "SUB")
	testkit.OK(t, f.iopub.Send([]byte{1})) // subscribes to all topics
	if m, _ := f.recv(f.iopub); m.Header.Type != "iopub_welcome" {
		t.Fatalf("%+v", m)
	}
	go func() {
		defer close(f.served)
		_ = server.Serve(t.Context())
	}()
	<-server.serving // by now the status "starting" was published, before the tests read their own messages
	f.shell, f.control = dial(server.shell, "DEALER"), dial(server.control, "DEALER")
	f.stdin = dial(server.stdin, "DEALER")
	return f
}

// recv returns the next message on a connection, and its content.
func (f *frontEnd) recv(conn *zmtp.Conn) (*Message, map[string]any) {
	f.t.Helper()
	m, err := Decode(testkit.Must(conn.Recv()), f.server.key)
	if err != nil || m.Header.Session != f.server.session {
		f.t.Fatalf("%+v, %v", m, err)
	}
	var content map[string]any
	testkit.OK(f.t, json.Unmarshal(m.Content, &content))
	return m, content
}

// encode returns the frames of a request, and its header.
func (f *frontEnd) encode(messageType string, content any) ([][]byte, string) {
	frames := testkit.Must(Encode(nil, messageType, f.session, nil, content, f.server.key))
	return frames, string(frames[2])
}

// publishedFor sends a request and returns the types and contents of the messages published for it, until the kernel is
// idle.
func (f *frontEnd) publishedFor(messageType string, content any) (published []string) {
	f.t.Helper()
	frames, header := f.encode(messageType, content)
	testkit.OK(f.t, f.shell.Send(frames...))
	for {
		m, _ := f.recv(f.iopub)
		if string(m.Parent) != header {
			continue
		}
		if string(m.Identities[0]) != m.Header.Type {
			f.t.Errorf("topic %s of %s", m.Identities[0], m.Header.Type)
		}
		published = append(published, m.Header.Type+" "+string(m.Content))
		if published[len(published)-1] == idle {
			return published
		}
	}
}

// answerTo is like publishedFor, and also returns the content of the reply, which must have the type of the request.
func (f *frontEnd) answerTo(messageType string, content any) (reply map[string]any, published []string) {
	f.t.Helper()
	published = f.publishedFor(messageType, content)
	m, reply := f.recv(f.shell)
	if want := strings.TrimSuffix(messageType, "_request") + "_reply"; m.Header.Type != want {
		f.t.Errorf("%s is answered by %s", messageType, m.Header.Type)
	}
	return reply, published
}

// checkJSON checks that a value equals that of the JSON text want.
func (f *frontEnd) checkJSON(description string, got any, want string) {
	f.t.Helper()
	var wantValue any
	testkit.OK(f.t, json.Unmarshal([]byte(want), &wantValue))
	gotJSON, _ := json.Marshal(got)
	var gotValue any
	_ = json.Unmarshal(gotJSON, &gotValue)
	if !reflect.DeepEqual(gotValue, wantValue) {
		f.t.Errorf("%s: %s, want %s", description, gotJSON, want)
	}
}

// busy and idle are the first and the last message published for a request.
const busy, idle = `status {"execution_state":"busy"}`, `status {"execution_state":"idle"}`

// content is the content of a message.
type content = map[string]any
