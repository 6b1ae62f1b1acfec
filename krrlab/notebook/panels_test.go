package notebook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// exploreCell makes a panel of one slider, whose function tells how often it ran.
const exploreCell = `type T struct { N int ` + "`flag:\"n\" default:\"10\" check:\"[1,1000]\"`" + ` }
runs := 0
Explore(func(o T) string { runs++; return fmt.Sprint("n is ", o.N) })`

// states asks for the states of all models, as a front end does that connects, and returns them by their comm.
func (c *client) states() map[string]map[string]any {
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "control", "target_name": "jupyter.widget.control"})
	c.tell("control", map[string]any{"method": "request_states"})
	for {
		m := c.wait(c.published, "comm_msg")
		var content struct {
			Data struct {
				States map[string]struct{ State map[string]any }
			}
		}
		testkit.OK(c.t, json.Unmarshal(m.Content, &content))
		if content.Data.States == nil { // of an update
			continue
		}
		out := map[string]map[string]any{}
		for id, s := range content.Data.States {
			out[id] = s.State
		}
		return out
	}
}

// tell sends a message of a comm.
func (c *client) tell(id string, data map[string]any) {
	c.send(c.shell, "comm_msg", map[string]any{"comm_id": id, "data": data})
}

// slider returns the comm and the value of the slider n.
func (c *client) slider() (id string, value any) {
	for id, s := range c.states() {
		if s["description"] == "n" {
			return id, s["value"]
		}
	}
	c.t.Fatal("no slider")
	return "", nil
}

// result waits until a panel shows a text.
func (c *client) result(text string) {
	for !strings.Contains(string(c.wait(c.published, "comm_msg").Content), text) {
	}
}

// TestPanelAttack sends a panel a thousand values, values that it does not have, messages to models that do not exist,
// states of megabytes, and messages of clients without the key. The last valid value is shown, nothing else has changed,
// no model is new, and the memory stays small.
func TestPanelAttack(t *testing.T) {
	c, pid := startProcess(t)
	got, reply := c.run(exploreCell)
	if reply["status"] != "ok" || !strings.Contains(got, "comm_open|") || !strings.Contains(got, "#krrlab-panel-1 n is 10") {
		t.Fatalf("%s, %v", got, reply)
	}
	id, value := c.slider()
	testkit.Equal(t, value, any(10.0))
	models, calm := len(c.states()), memory(pid)
	update := func(v any) map[string]any {
		return map[string]any{"method": "update", "state": map[string]any{"value": v}}
	}
	for i := range 1000 {
		c.tell(id, update(1+i%997))
		c.tell(fmt.Sprint("unknown", i), update(i))
	}
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "mine", "target_name": "jupyter.widget",
		"data": map[string]any{"state": map[string]any{"_model_name": "IntSliderModel"}}})
	for _, bad := range []any{-1, 1e9, "x", nil, []int{1}, strings.Repeat("x", 900000)} {
		c.tell(id, update(bad))
	}
	c.tell(id, update(500))
	c.result("n is 500")

	stranger := &client{t: t, conn: c.conn}
	stranger.conn.Key = "a guess"
	frames := testkit.Must(jupyter.Encode(nil, "comm_msg", "s", nil, map[string]any{"comm_id": id, "data": update(7)}, []byte("a guess")))
	dealer := stranger.dial("DEALER", "stranger", c.conn.ShellPort)
	testkit.OK(t, dealer.Send(frames...))
	dealer.Close()
	huge := stranger.dial("DEALER", "huge", c.conn.ShellPort)
	_ = huge.Send(testkit.Must(jupyter.Encode(nil, "comm_msg", "s", nil, map[string]any{"comm_id": id,
		"data": update(strings.Repeat("x", 10<<20))}, []byte(c.conn.Key)))...) // the kernel may close the connection
	huge.Close()

	if got, _ := c.run("runs > 1 && runs <= 1003"); !strings.HasSuffix(got, "execute_result true") {
		t.Errorf("%s", got)
	}
	_, value = c.slider()
	testkit.Equal(t, fmt.Sprint(value, " ", len(c.states())), fmt.Sprint(500, " ", models))
	if peak := memory(pid); peak > calm+150 {
		t.Errorf("%.0f MB, %.0f before", peak, calm)
	}
}

// TestPanelInterrupt: the kernel's interrupt ends the run of a panel while no cell runs, and controls move while a cell runs.
func TestPanelInterrupt(t *testing.T) {
	c := start(t)
	c.run(`type T struct { N int ` + "`flag:\"n\" default:\"10\" check:\"[1,1000]\"`" + ` }
Explore(func(o T) string { for o.N == 13 { }; return fmt.Sprint("n is ", o.N) })`)
	id, _ := c.slider()
	move := func(n int) {
		c.tell(id, map[string]any{"method": "update", "state": map[string]any{"value": n}})
	}
	move(13)
	c.result("running")
	c.send(c.control, "interrupt_request", map[string]any{})
	c.result("interrupted before")
	cell := c.send(c.shell, "execute_request", map[string]any{"code": "for { }"})
	c.wait(c.published, "execute_input")
	move(14)
	c.result("n is 14")
	c.send(c.control, "interrupt_request", map[string]any{})
	if got := c.until(cell); !strings.HasSuffix(got, "error Interrupted") {
		t.Errorf("the cell: %s", got)
	}
	c.run("%reset")
	testkit.Equal(t, len(c.ask("comm_info", map[string]any{})["comms"].(map[string]any)), 0)
}
