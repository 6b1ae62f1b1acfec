package widget

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// frontEnd is a front end that keeps the messages that a Set publishes.
type frontEnd struct {
	t    *testing.T
	set  Set
	sent []string // type, content and version of each message
}

// send keeps a message of the Set.
func (f *frontEnd) send(messageType string, content, metadata map[string]any) {
	encoded := testkit.Must(json.Marshal(content))
	f.sent = append(f.sent, fmt.Sprint(messageType, " ", string(encoded), " ", metadata["version"]))
}

// deliver passes a message about a comm to the Set, and returns the messages that the Set then publishes.
func (f *frontEnd) deliver(messageType, id, target, data string) []string {
	f.sent = nil
	f.set.Receive(messageType, fmt.Appendf(nil, `{"comm_id":%q,"target_name":%q,"data":%s}`, id, target, data), f.send)
	return f.sent
}

// TestProtocolVersions checks a slider and a dropdown list in both versions of the widget protocol: their initial
// state, changes by the front end, and requests for their state. A front end that opens the target
// jupyter.widget.version selects version 1.
func TestProtocolVersions(t *testing.T) {
	for version, want := range map[int][]string{
		1: {`"_model_module":"jupyter-js-widgets"`, `"_model_name":"SelectionSliderModel"`, `"value":"0.1"`,
			`"_options_labels":["0.01","0.0126"`, `"value":"b"`,
			`\u0026lt;x\u0026gt;`},
		2: {`\u003cx\u003e`, `"_model_module":"@jupyter-widgets/controls"`,
			`"_model_name":"FloatLogSliderModel"`, `"base":10`, `"min":-2`, `"value":0.1`, `"index":1`, "2.1.0"},
	} {
		f := &frontEnd{t: t}
		if version == 1 {
			got := f.deliver("comm_open", "v", "jupyter.widget.version", "{}")
			if len(got) != 1 || !strings.Contains(got[0], `comm_msg {"comm_id":"v","data":{"version":"~2.1.0"}}`) {
				t.Errorf("a front end that asks for the version is answered %q", got)
			}
			f.deliver("comm_msg", "v", "", `{"validated":true}`)
		}
		f.sent = nil
		number := testkit.Must(f.set.Open(Spec{Kind: FloatLogSlider, Label: "<x>", Value: 0.1, Min: 0.01, Max: 1}, f.send, nil))
		choice := testkit.Must(f.set.Open(Spec{Kind: Dropdown, Value: "b", Options: []string{"a", "b"}}, f.send, nil))
		messages := strings.Join(f.sent, "\n")
		for _, part := range want {
			if !strings.Contains(messages, part) {
				t.Errorf("version %d: no %s in %s", version, part, messages)
			}
		}
		f.deliver("comm_msg", number.id, "", map[int]string{1: `{"method":"backbone","sync_data":{"value":"0.0126"}}`,
			2: `{"method":"update","state":{"value":0.0126}}`}[version])
		f.deliver("comm_msg", choice.id, "", map[int]string{1: `{"method":"backbone","sync_data":{"value":"a"}}`,
			2: `{"method":"update","state":{"index":0}}`}[version])
		testkit.Equal(t, fmt.Sprintf("%v %v", number.Value(), choice.Value()), "0.0126 a")
		if got := f.deliver("comm_msg", number.id, "", `{"method":"request_state"}`); len(got) != 1 ||
			!strings.Contains(got[0], `"method":"update"`) || !strings.Contains(got[0], "0.0126") {
			t.Errorf("the state that is asked for: %q", got)
		}
		f.sent = nil
		choice.Display()
		testkit.Equal(t, len(f.sent), 2-version)
		testkit.Equal(t, f.set.KeepsControls(), version == 1)
	}
}

// TestRequestStates checks that a front end of version 2 gets all states with one request, and that Close removes a
// model and its style.
func TestRequestStates(t *testing.T) {
	f := &frontEnd{t: t}
	control := testkit.Must(f.set.Open(Spec{Kind: Text, Label: "x", Value: "abc"}, f.send, nil))
	f.deliver("comm_open", "c", "jupyter.widget.control", "{}")
	got := f.deliver("comm_msg", "c", "", `{"method":"request_states"}`)
	if len(got) != 1 || !strings.Contains(got[0], `"update_states"`) || !strings.Contains(got[0], control.id) ||
		!strings.Contains(got[0], `"model_module":"@jupyter-widgets/controls"`) {
		t.Errorf("the states are %q", got)
	}
	testkit.Equal(t, len(f.set.Comms("")), 2) // the model and its style
	testkit.Equal(t, len(f.set.Comms("another")), 0)
	control.Close()
	control.Change(func(s *Spec) { s.Value = "closed" })
	testkit.Equal(t, len(f.set.Comms("jupyter.widget")), 0)
}

