package widget

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Kind is the kind of a model.
type Kind string

// Kinds of models. The Value of each is described here; other kinds have none.
const (
	IntSlider      Kind = "IntSlider"      // int
	FloatSlider    Kind = "FloatSlider"    // float64
	FloatLogSlider Kind = "FloatLogSlider" // float64; Min and Max are its bounds, not their logarithms
	Dropdown       Kind = "Dropdown"       // string, one of Options
	Checkbox       Kind = "Checkbox"       // bool
	Text           Kind = "Text"           // string
	HTML           Kind = "HTML"           // string
	Button         Kind = "Button"
	HBox           Kind = "HBox"
	VBox           Kind = "VBox"

	layout Kind = "Layout"
	style  Kind = "DescriptionStyle"
)

// Spec describes a model.
type Spec struct {
	Kind           Kind
	Label          string   // plain text next to the control, or on the button
	Help           string   // text that the front end shows on hovering, if it can
	Value          any      // of the type that the comment of the kind names
	Min, Max, Step float64  // of a slider; a FloatLogSlider has no Step
	Options        []string // choices of a Dropdown
	Placeholder    string   // shown in an empty Text
	Children       []*Model // of a box
	Width          string   // CSS width; "" for the front end's choice
}

// logSteps is the number of steps per decade of a FloatLogSlider.
const logSteps = 10

// logLabels returns the numbers of a FloatLogSlider as texts, for version 1 of the protocol.
func (s *Spec) logLabels() (labels []string) {
	low, high := math.Log10(s.Min), math.Log10(s.Max)
	steps := max(1, int(math.Round(logSteps*(high-low))))
	for i := range steps + 1 {
		labels = append(labels, fmt.Sprintf("%.3g", math.Pow(10, low+(high-low)*float64(i)/float64(steps))))
	}
	return slices.Compact(labels)
}

