package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// Cell is a running cell. A Language calls its methods, which send the output of the cell to the front ends, such as
// JupyterLab, and ask their user for input.
type Cell struct {
	server     *Server
	parent     *Message      // request to run the cell
	silent     bool          // publish nothing
	allowStdin bool          // the front end accepts input requests
	interrupts chan struct{} // see Interrupts
}

// Interrupts returns a channel that delivers the interrupts of the cell. The first one requests that the cell ends, and
// the second one forces it.
func (c *Cell) Interrupts() <-chan struct{} { return c.interrupts }

// publish sends a message about the cell to all subscribers, unless the cell is silent.
func (c *Cell) publish(messageType string, content any) {
	if !c.silent {
		c.server.publish(messageType, c.parent.RawHeader, content)
	}
}

// Stream sends text that was printed to the stream name: stdout or stderr.
func (c *Cell) Stream(name, text string) {
	c.publish("stream", map[string]any{"name": name, "text": text})
}

// Display shows a value.
func (c *Cell) Display(d Data) { c.show("display_data", d) }

// Update replaces the value with the same display_id.
func (c *Cell) Update(d Data) { c.show("update_display_data", d) }

// show publishes a value in a message of the given type.
func (c *Cell) show(messageType string, d Data) {
	content := mimeBundle(d)
	content["transient"] = d.Transient
	c.publish(messageType, content)
}

// mimeBundle returns the representations of a value, in the form used in messages.
func mimeBundle(d Data) map[string]any {
	return map[string]any{"data": d.Data, "metadata": d.Metadata}
}

// Comm sends a message of a comm, which is a channel between the kernel and a widget in a front end. It may be called
// after the cell has ended.
func (c *Cell) Comm(messageType string, content, metadata map[string]any) {
	c.publish(messageType, contentWithMetadata{content, metadata})
}

// Clear removes the output of the cell. If wait is true, the output is removed when the next output arrives.
func (c *Cell) Clear(wait bool) { c.publish("clear_output", map[string]any{"wait": wait}) }

// inputRequest is an input_request that was not answered yet.
type inputRequest struct {
	answer   chan string // receives the answer; closed by an interrupt
	identity string      // identity of the front end that is asked
	frames   [][]byte    // the encoded request
}

// ErrNoInput is the error of Cell.Input if the front end cannot be asked.
var ErrNoInput = errors.New("this front end takes no input (allow_stdin is off)")

// Input asks the reader for a line and waits for the answer. If password is true, the line is not echoed. Input returns
// ErrNoInput if the front end cannot be asked, and another error if the cell is interrupted.
func (c *Cell) Input(prompt string, password bool) (string, error) {
	m := c.parent
	if !c.allowStdin || m.sender.Identity() == "" {
		return "", ErrNoInput
	}
	frames, err := Encode(m.Identities, "input_request", c.server.session, m.RawHeader, map[string]any{"prompt": prompt,
		"password": password}, c.server.key)
	if err != nil {
		return "", err
	}
	question := &inputRequest{make(chan string, 1), m.sender.Identity(), frames}
	c.server.mu.Lock()
	c.server.pendingInput = question
	c.server.mu.Unlock()
	c.server.stdin.SendTo(question.identity, question.frames)
	line, ok := <-question.answer
	if !ok {
		return "", errors.New("interrupted")
	}
	return line, nil
}

// resendInputRequest sends the pending question to a peer that connects with the identity of the front end that was
// asked.
func (s *Server) resendInputRequest(peer *zmtp.Peer) {
	s.mu.Lock()
	question := s.pendingInput
	s.mu.Unlock()
	if question != nil && question.identity == peer.Identity() {
		peer.Send(question.frames)
	}
}

// receiveInput handles an input_reply.
func (s *Server) receiveInput(m *Message) {
	var content struct {
		Value string `json:"value"`
	}
	if m.Header.Type != "input_reply" || json.Unmarshal(m.Content, &content) != nil {
		return
	}
	s.mu.Lock()
	question := s.pendingInput
	s.pendingInput = nil
	s.mu.Unlock()
	if question != nil {
		question.answer <- content.Value
	}
}

