package safe

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestShell compares quoted words with known ones, and lets bash read them back.
func TestShell(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "a.csv": "a.csv", "it's": `'it'\''s'`, "a`id`.csv": "'a`id`.csv'", "[ab].csv": "'[ab].csv'",
		"$HOME": "'$HOME'", "~/x": "'~/x'",
		"a b!{c,d}#": "'a b!{c,d}#'", "Größe": "'Größe'", "a\\'\x1b[2J\nb": `$'a\\\'\033[2J\012b'`, "\xff": `$'\377'`,
		"a\tü": `$'a\011\303\274'`, "~\x7f": `$'~\177'`,
	} {
		if got := Shell(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if out, err := exec.Command("bash", "-c", "printf %s "+want).Output(); err == nil && string(out) != text {
			t.Errorf("bash reads %s as %q, want %q", want, out, text)
		}
	}
}

// TestTerminal checks that names, lines and texts for a terminal contain no control characters.
func TestTerminal(t *testing.T) {
	for _, test := range []struct{ text, name, line, written string }{
		{"price", "price", "price", "price"},
		{"λ_p, κ(M⁻¹A) ‖c‖", "λ_p, κ(M⁻¹A) ‖c‖", "λ_p, κ(M⁻¹A) ‖c‖", "λ_p, κ(M⁻¹A) ‖c‖"},
		{"a\x1b[31mb", `"a\x1b[31mb"`, `a\x1b[31mb`, `a\x1b[31mb`},
		{"a\nb\t", `"a\nb\t"`, `a\nb\t`, "a\nb\t"},
		{"\u009b2J", `"\u009b2J"`, `\u009b2J`, `\u009b2J`},
		{"\x9b\u202e", `"\x9b\u202e"`, `\x9b\u202e`, `\x9b\u202e`},
		{"\r\x00\x7f", `"\r\x00\x7f"`, `\r\x00\x7f`, "\r" + `\x00\x7f`},
		{"a\u00a0b\n", `"a\u00a0b\n"`, "a\u00a0b" + `\n`, "a\u00a0b\n"},
	} {
		var out bytes.Buffer
		if n, err := (Writer{&out}).Write([]byte(test.text)); n != len(test.text) || err != nil {
			t.Errorf("wrote %d of %q: %v", n, test.text, err)
		}
		if Name(test.text) != test.name || Line(test.text) != test.line || out.String() != test.written {
			t.Errorf("%q: name %s, line %s, written %q", test.text, Name(test.text), Line(test.text), out.String())
		}
	}
}