// logLabel returns the label whose number is closest to the value, on a logarithmic scale.
func (s *Spec) logLabel() string {
	value, _ := s.Value.(float64)
	distance := func(label string) (number float64) {
		_, _ = fmt.Sscan(label, &number)
		return math.Abs(math.Log(number / value))
	}
	return slices.MinFunc(s.logLabels(), func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
}

// state returns the state of the model in a version of the protocol: 1, or else 2. layoutModel and styleModel are the
// models to which the state refers, or nil.
func (s *Spec) state(version int, layoutModel, styleModel *Model) map[string]any {
	state := s.classState(version)
	maps.Copy(state, s.valueState(version))
	switch s.Kind {
	case layout:
		state["width"] = s.Width
	case style:
		state["description_width"] = "initial"
	case HBox, VBox:
	default:
		if state["description"] = s.Label; version == 1 && s.Kind != Button { // version 1 shows labels as HTML
			state["description"] = html.EscapeString(s.Label)
		}
		if s.Help != "" {
			state["tooltip"], state["description_tooltip"] = s.Help, s.Help
		}
	}
	if layoutModel != nil {
		state["layout"] = reference(layoutModel)
	}
	if styleModel != nil && version != 1 {
		state["style"] = reference(styleModel)
	}
	return state
}

// classState returns the part of the state that names the classes of the model and of its view, with their modules.
func (s *Spec) classState(version int) map[string]any {
	type module struct{ name, version string }
	name := string(s.Kind)
	controls := module{"@jupyter-widgets/controls", "^1.5.0 || ^2.0.0"}
	base := module{"@jupyter-widgets/base", "^1.2.0 || ^2.0.0"}
	if version == 1 {
		controls, base = module{"jupyter-js-widgets", "*"}, module{"jupyter-js-widgets", "*"}
		if s.Kind == FloatLogSlider {
			name = "SelectionSlider"
		}
	}
	model, view, viewName := controls, controls, name+"View"
	switch s.Kind {
	case layout:
		model, view = base, base
	case style:
		view, viewName = base, "StyleView"
	}
	return map[string]any{"_model_name": name + "Model", "_model_module": model.name,
		"_model_module_version": model.version, "_view_name": viewName, "_view_module": view.name,
		"_view_module_version": view.version}
}

// valueState returns the part of the state with the value of the model and the options of its display.
func (s *Spec) valueState(version int) map[string]any {
	switch s.Kind {
	case IntSlider:
		return map[string]any{"value": s.Value, "min": int(s.Min), "max": int(s.Max), "step": int(s.Step),
			"continuous_update": true}
	case FloatSlider:
		return map[string]any{"value": s.Value, "min": s.Min, "max": s.Max, "step": s.Step, "readout_format": ".3g",
			"continuous_update": true}
	case FloatLogSlider:
		if version == 1 {
			return map[string]any{"_options_labels": s.logLabels(), "value": s.logLabel(), "continuous_update": true}
		}
		return map[string]any{"value": s.Value, "base": 10.0, "step": 1.0 / logSteps, "min": math.Log10(s.Min),
			"max": math.Log10(s.Max), "readout_format": ".3g", "continuous_update": true}
	case Dropdown:
		if version == 1 {
			return map[string]any{"_options_labels": s.Options, "value": s.Value}
		}
		return map[string]any{"_options_labels": s.Options, "index": slices.Index(s.Options, s.Value.(string))}
	case Checkbox, HTML:
		return map[string]any{"value": s.Value}
	case Text:
		return map[string]any{"value": s.Value, "placeholder": s.Placeholder, "continuous_update": false}
	case HBox, VBox:
		children := []string{}
		for _, child := range s.Children {
			children = append(children, reference(child))
		}
		return map[string]any{"children": children}
	}
	return nil
}

// reference returns the text that refers to a model in a state.
func reference(m *Model) string { return "IPY_MODEL_" + m.id }

// maxText is the length limit of a text that a front end sets, in bytes.
const maxText = 10000

// parseValue returns the value that a changed state of a front end has, in any version of the protocol, and whether it
// is a valid value of the model.
func (s *Spec) parseValue(state map[string]json.RawMessage) (value any, ok bool) {
	number := func(key string) float64 {
		v := math.NaN()
		_ = json.Unmarshal(state[key], &v)
		return v
	}
	text := func() (v string, ok bool) { return v, json.Unmarshal(state["value"], &v) == nil }
	switch s.Kind {
	case IntSlider:
		v := math.Round(number("value"))
		return int(v), v >= s.Min && v <= s.Max
	case FloatLogSlider:
		if label, ok := text(); ok { // version 1
			v := math.NaN()
			_, _ = fmt.Sscan(label, &v)
			return v, slices.Contains(s.logLabels(), label)
		}
		v := number("value") // 10^log₁₀(Max) may exceed Max by rounding
		return min(max(v, s.Min), s.Max), v >= s.Min*(1-1e-9) && v <= s.Max*(1+1e-9)
	case FloatSlider:
		v := number("value")
		return v, v >= s.Min && v <= s.Max
	case Checkbox:
		v := false
		return v, state["value"] != nil && json.Unmarshal(state["value"], &v) == nil
	case Text:
		v, ok := text()
		return v, ok && len(v) <= maxText
	case Dropdown:
		if v, ok := text(); ok { // version 1
			return v, slices.Contains(s.Options, v)
		}
		if i := number("index"); i >= 0 && i < float64(len(s.Options)) {
			return s.Options[int(i)], true
		}
	}
	return nil, false
}

// Model is an open model of a Set.
type Model struct {
	set           *Set
	id            string
	spec          Spec
	layout, style *Model // parts of the model, or nil
	send          SendFunc
	onChange      func() // see Set.Open
}

// Value returns the current value.
func (m *Model) Value() any {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	return m.spec.Value
}

// Change changes the description of the model and sends the differences to the front ends.
func (m *Model) Change(change func(*Spec)) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	if m.set.models[m.id] == nil { // closed
		return
	}
	old := m.state()
	change(&m.spec)
	state := m.state()
	maps.DeleteFunc(state, func(key string, v any) bool { return reflect.DeepEqual(v, old[key]) })
	if len(state) > 0 {
		m.sendUpdate(state)
	}
}

// state returns the state of the model for the last front end. The caller holds the lock.
func (m *Model) state() map[string]any { return m.spec.state(m.set.version, m.layout, m.style) }

// sendUpdate sends a changed state. The caller holds the lock.
func (m *Model) sendUpdate(state map[string]any) {
	m.send("comm_msg", map[string]any{"comm_id": m.id, "data": map[string]any{"method": "update", "state": state,
		"buffer_paths": []any{}}}, nil)
}

// Display shows the model in the cell that opened it, if the protocol needs a message for this. The output of the cell
// must refer to the model, too.
func (m *Model) Display() {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	if m.set.version == 1 {
		m.send("comm_msg", map[string]any{"comm_id": m.id, "data": map[string]any{"method": "display"}}, nil)
	}
}

// View returns the MIME type and the data by which an output refers to the model.
func (m *Model) View() (mime string, data map[string]any) {
	return "application/vnd.jupyter.widget-view+json", map[string]any{"version_major": 2, "version_minor": 0,
		"model_id": m.id}
}

// Close closes the model and its children.
func (m *Model) Close() {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.close()
}

// close is Close for a caller that holds the lock. It does nothing if the model is nil or closed.
func (m *Model) close() {
	if m == nil || m.set.models[m.id] == nil {
		return
	}
	delete(m.set.models, m.id)
	for _, child := range append(m.spec.Children, m.layout, m.style) {
		child.close()
	}
	m.send("comm_close", map[string]any{"comm_id": m.id, "data": map[string]any{}}, nil)
}

// hasLabel reports whether a label is written next to the control. A label on a button is not.
func (s *Spec) hasLabel() bool {
	return s.Label != "" && s.Kind != Button && !strings.HasSuffix(string(s.Kind), "Box")
}
