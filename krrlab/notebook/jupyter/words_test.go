package jupyter

import (
	"regexp"
	"testing"
)

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
