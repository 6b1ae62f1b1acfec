package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// TestRequests sends every kind of request and checks the replies. Comms of front ends are closed, and unknown messages
// are errors.
func TestRequests(t *testing.T) {
	f := connect(t, "k")
	for _, request := range []struct {
		messageType string
		content     any
		want        string
	}{
		{"kernel_info_request", content{},
			`{"status":"ok","protocol_version":"5.4","implementation":"impl","banner":"welcome","debugger":false}`},
		{"complete_request", content{"code": "äöü.xy", "cursor_pos": 4},
			`{"status":"ok","matches":["äöü."],"cursor_start":3,"cursor_end":6,"metadata":{}}`},
		{"complete_request", content{"code": "äö", "cursor_pos": 9},
			`{"status":"ok","matches":["äö"],"cursor_start":2,"cursor_end":2,"metadata":{}}`},
		{"inspect_request", content{"code": "äb", "cursor_pos": 1},
			`{"status":"ok","found":true,"data":{"text/plain":"2 false"},"metadata":{}}`},
		{"inspect_request", content{"code": "äb", "cursor_pos": 0, "detail_level": 1},
			`{"status":"ok","found":true,"data":{"text/plain":"0 true"},"metadata":{}}`},
		{"inspect_request", content{"code": "unknown"}, `{"status":"ok","found":false,"data":{},"metadata":{}}`},
		{"is_complete_request", content{"code": "incomplete"}, `{"status":"incomplete","indent":"  "}`},
		{"is_complete_request", content{"code": "complete"}, `{"status":"complete"}`},
		{"comm_info_request", content{}, `{"status":"ok","comms":{}}`},
		{"odd_request", content{},
			`{"status":"error","ename":"ProtocolError","evalue":"a message of type odd_request is not known","traceback":[]}`},
	} {
		reply, published := f.answerTo(request.messageType, request.content)
		f.checkJSON(request.messageType, reply, request.want)
		f.checkJSON(request.messageType, published,
			`["status {\"execution_state\":\"busy\"}","status {\"execution_state\":\"idle\"}"]`)
	}
	if reply, _ := f.answerTo("execute_request", []int{1}); reply["status"] != "error" ||
		reply["ename"] != "ProtocolError" {
		t.Errorf("content that is no object: %v, want a ProtocolError", reply)
	}
	if published := f.publishedFor("comm_open", content{"comm_id": "7"}); len(published) != 3 ||
		published[1] != `comm_close {"comm_id":"7","data":{}}` {
		t.Errorf("a comm of the front end: %q, want it closed", published)
	}
	f.answerTo("execute_request", content{"code": "slide"}) // opens a comm
	reply, _ := f.answerTo("comm_info_request", content{"target_name": "jupyter.widget"})
	if comms := reply["comms"].(map[string]any); len(comms) != 1 {
		t.Errorf("comms after one was opened: %v", comms)
	}
	if reply, _ := f.answerTo("comm_info_request",
		content{"target_name": "another"}); len(reply["comms"].(map[string]any)) != 0 {
		t.Errorf("comms of another target: %v", reply)
	}
	for _, messageType := range []string{"comm_msg", "comm_close"} {
		if published := f.publishedFor(messageType, content{}); len(published) != 2 {
			t.Errorf("%s: %q, want busy and idle", messageType, published)
		}
	}
}