// execute answers an execute_request.
func (s *Server) execute(m *Message, req request) {
	cell := &Cell{server: s, parent: m, silent: req.Silent, allowStdin: req.AllowStdin, interrupts: s.interrupts}
	storesHistory := !req.Silent && (req.StoreHistory == nil || *req.StoreHistory)
	if storesHistory {
		s.cellCount++
	}
	number := s.cellCount
	cell.publish("execute_input", map[string]any{"code": req.Code, "execution_count": number})
	outcome := s.lang.Run(fmt.Sprintf("Cell %d", number), req.Code, cell)
	content := map[string]any{"status": "ok", "payload": []any{}, "user_expressions": map[string]any{}}
	text := ""
	if value := outcome.Value; value != nil {
		text, _ = value.Data["text/plain"].(string)
		shown := mimeBundle(*value)
		shown["execution_count"] = number
		cell.publish("execute_result", shown)
	}
	if storesHistory {
		s.history = append(s.history, historyEntry{number, req.Code, text})
	}
	if failure := outcome.Failure; failure != nil {
		cell.publish("error", failure.content())
		maps.Copy(content, failure.content())
		content["status"] = "error"
		if req.StopOnError == nil || *req.StopOnError {
			s.abortQueued()
		}
	} else {
		content["user_expressions"] = cell.evaluate(req.UserExpressions)
	}
	content["execution_count"] = number
	s.reply(m, "execute_reply", content)
}

// content returns the failure in the form used in messages.
func (f *Failure) content() map[string]any {
	return map[string]any{"ename": f.Name, "evalue": f.Value, "traceback": f.Traceback}
}

// evaluate returns the values of the user_expressions of a request, by name, in the form used in messages. It changes
// its copy of the cell, so that the expressions print nothing and ask for no input.
func (c Cell) evaluate(exprs map[string]string) map[string]any {
	c.silent, c.allowStdin = true, false
	values := map[string]any{}
	for name, expr := range exprs {
		outcome := c.server.lang.Run("expression "+name, expr, &c)
		value := map[string]any{"data": map[string]any{}, "metadata": map[string]any{}}
		value["status"] = "ok"
		if outcome.Failure != nil {
			value = outcome.Failure.content()
			value["status"] = "error"
		} else if outcome.Value != nil {
			maps.Copy(value, mimeBundle(*outcome.Value))
		}
		values[name] = value
	}
	return values
}

// abortQueued answers all queued execute requests without running them.
func (s *Server) abortQueued() {
	s.mu.Lock()
	var aborted []*Message
	s.queue = slices.DeleteFunc(s.queue, func(m *Message) bool {
		isCell := m.Header.Type == "execute_request"
		if isCell {
			aborted = append(aborted, m)
		}
		return isCell
	})
	s.mu.Unlock()
	for _, m := range aborted {
		s.publish("status", m.RawHeader, map[string]any{"execution_state": "busy"})
		// The reply has no execution_count, because the cell was not run.
		s.reply(m, "execute_reply", map[string]any{"status": "aborted"})
		s.publish("status", m.RawHeader, map[string]any{"execution_state": "idle"})
	}
}

// starRun matches consecutive stars of a pattern. They are equivalent to one.
var starRun = regexp.MustCompile(`\*+`)

// maxPatternBytes is the length limit of a pattern in bytes, after consecutive stars were merged. A longer pattern
// matches nothing.
const maxPatternBytes = 10000

// globRegexp converts a pattern, in which * matches any text and ? any character, to a regular expression. It returns
// an expression that matches nothing if the pattern is longer than maxPatternBytes.
func globRegexp(pattern string) *regexp.Regexp {
	if pattern = starRun.ReplaceAllString(pattern, "*"); len(pattern) > maxPatternBytes {
		return regexp.MustCompile(`[^\x00-\x{10FFFF}]`) // matches nothing
	}
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + pattern + "$")
}

// historyEntry is a cell in the history.
type historyEntry struct {
	number        int    // number of the cell
	input, output string // code of the cell, and its value as text or ""
}

// searchHistory returns the entries of the history that a request asks for. An entry consists of the session, the
// number of the cell, and the input or, if the request has output set, the pair of input and output. There is only one
// session. Its number is 1, and the number 0 in a request denotes it, too. If the request has unique set, only the last
// of several equal inputs is returned.
func (s *Server) searchHistory(req request) [][]any {
	var matches []historyEntry
	switch req.Access {
	case "range":
		for _, entry := range s.history {
			if entry.number >= req.Start && (req.Stop == nil || entry.number < *req.Stop) && req.Session <= 1 {
				matches = append(matches, entry)
			}
		}
	case "search":
		indexOf, pattern := map[string]int{}, globRegexp(req.Pattern)
		for _, entry := range s.history {
			if !pattern.MatchString(entry.input) {
				continue
			}
			if i, isRepeated := indexOf[entry.input]; req.Unique && isRepeated {
				matches[i] = entry
				continue
			}
			indexOf[entry.input] = len(matches)
			matches = append(matches, entry)
		}
	default: // tail
		matches = s.history
	}
	if req.N > 0 && req.Access != "range" {
		matches = matches[max(0, len(matches)-req.N):]
	}
	result := [][]any{}
	for _, entry := range matches {
		if req.Output {
			result = append(result, []any{1, entry.number, []any{entry.input, entry.output}})
		} else {
			result = append(result, []any{1, entry.number, entry.input})
		}
	}
	return result
}

