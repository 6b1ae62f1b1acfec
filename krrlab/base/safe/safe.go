// Package safe escapes text from outside the program, such as labels, columns and file names, for a terminal or a
// shell. Line, Cell and Writer are for reports and messages, Name is for a name within a sentence, and Shell is for a
// command to be pasted.
package safe

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name returns the text unchanged if all of it is printable, and otherwise quoted as in Go, with escapes.
func Name(text string) string {
	if isPrintable(text) {
		return text
	}
	return strconv.Quote(text)
}

// isPrintable reports whether the text is valid UTF-8 of printable characters.
func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Line returns the text with escapes for characters that are not printable, such as terminal control codes and
// newlines.
func Line(text string) string { return escape(text, "") }

// Cell returns the text as Line does, for a cell of a table, but does not escape newlines, tabs and the joiners of some
// scripts.
func Cell(text string) string { return escape(text, "\n\t\u200c\u200d") }

// escape escapes all characters that are neither printable nor in allowed.
func escape(text, allowed string) string {
	if isPrintable(text) {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case unicode.In(r, unicode.Zs), unicode.IsPrint(r), strings.ContainsRune(allowed, r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return out.String()
}

// Writer passes text to a terminal and escapes characters that are not printable, except newlines, tabs and the
// carriage return of a line that is updated in place. Each call of Write must consist of whole characters.
type Writer struct{ W io.Writer }

// Write writes p with escapes. It returns len(p) if it succeeds.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, escape(string(p), "\n\t\r")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Shell returns the text as one word for a POSIX shell: unchanged if it has only letters, digits and harmless
// punctuation, otherwise in single quotes, or as $'…' if some characters are not printable.
func Shell(text string) string {
	const unquotedCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	if text != "" && strings.Trim(text, unquotedCharacters) == "" {
		return text
	}
	if isPrintable(text) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var out strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			out.WriteString(`\` + string(c))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	return "$'" + out.String() + "'"
}