// TestExecuteRequests runs cells and checks the published messages, the replies, the execution counts and the history.
func TestExecuteRequests(t *testing.T) {
	f := connect(t, "k")
	reply, published := f.answerTo("execute_request",
		content{"code": "x", "user_expressions": map[string]string{"e": "y"}})
	f.checkJSON("a value", reply,
		`{"status":"ok","execution_count":1,"payload":[],"user_expressions":{"e":{"status":"ok","data":{"text/plain":"value of y"},"metadata":{}}}}`)
	f.checkJSON("a value", published, fmt.Sprintf(`[%q,%q,%q,%q]`, busy,
		`execute_input {"code":"x","execution_count":1}`,
		`execute_result {"data":{"text/plain":"value of x"},"execution_count":1,"metadata":{}}`, idle))
	reply, published = f.answerTo("execute_request", content{"code": "x", "silent": true})
	f.checkJSON("silence", published, fmt.Sprintf(`[%q,%q]`, busy, idle))
	f.checkJSON("silence", reply["execution_count"], `1`)
	if reply, published = f.answerTo("execute_request", content{"code": "fail", "silent": true}); len(published) != 2 ||
		reply["status"] != "error" {
		t.Errorf("a silent failure: %v, published %q", reply, published)
	}
	f.answerTo("execute_request", content{"code": "none", "store_history": false})
	_, published = f.answerTo("execute_request", content{"code": "show", "silent": true})
	f.checkJSON("silence", published, fmt.Sprintf(`[%q,%q]`, busy, idle))
	reply, _ = f.answerTo("execute_request", content{"code": "y", "store_history": false})
	f.checkJSON("not kept", reply["execution_count"], `1`)
	_, published = f.answerTo("execute_request", content{"code": "show"})
	f.checkJSON("shown", published, fmt.Sprintf(`[%q,%q,%q,%q,%q,%q,%q]`, busy,
		`execute_input {"code":"show","execution_count":2}`,
		`stream {"name":"stdout","text":"printed"}`,
		`display_data {"data":{"a":1},"metadata":{},"transient":{"display_id":"7"}}`,
		`update_display_data {"data":{},"metadata":{"c":2},"transient":{}}`, `clear_output {"wait":true}`, idle))
	reply, published = f.answerTo("execute_request", content{"code": "fail", "store_history": true})
	f.checkJSON("a failure", reply,
		`{"status":"error","execution_count":3,"payload":[],"user_expressions":{},"ename":"Bad","evalue":"why","traceback":["where"]}`)
	f.checkJSON("a failure", published[2], `"error {\"ename\":\"Bad\",\"evalue\":\"why\",\"traceback\":[\"where\"]}"`)
	reply, published = f.answerTo("execute_request", content{"code": "name",
		"user_expressions": map[string]string{"n": "name", "f": "fail", "o": "none"}})
	f.checkJSON("names", published[2],
		`"execute_result {\"data\":{\"text/plain\":\"Cell 4\"},\"execution_count\":4,\"metadata\":{}}"`)
	f.checkJSON("names", reply["user_expressions"],
		`{"n":{"status":"ok","data":{"text/plain":"expression n"},"metadata":{}},"f":{"status":"error","ename":"Bad","evalue":"why","traceback":["where"]},"o":{"status":"ok","data":{},"metadata":{}}}`)
	f.answerTo("execute_request", content{"code": "x"})
	for historyRequest, want := range map[string]string{
		`{"hist_access_type":"tail","n":2}`:                               `[[1,4,"name"],[1,5,"x"]]`,
		`{"hist_access_type":"tail","n":99}`:                              `[[1,1,"x"],[1,2,"show"],[1,3,"fail"],[1,4,"name"],[1,5,"x"]]`,
		`{"hist_access_type":"tail","n":1,"output":true}`:                 `[[1,5,["x","value of x"]]]`,
		`{"hist_access_type":"range","start":2,"stop":4,"n":1}`:           `[[1,2,"show"],[1,3,"fail"]]`,
		`{"hist_access_type":"range","start":4,"session":1}`:              `[[1,4,"name"],[1,5,"x"]]`,
		`{"hist_access_type":"range","start":4,"session":2}`:              `[]`,
		`{"hist_access_type":"search","pattern":"?a*"}`:                   `[[1,3,"fail"],[1,4,"name"]]`,
		`{"hist_access_type":"search","pattern":"x"}`:                     `[[1,1,"x"],[1,5,"x"]]`,
		`{"hist_access_type":"search","pattern":"x","unique":true}`:       `[[1,5,"x"]]`,
		`{"hist_access_type":"search","pattern":"*","unique":true,"n":2}`: `[[1,3,"fail"],[1,4,"name"]]`,
		`{"hist_access_type":"search","pattern":"x","output":true,"n":1}`: `[[1,5,["x","value of x"]]]`,
		`{"hist_access_type":"search","pattern":"a"}`:                     `[]`,
	} {
		reply, _ := f.answerTo("history_request", json.RawMessage(historyRequest))
		f.checkJSON(historyRequest, reply["history"], want)
	}
}

