package notebook

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestExecuteRequests asks the kernel for its properties, runs cells, and checks all messages and replies for them.
// Silent cells publish nothing and do not count.
func TestExecuteRequests(t *testing.T) {
	c := startKernel(t)
	info := c.request("kernel_info", map[string]any{})
	language := info["language_info"].(map[string]any)
	if info["implementation"] != "krrlab" || language["name"] != "go" ||
		language["file_extension"] != ".go" || info["banner"] == "" {
		t.Errorf("kernel_info: %v", info)
	}
	for i, cell := range []struct {
		code, wantPublished, wantStatus string
	}{
		{"import (\"fmt\"; \"os\")", "", "ok"},
		{"x := 3\nx", "|execute_result 3", "ok"},
		{"fmt.Println(\"ü\"); fmt.Fprint(os.Stderr, \"e\"); Display(x)", "|stdout ü\n|stderr e|display_data 3", "ok"},
		{"DisplayID(\"a\", 1); Update(\"a\", 2); Clear()",
			"|display_data#a 1|update_display_data#a 2|clear_output true", "ok"},
		{"nosuch", "|error CompileError", "error"},
		{"panic(\"p\")", "|error Panic", "error"},
		{"x", "|execute_result 3", "ok"},
	} {
		got, reply := c.run(cell.code)
		want := fmt.Sprintf("busy|in %d%s", i+1, cell.wantPublished)
		if strings.Replace(got, "stream ", "", -1) != want {
			t.Errorf("%s: %q, want %q", cell.code, got, want)
		}
		if reply["status"] != cell.wantStatus || reply["execution_count"] != float64(i+1) {
			t.Errorf("%s: %v, want status %s of cell %d", cell.code, reply, cell.wantStatus, i+1)
		}
	}
	got, reply := c.run("y := x + 1\ny", map[string]any{"silent": true,
		"user_expressions": map[string]string{"a": "y * 2", "b": "nosuch"}})
	expressions := reply["user_expressions"].(map[string]any)
	valid, invalid := expressions["a"].(map[string]any), expressions["b"].(map[string]any)
	if got != "busy" || valid["data"].(map[string]any)["text/plain"] != "8" || invalid["status"] != "error" {
		t.Errorf("silent: %q, %v", got, reply)
	}
	if _, reply := c.run("1", map[string]any{"store_history": false}); reply["execution_count"] != float64(7) {
		t.Errorf("store_history false: %v", reply)
	}
}

// TestHeartbeat checks that the heartbeat socket returns the bytes that it receives while a cell runs.
func TestHeartbeat(t *testing.T) {
	c := startKernel(t)
	c.send(c.shell, "execute_request", map[string]any{"code": "for { }"})
	c.wait(c.published, "execute_input")
	heartbeat := c.dial("REQ", "", c.conn.HBPort)
	defer heartbeat.Close()
	for i := range 5 {
		want := fmt.Sprintf("ping %d", i)
		testkit.OK(t, heartbeat.Send(nil, []byte(want)))
		frames, err := heartbeat.Recv()
		if err != nil || len(frames) != 2 || len(frames[0]) != 0 || string(frames[1]) != want {
			t.Fatalf("heartbeat %q, %v, want %q", frames, err, want)
		}
	}
	c.send(c.control, "interrupt_request", map[string]any{})
	c.wait(c.answers[c.control], "interrupt_reply")
	if reply := contentOf(c.wait(c.answers[c.shell], "execute_reply")); reply["ename"] != "Interrupted" {
		t.Errorf("%v, want it interrupted", reply)
	}
}

// TestInterrupts interrupts twenty cells in a row, by message and by signal in turn, as soon as each cell is announced.
// The kernel must run the next cell normally.
func TestInterrupts(t *testing.T) {
	c := startKernel(t)
	for i := range 20 {
		c.send(c.shell, "execute_request", map[string]any{"code": "for { }"})
		c.wait(c.published, "execute_input")
		if i%2 == 0 {
			c.interrupt <- os.Interrupt
		} else {
			c.send(c.control, "interrupt_request", map[string]any{})
		}
		if reply := contentOf(c.wait(c.answers[c.shell], "execute_reply")); reply["ename"] != "Interrupted" {
			t.Fatalf("interrupt %d: %v", i, reply)
		}
		if got, reply := c.run("1 + 1"); !strings.HasSuffix(got, "execute_result 2") {
			t.Fatalf("after interrupt %d: %q, %v", i, got, reply)
		}
	}
}

// TestInputAfterReconnect checks a cell that asks for input after the stdin connection of its front end was lost. A new
// connection with the same identity must get the question, and another client must not.
func TestInputAfterReconnect(t *testing.T) {
	c := startKernel(t)
	c.stdin.Close()
	c.send(c.shell, "execute_request", map[string]any{"code": "Input(\"? \")", "allow_stdin": true})
	c.wait(c.published, "execute_input")
	other := c.dial("DEALER", "other", c.conn.StdinPort)
	defer other.Close()
	otherMessages := c.receiveAll(other)
	c.stdin = c.dial("DEALER", fmt.Sprintf("client-%p", c), c.conn.StdinPort)
	c.wait(c.receiveAll(c.stdin), "input_request")
	c.send(c.stdin, "input_reply", map[string]any{"value": "me"})
	if reply := contentOf(c.wait(c.answers[c.shell], "execute_reply")); reply["status"] != "ok" {
		t.Errorf("the reply to a cell that reads input is %v", reply)
	}
	if len(otherMessages) > 0 {
		t.Error("another client was asked")
	}
}

// TestProgressLine checks that the progress of a long solve is shown in one output, which is updated.
func TestProgressLine(t *testing.T) {
	c := startKernel(t)
	c.run("import (\"time\"; \"github.com/krrlab/lab/krrlab\"; \"github.com/krrlab/lab/krrlab/stage\")\np := Progress()")
	got, _ := c.run("for i := 0; i < 20; i++ { p(krrlab.Event{Stage: stage.Solve, Iteration: i + 1, Residual: " +
		"0.5}); time.Sleep(100 * time.Millisecond) }")
	if strings.Count(got, "|display_data#") != 1 || strings.Count(got, "|update_display_data#") < 2 ||
		!strings.Contains(got, "solve: iteration") || !strings.HasSuffix(got, "seconds") {
		t.Errorf("want one display and its updates, got %q", got)
	}
}