// TestInvalidValues checks that invalid values of a control are not stored, and that neither they nor an unchanged
// value count as a change. A button accepts only clicks.
func TestInvalidValues(t *testing.T) {
	f := &frontEnd{t: t}
	changes := 0
	for _, test := range []struct {
		spec     Spec
		accepted []string
		value    any
		rejected []string
	}{
		{Spec{Kind: IntSlider, Value: 1, Min: 0, Max: 9}, []string{`7`}, 7, []string{`10`, `-1`, `"7"`, `null`, `1e300`, `[]`}},
		{Spec{Kind: FloatSlider, Value: 1.0, Min: 0, Max: 9}, []string{`2.5`}, 2.5, []string{`9.01`, `"NaN"`, `{}`}},
		{Spec{Kind: FloatLogSlider, Value: 1.0, Min: 0.1, Max: 10}, []string{`10.000000001`}, 10.0,
			[]string{`11`, `0`, `-1`, `"2.00"`}},
		{Spec{Kind: Checkbox, Value: false}, []string{`true`}, true, []string{`1`, `"x"`}},
		{Spec{Kind: Text, Value: ""}, []string{`"a"`}, "a", []string{`1`, `"` + strings.Repeat("x", maxText+1) + `"`}},
		{Spec{Kind: Dropdown, Value: "a", Options: []string{"a", "b"}}, []string{`"b"`}, "b", []string{`"c"`, `1`}},
		{Spec{Kind: HTML, Value: "<p>"}, nil, "<p>", []string{`"<script>"`}},
	} {
		control := testkit.Must(f.set.Open(test.spec, f.send, func() { changes++ }))
		sendValue := func(v string) {
			f.deliver("comm_msg", control.id, "",
				`{"method":"update","state":{"value":`+v+`,"min":-1e9,"_options_labels":["c"]}}`)
		}
		changes = 0
		for _, v := range test.accepted {
			sendValue(v)
			sendValue(v) // the same value is no change
		}
		for _, v := range test.rejected {
			sendValue(v)
		}
		testkit.Equal(t, control.Value(), test.value, test.spec.Kind)
		testkit.Equal(t, changes, len(test.accepted), test.spec.Kind)
	}
	clicks := 0
	button := testkit.Must(f.set.Open(Spec{Kind: Button, Label: "Stop"}, f.send, func() { clicks++ }))
	f.deliver("comm_msg", button.id, "", `{"method":"custom","content":{"event":"click"}}`)
	f.deliver("comm_msg", button.id, "", `{"method":"custom","content":{"event":"hover"}}`)
	f.deliver("comm_msg", button.id, "", `{"method":"unknown"}`)
	testkit.Equal(t, clicks, 1)
}

// TestFrontEndLimits checks that front ends cannot open models, that messages that are too long or not JSON are
// dropped, and that the number of models is limited.
func TestFrontEndLimits(t *testing.T) {
	f := &frontEnd{t: t}
	for _, target := range []string{"jupyter.widget", "another", ""} {
		got := f.deliver("comm_open", "7", target, `{"state":{"_model_name":"IntSliderModel"}}`)
		testkit.Equal(t, fmt.Sprint(got), `[comm_close {"comm_id":"7","data":{}} <nil>]`)
	}
	control := testkit.Must(f.set.Open(Spec{Kind: Text, Value: "kept"}, f.send, nil))
	longText := strings.Repeat("x", maxMessage)
	f.deliver("comm_msg", control.id, "", `{"method":"update","state":{"value":"a","other":"`+longText+`"}}`)
	f.deliver("comm_msg", control.id, "", `{"method":"update","state":{"value":`)
	f.deliver("comm_msg", "unknown", "", `{"method":"update","state":{"value":"a"}}`)
	testkit.Equal(t, control.Value(), "kept")
	var err error
	opened := 0
	for ; err == nil && opened < maxModels+1; opened++ {
		_, err = f.set.Open(Spec{Kind: Checkbox, Value: true}, func(string, map[string]any, map[string]any) {}, nil)
	}
	if err == nil || len(f.set.Comms("")) > maxModels {
		t.Errorf("%d models are open, %v", opened, err)
	}
	f.deliver("comm_close", control.id, "", "{}")
	if f.set.Comms("")[control.id] != nil {
		t.Error("a comm that the front end closes stays open")
	}
}

// TestLogLabels checks that the labels of a logarithmic slider in version 1 go from the smallest to the largest value,
// in steps of a tenth of a decade.
func TestLogLabels(t *testing.T) {
	spec := Spec{Kind: FloatLogSlider, Value: 3.1, Min: 0.001, Max: 1000}
	labels := spec.logLabels()
	testkit.Equal(t, fmt.Sprint(len(labels), labels[0], labels[60]), fmt.Sprint(61, "0.001", "1e+03"))
	testkit.Equal(t, spec.logLabel(), "3.16")
	for i, label := range labels {
		v := 0.0
		_, _ = fmt.Sscan(label, &v)
		if want := math.Pow(10, -3+0.1*float64(i)); math.Abs(v/want-1) > 5e-3 {
			t.Errorf("label %d is %s, want %g", i, label, want)
		}
	}
}