// TestAbortAfterFailure checks that after a failed cell the queued cells are not run, unless stop_on_error is false,
// and that other requests are still answered.
func TestAbortAfterFailure(t *testing.T) {
	for _, stopOnError := range []bool{true, false} {
		f := connect(t, "k")
		f.server.mu.Lock() // keeps the queue locked until all requests are in it
		for _, request := range []struct {
			messageType string
			body        content
		}{{"execute_request", content{"code": "fail", "stop_on_error": stopOnError}}, {"execute_request",
			content{"code": "x"}}, {"comm_info_request", content{}}, {"execute_request", content{"code": "y"}}} {
			frames, _ := f.encode(request.messageType, request.body)
			message := testkit.Must(Decode(frames, f.server.key))
			f.server.queue = append(f.server.queue, message)
		}
		f.server.mu.Unlock()
		reply, _ := f.answerTo("history_request", content{}) // this request wakes the server and is answered last
		want := `[[1,1,"fail"]]`
		if !stopOnError {
			want = `[[1,1,"fail"],[1,2,"x"],[1,3,"y"]]`
		}
		f.checkJSON(fmt.Sprint("cells run, stop ", stopOnError), reply["history"], want)
	}
}

// TestReplayedMessages checks that a message is accepted only once, with a correct signature, and not with the session
// of the server itself. Without a key, all messages are accepted.
func TestReplayedMessages(t *testing.T) {
	f := connect(t, "k")
	frames, _ := f.encode("comm_info_request", content{})
	forged := append([][]byte{}, frames...)
	forged[1] = []byte(strings.Repeat("0", 64))
	f.session = f.server.session
	fromServer, _ := f.encode("comm_info_request", content{})
	f.session = "of the front end"
	for _, m := range [][][]byte{frames, frames, forged, fromServer, frames} {
		testkit.OK(t, f.shell.Send(m...))
	}
	frames, _ = f.encode("kernel_info_request", content{}) // its reply must be the second one
	_ = f.shell.Send(frames...)
	for _, want := range []string{"comm_info_reply", "kernel_info_reply"} {
		if m, _ := f.recv(f.shell); m.Header.Type != want {
			t.Errorf("%s, want %s", m.Header.Type, want)
		}
	}
	withoutKey := connect(t, "")
	for range 3 {
		if reply, _ := withoutKey.answerTo("comm_info_request", content{}); reply["status"] != "ok" {
			t.Errorf("without a key: %v", reply)
		}
	}
}

// TestInputRequests checks that a cell can ask its front end for input if the front end allows it, that replies of
// another type are ignored, and that an interrupt ends the question.
func TestInputRequests(t *testing.T) {
	f := connect(t, "k")
	_, published := f.answerTo("execute_request", content{"code": "ask"})
	if !strings.Contains(published[2], ErrNoInput.Error()) {
		t.Errorf("input that is not allowed: %q", published)
	}
	for _, interrupt := range []bool{false, true} {
		frames, header := f.encode("execute_request", content{"code": "ask", "allow_stdin": true})
		testkit.OK(t, f.shell.Send(frames...))
		m, body := f.recv(f.stdin)
		if m.Header.Type != "input_request" || body["prompt"] != "who? " || body["password"] != true ||
			string(m.Parent) != header {
			t.Errorf("the request for input is %+v, %v", m, body)
		}
		want, channel := "me<nil>", f.stdin
		answer, _ := f.encode("input_reply", content{"value": "me"})
		if interrupt {
			want, channel = "interrupted", f.control
			answer, _ = f.encode("interrupt_request", content{})
		} else {
			other, _ := f.encode("odd_reply", content{"value": "not me"})
			_ = f.stdin.Send(other...)
		}
		testkit.OK(t, channel.Send(answer...))
		for {
			m, body := f.recv(f.iopub)
			if m.Header.Type != "execute_result" || string(m.Parent) != header {
				continue
			}
			if data, _ := body["data"].(map[string]any); data["text/plain"] != want {
				t.Errorf("%v, want %s", data, want)
			}
			break
		}
		f.recv(f.shell)
	}
	if m, _ := f.recv(f.control); m.Header.Type != "interrupt_reply" {
		t.Errorf("%+v, want interrupt_reply", m.Header)
	}
}

