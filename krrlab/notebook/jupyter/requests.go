package jupyter

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

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
		answer(s.info())
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
func replyType(typ string) string {
	const suffix = "_request"
	if n := len(typ) - len(suffix); n > 0 && typ[n:] == suffix {
		return typ[:n] + "_reply"
	}
	return typ + "_reply"
}

func (s *Server) info() map[string]any {
	i := s.lang.Info()
	links := []map[string]string{}
	for _, l := range i.Links {
		links = append(links, map[string]string{"text": l[0], "url": l[1]})
	}
	return map[string]any{
		"protocol_version": protocolVersion, "implementation": i.Implementation, "implementation_version": i.Version,
		"language_info": i.Language, "banner": i.Banner, "help_links": links, "debugger": false,
	}
}

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
		"matches": matches, "cursor_start": runeOffset(req.Code, start), "cursor_end": runeOffset(req.Code, end), "metadata": map[string]any{},
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