// handle answers a request. It publishes the states busy before and idle afterwards.
func (s *Server) handle(m *Message) {
	s.publish("status", m.RawHeader, map[string]any{"execution_state": "busy"})
	defer s.publish("status", m.RawHeader, map[string]any{"execution_state": "idle"})
	answer := func(content map[string]any) {
		if content["status"] == nil {
			content["status"] = "ok"
		}
		s.reply(m, strings.TrimSuffix(m.Header.Type, "_request")+"_reply", content)
	}
	var req request
	if err := json.Unmarshal(m.Content, &req); err != nil {
		answer(errorContent("ProtocolError", err.Error()))
		return
	}
	switch m.Header.Type {
	case "kernel_info_request":
		info := s.lang.Info()
		info["protocol_version"], info["debugger"] = protocolVersion, false
		answer(info)
	case "execute_request":
		s.execute(m, req)
	case "complete_request":
		answer(s.complete(req))
	case "inspect_request":
		answer(s.inspect(req))
	case "is_complete_request":
		status, indent := s.lang.IsComplete(req.Code)
		content := map[string]any{"status": status}
		if status == "incomplete" {
			content["indent"] = indent
		}
		answer(content)
	case "history_request":
		answer(map[string]any{"history": s.searchHistory(req)})
	case "comm_info_request":
		answer(map[string]any{"comms": s.lang.Comms(req.Target)})
	case "comm_open", "comm_msg", "comm_close":
		s.lang.ReceiveComm(m.Header.Type, m.Content, func(messageType string, content, metadata map[string]any) {
			s.publish(messageType, m.RawHeader, contentWithMetadata{content, metadata})
		})
	case "interrupt_request":
		s.Interrupt()
		answer(map[string]any{})
	case "shutdown_request":
		answer(map[string]any{"restart": req.Restart})
		s.publish("shutdown_reply", m.RawHeader, map[string]any{"status": "ok", "restart": req.Restart})
		s.stop()
	default:
		answer(errorContent("ProtocolError", fmt.Sprintf("a message of type %s is not known", m.Header.Type)))
	}
}

// request holds the fields of all types of requests.
type request struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    *bool             `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"`
	AllowStdin      bool              `json:"allow_stdin"`
	StopOnError     *bool             `json:"stop_on_error"`
	CursorPos       int               `json:"cursor_pos"`
	DetailLevel     int               `json:"detail_level"`
	Restart         bool              `json:"restart"`
	Target          string            `json:"target_name"`

	// The fields of a history_request.
	Output  bool   `json:"output"`
	Access  string `json:"hist_access_type"`
	Session int    `json:"session"`
	Start   int    `json:"start"`
	Stop    *int   `json:"stop"`
	N       int    `json:"n"`
	Pattern string `json:"pattern"`
	Unique  bool   `json:"unique"`
}

// byteOffset converts an index in characters of s to an index in bytes, which is len(s) if there are fewer characters.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes <= 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// runeOffset converts an index in bytes of s to an index in characters.
func runeOffset(s string, bytes int) int { return utf8.RuneCountInString(s[:min(bytes, len(s))]) }

// complete returns the content of a complete_reply.
func (s *Server) complete(req request) map[string]any {
	matches, start, end := s.lang.Complete(req.Code, byteOffset(req.Code, req.CursorPos))
	return map[string]any{
		"matches": matches, "cursor_start": runeOffset(req.Code, start), "cursor_end": runeOffset(req.Code, end),
		"metadata": map[string]any{},
	}
}

// inspect returns the content of an inspect_reply.
func (s *Server) inspect(req request) map[string]any {
	text, isFound := s.lang.Inspect(req.Code, byteOffset(req.Code, req.CursorPos), req.DetailLevel > 0)
	data := map[string]any{}
	if isFound {
		data["text/plain"] = text
	}
	return map[string]any{"found": isFound, "data": data, "metadata": map[string]any{}}
}
