package jupyter

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestMatches: patterns of a history search, millions of stars among them.
func TestMatches(t *testing.T) {
	many := strings.Repeat("*", 4_000_000)
	s := &Server{history: []entry{{1, "x := 3\ny", ""}, {2, "übung(", ""}, {3, "", ""}, {4, "aab", ""}}}
	for pattern, want := range map[string]string{
		"*": "1234", many: "1234", many + "?" + many: "124", "x*y": "1", "*b*ng?": "2", "?bung(": "2", "": "3", "*aab": "4", "*ab": "4", "a*a*b": "4", "a*b*b": "", "???": "4", "x": "",
		"*[*": "", "*" + many + "(": "2", strings.Repeat("a*", 1_000_000): "",
	} {
		got := ""
		for _, e := range s.search(request{Access: "search", Pattern: pattern}) {
			got += fmt.Sprint(e[1])
		}
		if got != want {
			t.Errorf("%.20q: %s, want %s", pattern, got, want)
		}
	}
}

// TestReplyType: the answer's type is the request's with another end.
func TestReplyType(t *testing.T) {
	for typ, want := range map[string]string{
		"execute_request": "execute_reply", "_request": "_request_reply", "x_request": "x_reply", "": "_reply", "comm_open": "comm_open_reply", "request": "request_reply",
	} {
		if got := replyType(typ); got != want {
			t.Errorf("%q is answered by %q, want %q", typ, got, want)
		}
	}
}

// TestNewID: random UUIDs of version 4, each of whose other bits takes both values.
func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	var ones, zeros [36]byte
	seen := map[string]bool{}
	for range 400 { // a bit that stays the same by chance has probability 2⁻³⁹⁹
		id := newID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("%q, seen before %v", id, seen[id])
		}
		seen[id] = true
		for i := range 36 {
			v := id[i] - '0'
			if id[i] >= 'a' {
				v = id[i] - 'a' + 10
			}
			ones[i] |= v
			zeros[i] |= ^v
		}
	}
	for i := range 36 {
		want := byte(0xf)
		switch i {
		case 8, 13, 14, 18, 23: // hyphens and the version
			continue
		case 19:
			want = 0x3 // two bits are the variant
		}
		if ones[i]&want != want || zeros[i]&want != want {
			t.Errorf("bits of digit %d that are ever 1: %b, ever 0: %b", i, ones[i]&0xf, zeros[i]&0xf)
		}
	}
}