// TestShutdown checks that the kernel confirms a shutdown on the control channel and to all subscribers, and then ends.
func TestShutdown(t *testing.T) {
	f := connect(t, "k")
	frames, header := f.encode("shutdown_request", content{"restart": true})
	testkit.OK(t, f.control.Send(frames...))
	m, body := f.recv(f.control)
	f.checkJSON(m.Header.Type, body, `{"status":"ok","restart":true}`)
	for {
		if m, body = f.recv(f.iopub); string(m.Parent) == header && m.Header.Type == "shutdown_reply" {
			f.checkJSON("to all", body, `{"status":"ok","restart":true}`)
			break
		}
	}
	awaitClosed(t, "the kernel", f.served)
}

// TestUnencodableReply checks that a reply that JSON cannot represent becomes an error reply, and that a reply to a
// message without a sender is dropped.
func TestUnencodableReply(t *testing.T) {
	f := connect(t, "k")
	f.server.reply(&Message{}, "x_reply", content{}) // must not panic
	language := f.server.lang.(scriptedLanguage)
	language.info["x"] = math.Inf(1) // the map is the kernel's own
	reply, _ := f.answerTo("kernel_info_request", content{})
	if reply["status"] != "error" || reply["ename"] != "ReplyError" ||
		!strings.Contains(fmt.Sprint(reply["evalue"]), "unsupported value") {
		t.Errorf("a number that JSON lacks: %v, want a ReplyError", reply)
	}
	var unsupported *json.UnsupportedValueError
	if _, err := Encode(nil, "t", "s", nil, math.NaN(), nil); !errors.As(err, &unsupported) {
		t.Errorf("%v, want a json.UnsupportedValueError", err)
	}
}

// TestConnectionFileOwner checks that ReadConnection records the owner of the connection file.
func TestConnectionFileOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.json")
	testkit.OK(t, os.WriteFile(name, []byte(`{"shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5}`),
		0o600))
	_ = os.Chown(name, 12345, -1) // only root can change the owner; otherwise it stays that of the test
	info := testkit.Must(os.Stat(name))
	if connection, err := ReadConnection(name); err != nil || connection.ownerUID != zmtp.OwnerOf(info) {
		t.Errorf("owner %d, want %d; %v", connection.ownerUID, zmtp.OwnerOf(info), err)
	}
}

// TestListenClosesSockets checks that Listen closes all its sockets if one of the ports is in use, whichever it is, and
// that Close closes all. Another process may take one of the ports in between, so each case is tried up to three times.
func TestListenClosesSockets(t *testing.T) {
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	for i := range 5 {
		for try := 1; ; try++ {
			err := listenAgain(i, listener.Addr().(*net.TCPAddr).Port)
			if err == nil {
				break
			}
			if try == 3 {
				t.Fatal(err)
			}
		}
	}
}

// listenAgain starts and closes a kernel, and starts another one on the same ports, except that socket i has a port
// that is in use. It returns an error if the second start succeeds or leaves a socket open.
func listenAgain(i, taken int) error {
	server, err := Listen(Connection{IP: "127.0.0.1"}, scriptedLanguage{})
	if err != nil {
		return err
	}
	var ports []int
	for _, socket := range []*zmtp.Socket{server.shell, server.control, server.stdin, server.heartbeat, server.iopub} {
		ports = append(ports, socket.Addr().(*net.TCPAddr).Port)
	}
	server.Close()
	ports[i] = taken
	connection := Connection{IP: "127.0.0.1", ShellPort: ports[0], ControlPort: ports[1], StdinPort: ports[2],
		HBPort: ports[3], IOPubPort: ports[4]}
	if server, err := Listen(connection, scriptedLanguage{}); err == nil {
		server.Close()
		return fmt.Errorf("socket %d listens at port %d, which is taken", i, taken)
	}
	for j, port := range ports {
		if j == i {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("socket %d is open still: %w", j, err)
		}
		listener.Close()
	}
	return nil
}
