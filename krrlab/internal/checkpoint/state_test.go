package checkpoint

import (
	"bytes"
	"strings"
	"testing"
)

// TestJoin: the parts of a state come apart as they were, in the bytes that files have had; what is cut off or no gob is an error.
func TestJoin(t *testing.T) {
	b, err := Join(struct{ A int }{7}, bytes.NewBufferString("rest"))
	if err != nil || b[0] != byte(len(b)-8-len("rest")) || !bytes.Equal(b[1:8], make([]byte, 7)) || !bytes.HasSuffix(b, []byte("rest")) {
		t.Fatalf("%q, %v", b, err)
	}
	var v struct{ A, B int }
	if rest, err := Split(b, &v); err != nil || v.A != 7 || string(rest) != "rest" {
		t.Errorf("%+v, %q, %v", v, rest, err)
	}
	for want, state := range map[string][]byte{"is cut off": b[:12], "cannot be read": append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, "xyzuv"...)} {
		for _, s := range [][]byte{state, nil} {
			if s == nil {
				want = "is cut off"
			}
			if _, err := Split(s, &v); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v, want %q", s, err, want)
			}
		}
	}
}

// TestBegin: a folder is begun in if it has no state, and resumed from if it has one, where that is asked for; a run that was
// refused does not keep others out.
func TestBegin(t *testing.T) {
	dir := t.TempDir()
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	s, found, err := Begin(dir, [32]byte{1}, true, note)
	if err != nil || found != nil || len(notes) != 1 || !strings.Contains(notes[0], "beginning") {
		t.Fatalf("%q, %q, %v", found, notes, err)
	}
	if err := s.Save([]byte("state")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, _, err := Begin(dir, [32]byte{1}, false, note); err == nil || !strings.Contains(err.Error(), "resume from it") {
		t.Error(err)
	}
	if _, _, err := Begin(dir, [32]byte{2}, true, note); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Error(err)
	}
	if s, found, err = Begin(dir, [32]byte{1}, true, note); err != nil || string(found) != "state" {
		t.Fatalf("%q, %v", found, err)
	}
	s.Close()
}
