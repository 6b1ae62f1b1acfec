package notebook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// exploreCell makes a panel with one slider, whose function counts its runs.
const exploreCell = `type T struct { N int ` + "`flag:\"n\" default:\"10\" check:\"[1,1000]\"`" + ` }
runs := 0
Explore(func(o T) string { runs++; return fmt.Sprint("n is ", o.N) })`

// widgetStates requests the states of all widget models, as a front end does when it connects, and returns them by comm
// id.
func (c *client) widgetStates() map[string]map[string]any {
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "control", "target_name": "jupyter.widget.control"})
	c.sendComm("control", map[string]any{"method": "request_states"})
	for {
		message := c.wait(c.published, "comm_msg")
		var content struct {
			Data struct {
				States map[string]struct{ State map[string]any }
			}
		}
		testkit.OK(c.t, json.Unmarshal(message.Content, &content))
		if content.Data.States == nil { // this message is an update of one model
			continue
		}
		states := map[string]map[string]any{}
		for id, model := range content.Data.States {
			states[id] = model.State
		}
		return states
	}
}

// sendComm sends a message about a comm.
func (c *client) sendComm(id string, data map[string]any) {
	c.send(c.shell, "comm_msg", map[string]any{"comm_id": id, "data": data})
}

// slider returns the comm id and the value of the slider n.
func (c *client) slider() (id string, value any) {
	for id, state := range c.widgetStates() {
		if state["description"] == "n" {
			return id, state["value"]
		}
	}
	c.t.Fatal("no slider")
	return "", nil
}

// awaitResult waits until a panel shows the text.
func (c *client) awaitResult(text string) {
	for !strings.Contains(string(c.wait(c.published, "comm_msg").Content), text) {
	}
}

// TestPanelAttack sends a panel a thousand values, invalid values, messages to models that do not exist, very long
// states, and messages of clients without the key. The last valid value must be shown, no other state may change, no
// model may be added, and the memory may grow by at most 150 MB.
func TestPanelAttack(t *testing.T) {
	c, pid := startProcess(t)
	got, reply := c.run(exploreCell)
	if reply["status"] != "ok" || !strings.Contains(got, "comm_open|") || !strings.Contains(got, "#krrlab-panel-1 n is 10") {
		t.Fatalf("the panel was not opened: %s, %v", got, reply)
	}
	id, value := c.slider()
	testkit.Equal(t, value, any(10.0))
	modelCount, memoryBefore := len(c.widgetStates()), peakMemory(pid)
	update := func(newValue any) map[string]any {
		return map[string]any{"method": "update", "state": map[string]any{"value": newValue}}
	}
	for i := range 1000 {
		c.sendComm(id, update(1+i%997))
		c.sendComm(fmt.Sprint("unknown", i), update(i))
	}
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "mine", "target_name": "jupyter.widget",
		"data": map[string]any{"state": map[string]any{"_model_name": "IntSliderModel"}}})
	for _, invalid := range []any{-1, 1e9, "x", nil, []int{1}, strings.Repeat("x", 900000)} {
		c.sendComm(id, update(invalid))
	}
	c.sendComm(id, update(500))
	c.awaitResult("n is 500")

	// A client without the key sends an update, and a client with the key sends a state of 10 MiB.
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
		t.Errorf("the number of runs is not from 2 to 1003: %s", got)
	}
	_, value = c.slider()
	testkit.Equal(t, fmt.Sprint(value, " ", len(c.widgetStates())), fmt.Sprint(500, " ", modelCount))
	if peak := peakMemory(pid); peak > memoryBefore+150 {
		t.Errorf("%.0f MB, %.0f before", peak, memoryBefore)
	}
}

// TestPanelInterrupt checks that an interrupt of the kernel ends the run of a panel while no cell runs, and that
// controls work while a cell runs.
func TestPanelInterrupt(t *testing.T) {
	c := startKernel(t)
	c.run(`type T struct { N int ` + "`flag:\"n\" default:\"10\" check:\"[1,1000]\"`" + ` }
Explore(func(o T) string { for o.N == 13 { }; return fmt.Sprint("n is ", o.N) })`)
	id, _ := c.slider()
	moveSlider := func(n int) {
		c.sendComm(id, map[string]any{"method": "update", "state": map[string]any{"value": n}})
	}
	moveSlider(13)
	c.awaitResult("running")
	c.send(c.control, "interrupt_request", map[string]any{})
	c.awaitResult("interrupted before")
	cell := c.send(c.shell, "execute_request", map[string]any{"code": "for { }"})
	c.wait(c.published, "execute_input")
	moveSlider(14)
	c.awaitResult("n is 14")
	c.send(c.control, "interrupt_request", map[string]any{})
	if got := c.publishedFor(cell); !strings.HasSuffix(got, "error Interrupted") {
		t.Errorf("the cell: %s", got)
	}
	c.run("%reset")
	testkit.Equal(t, len(c.request("comm_info", map[string]any{})["comms"].(map[string]any)), 0)
}
