package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// Cell is where a running cell sends what it shows.
type Cell struct {
	s      *Server
	parent *Message
	silent bool
	stdin  bool
	halts  chan struct{}
}

// Interrupts is what ends the cell: by itself where it can, and at once the second time.
func (c *Cell) Interrupts() <-chan struct{} { return c.halts }

// publish sends a message about the cell to all who listen.
func (c *Cell) publish(typ string, content map[string]any) {
	if !c.silent {
		c.s.publish(typ, c.parent.RawHeader, content)
	}
}

// Stream sends text that was printed.
func (c *Cell) Stream(name, text string) {
	c.publish("stream", map[string]any{"name": name, "text": text})
}

// Display shows a value.
func (c *Cell) Display(d Data) { c.show("display_data", d) }

// Update replaces the value with the same display_id.
func (c *Cell) Update(d Data) { c.show("update_display_data", d) }

func (c *Cell) show(typ string, d Data) {
	content := represented(d)
	content["transient"] = d.Transient
	c.publish(typ, content)
}

// represented is a value in its representations, as messages have it.
func represented(d Data) map[string]any {
	return map[string]any{"data": d.Data, "metadata": d.Metadata}
}

// Clear removes what the cell has shown; with wait, when it shows something new.
func (c *Cell) Clear(wait bool) { c.publish("clear_output", map[string]any{"wait": wait}) }

// question is an input_request that waits for its answer.
type question struct {
	answer   chan string
	identity string   // who is asked
	frames   [][]byte // the request
}

// ErrNoInput says that nobody can be asked.
var ErrNoInput = errors.New("this front end takes no input (allow_stdin is off)")

// Input asks the reader for a line.
func (c *Cell) Input(prompt string, password bool) (string, error) {
	m := c.parent
	if !c.stdin || m.from.Identity() == "" {
		return "", ErrNoInput
	}
	frames, err := Encode(m.Identities, "input_request", c.s.session, m.RawHeader, map[string]any{"prompt": prompt,
		"password": password}, c.s.key)
	if err != nil {
		return "", err
	}
	q := &question{make(chan string, 1), m.from.Identity(), frames}
	c.s.mu.Lock()
	c.s.asking = q
	c.s.mu.Unlock()
	c.s.stdin.SendTo(q.identity, q.frames)
	line, ok := <-q.answer
	if !ok {
		return "", errors.New("interrupted")
	}
	return line, nil
}

// askAgain asks who was gone when the question came.
func (s *Server) askAgain(p *zmtp.Peer) {
	s.mu.Lock()
	q := s.asking
	s.mu.Unlock()
	if q != nil && q.identity == p.Identity() {
		p.Send(q.frames)
	}
}

// answered takes an input_reply.
func (s *Server) answered(m *Message) {
	var content struct {
		Value string `json:"value"`
	}
	if m.Header.Type != "input_reply" || json.Unmarshal(m.Content, &content) != nil {
		return
	}
	s.mu.Lock()
	q := s.asking
	s.asking = nil
	s.mu.Unlock()
	if q != nil {
		q.answer <- content.Value
	}
}

// execute runs a cell.
func (s *Server) execute(m *Message, req request) {
	cell := &Cell{s: s, parent: m, silent: req.Silent, stdin: req.AllowStdin, halts: s.halts}
	store := !req.Silent && (req.StoreHistory == nil || *req.StoreHistory)
	if store {
		s.count++
	}
	n := s.count
	cell.publish("execute_input", map[string]any{"code": req.Code, "execution_count": n})
	out := s.lang.Run(fmt.Sprintf("Cell %d", n), req.Code, cell)
	content := map[string]any{"status": "ok", "payload": []any{}, "user_expressions": map[string]any{}}
	text := ""
	if v := out.Value; v != nil {
		text, _ = v.Data["text/plain"].(string)
		shown := represented(*v)
		shown["execution_count"] = n
		cell.publish("execute_result", shown)
	}
	if store {
		s.history = append(s.history, entry{n, req.Code, text})
	}
	if f := out.Failure; f != nil {
		cell.publish("error", f.content())
		maps.Copy(content, f.content())
		content["status"] = "error"
		if req.StopOnError == nil || *req.StopOnError {
			s.abort()
		}
	} else {
		content["user_expressions"] = cell.evaluate(req.UserExpressions)
	}
	content["execution_count"] = n
	s.reply(m, "execute_reply", content)
}

// content is how a cell failed, as messages have it.
func (f *Failure) content() map[string]any {
	return map[string]any{"ename": f.Name, "evalue": f.Value, "traceback": f.Traceback}
}

// evaluate returns the values of a request's user_expressions.
func (c Cell) evaluate(exprs map[string]string) map[string]any {
	c.silent, c.stdin = true, false
	values := map[string]any{}
	for name, expr := range exprs {
		out := c.s.lang.Run("expression "+name, expr, &c)
		value := map[string]any{"data": map[string]any{}, "metadata": map[string]any{}}
		value["status"] = "ok"
		if out.Failure != nil {
			value = out.Failure.content()
			value["status"] = "error"
		} else if out.Value != nil {
			maps.Copy(value, represented(*out.Value))
		}
		values[name] = value
	}
	return values
}

