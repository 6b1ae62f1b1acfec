package widget

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
)

// SendFunc publishes a message of a comm: comm_open, comm_msg or comm_close. It must not block and must not call the
// Set.
type SendFunc = func(messageType string, content, metadata map[string]any)

// Set holds the models of a kernel. Its methods may be called from any goroutine. The zero Set is empty and ready.
type Set struct {
	mu      sync.Mutex        // guards the fields of the Set and of its models
	models  map[string]*Model // open models, by comm id
	version int               // 1 if the last front end speaks version 1 of the protocol, else 2, or 0 if unknown
}

// Targets of comms.
const (
	widgetTarget  = "jupyter.widget"
	versionTarget = "jupyter.widget.version" // version 1: the front end asks which of its versions the kernel wants
	controlTarget = "jupyter.widget.control" // version 2: the front end asks for the states of all models
)

// frontEndVersion1 is the range of versions of the module jupyter-js-widgets that speak version 1 of the protocol.
const frontEndVersion1 = "~2.1.0"

const (
	maxModels  = 4000    // open models of a Set
	maxMessage = 1 << 18 // bytes of a message of a front end; longer ones are ignored
)

// Open opens a model. send publishes all messages about it. onChange, unless nil, is called after a front end has
// changed the value, or pressed the button; it must not block. Open returns an error if there are too many models.
func (s *Set) Open(spec Spec, send SendFunc, onChange func()) (*Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.models)+3 > maxModels { // a model can have a layout and a style
		return nil, fmt.Errorf("widget: %d controls are open: restart the kernel, or make fewer panels", len(s.models))
	}
	if s.models == nil {
		s.models = map[string]*Model{}
	}
	m := &Model{set: s, id: rand.Text(), spec: spec, send: send, onChange: onChange}
	if spec.Width != "" {
		m.layout = s.openPart(Spec{Kind: layout, Width: spec.Width}, send)
	}
	if spec.hasLabel() && s.version != 1 {
		m.style = s.openPart(Spec{Kind: style}, send)
	}
	s.announce(m)
	return m, nil
}

// openPart opens the layout or the style of a model. The caller holds the lock.
func (s *Set) openPart(spec Spec, send SendFunc) *Model {
	m := &Model{set: s, id: rand.Text(), spec: spec, send: send}
	s.announce(m)
	return m
}

// announce adds a model to the set and sends it to the front ends. The caller holds the lock.
func (s *Set) announce(m *Model) {
	s.models[m.id] = m
	data, metadata := m.state(), map[string]any(nil)
	if s.version != 1 {
		data = map[string]any{"state": data, "buffer_paths": []any{}}
		metadata = map[string]any{"version": "2.1.0"}
	}
	m.send("comm_open", map[string]any{"comm_id": m.id, "target_name": widgetTarget, "data": data}, metadata)
}

// Comms returns the open comms of a target, or of all targets if it is "", in the form of a comm_info_reply.
func (s *Set) Comms(targetName string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	comms := map[string]any{}
	if targetName == "" || targetName == widgetTarget {
		for id := range s.models {
			comms[id] = map[string]any{"target_name": widgetTarget}
		}
	}
	return comms
}

// Receive handles a message of type comm_open, comm_msg or comm_close. reply publishes answers that concern no model of
// the set. Messages that are too long, about no open model or with an invalid value have no effect.
func (s *Set) Receive(messageType string, content []byte, reply SendFunc) {
	var message struct {
		ID     string `json:"comm_id"`
		Target string `json:"target_name"`
		Data   struct {
			Method  string                     `json:"method"`
			State   map[string]json.RawMessage `json:"state"`     // version 2
			Changed map[string]json.RawMessage `json:"sync_data"` // version 1
			Content struct {
				Event string `json:"event"`
			} `json:"content"`
		} `json:"data"`
	}
	if len(content) > maxMessage || json.Unmarshal(content, &message) != nil || len(message.ID) > 100 {
		return
	}
	answer := func(data map[string]any) {
		reply("comm_msg", map[string]any{"comm_id": message.ID, "data": data}, nil)
	}
	s.mu.Lock()
	m, notify := s.models[message.ID], false
	switch {
	case messageType == "comm_open" && message.Target == versionTarget:
		s.version = 1
		answer(map[string]any{"version": frontEndVersion1})
	case messageType == "comm_open" && message.Target == controlTarget:
		s.version = 2
	case messageType == "comm_open":
		reply("comm_close", map[string]any{"comm_id": message.ID, "data": map[string]any{}}, nil)
	case messageType == "comm_msg" && m == nil && message.Data.Method == "request_states":
		answer(map[string]any{"method": "update_states", "states": s.states(), "buffer_paths": []any{}})
	case m == nil:
	case messageType == "comm_close":
		m.close()
	case message.Data.Method == "request_state":
		m.sendUpdate(m.state())
	case message.Data.Method == "update", message.Data.Method == "backbone":
		changed := message.Data.State
		if changed == nil {
			changed = message.Data.Changed
		}
		if v, ok := m.spec.parseValue(changed); ok && v != m.spec.Value {
			m.spec.Value, notify = v, true
		}
	case message.Data.Method == "custom":
		notify = m.spec.Kind == Button && message.Data.Content.Event == "click"
	}
	s.mu.Unlock()
	if notify && m.onChange != nil {
		m.onChange()
	}
}

// states returns the states of all models, in the form of version 2. The caller holds the lock.
func (s *Set) states() map[string]any {
	states := map[string]any{}
	for id, m := range s.models {
		state := m.spec.state(2, m.layout, m.style)
		states[id] = map[string]any{"model_name": state["_model_name"], "model_module": state["_model_module"],
			"model_module_version": state["_model_module_version"], "state": state}
	}
	return states
}

// KeepsControls reports whether the front end keeps the controls of an output that is replaced. In version 1 of the
// protocol they are not part of the output. In version 2 they are, and are drawn anew.
func (s *Set) KeepsControls() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == 1
}