// abort answers the cells that wait without running them.
func (s *Server) abort() {
	s.mu.Lock()
	var cells []*Message
	rest := s.queue[:0:0]
	for _, m := range s.queue {
		if m.Header.Type == "execute_request" {
			cells = append(cells, m)
		} else {
			rest = append(rest, m)
		}
	}
	s.queue = rest
	s.mu.Unlock()
	for _, m := range cells {
		s.publish("status", m.RawHeader, map[string]any{"execution_state": "busy"})
		// a count would be the number of a cell not run
		s.reply(m, "execute_reply", map[string]any{"status": "aborted"})
		s.publish("status", m.RawHeader, map[string]any{"execution_state": "idle"})
	}
}

// stars are those of a pattern that stand together, of which one does.
var stars = regexp.MustCompile(`\*+`)

// maxPattern is the length in bytes of a pattern, its stars taken together; a longer one matches nothing.
const maxPattern = 10000

// glob is a pattern with * for any text and ? for a character.
func glob(pattern string) *regexp.Regexp {
	if pattern = stars.ReplaceAllString(pattern, "*"); len(pattern) > maxPattern {
		return regexp.MustCompile(`[^\x00-\x{10FFFF}]`)
	}
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?s)^" + pattern + "$")
}

// entry is a cell that was run.
type entry struct {
	line          int
	input, output string
}

// search returns the entries of the history that a request asks for, as session, line,
// and input or the pair of input and output.
func (s *Server) search(req request) [][]any {
	var found []entry
	switch req.Access {
	case "range":
		for _, e := range s.history {
			if e.line >= req.Start && (req.Stop == nil || e.line < *req.Stop) && req.Session <= 1 {
				found = append(found, e)
			}
		}
	case "search":
		seen, pattern := map[string]int{}, glob(req.Pattern)
		for _, e := range s.history {
			if !pattern.MatchString(e.input) {
				continue
			}
			if i, again := seen[e.input]; req.Unique && again {
				found[i] = e
				continue
			}
			seen[e.input] = len(found)
			found = append(found, e)
		}
	default: // tail
		found = s.history
	}
	if req.N > 0 && req.Access != "range" {
		found = found[max(0, len(found)-req.N):]
	}
	out := [][]any{}
	for _, e := range found {
		if req.Output {
			out = append(out, []any{1, e.line, []any{e.input, e.output}})
		} else {
			out = append(out, []any{1, e.line, e.input})
		}
	}
	return out
}

// handle answers one request, between busy and idle.
func (s *Server) handle(m *Message) {
	s.publish("status", m.RawHeader, map[string]any{"execution_state": "busy"})
	defer s.publish("status", m.RawHeader, map[string]any{"execution_state": "idle"})
	var req request
	if err := json.Unmarshal(m.Content, &req); err != nil {
		s.reply(m, replyType(m.Header.Type), failed("ProtocolError", err.Error()))
		return
	}
	answer := func(content map[string]any) {
		if content["status"] == nil {
			content["status"] = "ok"
		}
		s.reply(m, replyType(m.Header.Type), content)
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
		answer(map[string]any{"history": s.search(req)})
	case "comm_info_request":
		answer(map[string]any{"comms": map[string]any{}})
	case "comm_open": // no target is known here: the protocol asks to close it
		s.publish("comm_close", m.RawHeader, map[string]any{"comm_id": req.CommID, "data": map[string]any{}})
	case "comm_msg", "comm_close":
	case "interrupt_request":
		s.Interrupt()
		answer(map[string]any{})
	case "shutdown_request":
		answer(map[string]any{"restart": req.Restart})
		s.publish("shutdown_reply", m.RawHeader, map[string]any{"status": "ok", "restart": req.Restart})
		s.end()
	default:
		answer(failed("ProtocolError", fmt.Sprintf("a message of type %s is not known", m.Header.Type)))
	}
}

// request holds the fields of all requests.
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
	CommID          string            `json:"comm_id"`

	Output  bool   `json:"output"` // of history
	Access  string `json:"hist_access_type"`
	Session int    `json:"session"`
	Start   int    `json:"start"`
	Stop    *int   `json:"stop"`
	N       int    `json:"n"`
	Pattern string `json:"pattern"`
	Unique  bool   `json:"unique"`
}

// replyType is the type of the answer to a request.
func replyType(typ string) string { return strings.TrimSuffix(typ, "_request") + "_reply" }

// byteOffset turns an index in characters into one in bytes, runeOffset the reverse.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes <= 0 {
			return i
		}
		runes--
	}
	return len(s)
}

func runeOffset(s string, bytes int) int { return utf8.RuneCountInString(s[:min(bytes, len(s))]) }

func (s *Server) complete(req request) map[string]any {
	matches, start, end := s.lang.Complete(req.Code, byteOffset(req.Code, req.CursorPos))
	return map[string]any{
		"matches": matches, "cursor_start": runeOffset(req.Code, start), "cursor_end": runeOffset(req.Code,
			end), "metadata": map[string]any{},
	}
}

func (s *Server) inspect(req request) map[string]any {
	text, found := s.lang.Inspect(req.Code, byteOffset(req.Code, req.CursorPos), req.DetailLevel > 0)
	data := map[string]any{}
	if found {
		data["text/plain"] = text
	}
	return map[string]any{"found": found, "data": data, "metadata": map[string]any{}}
}
