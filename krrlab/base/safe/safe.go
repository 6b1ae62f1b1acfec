// Package safe writes text that others chose, such as labels, columns and names of files, for a terminal and for a
// shell. Line and Writer are for reports and messages, Name for a name among other words, Shell for a command to be
// pasted.
package safe

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name returns the text as it is if all of it prints, and else in quotes with the rest escaped as in Go.
func Name(text string) string {
	if prints(text) {
		return text
	}
	return strconv.Quote(text)
}

func prints(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Line returns the text with escapes for what does not print, which a terminal could take for a command
// or which would begin a new line.
func Line(text string) string { return escape(text, "") }

// Cell is Line for a cell of a table, in which ends of lines, tabs and the joiners of some scripts may stay.
func Cell(text string) string { return escape(text, "\n\t\u200c\u200d") }

// escape is Line but for the characters kept.
func escape(text, kept string) string {
	if prints(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.In(r, unicode.Zs), unicode.IsPrint(r), strings.ContainsRune(kept, r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// Writer passes on text to a terminal with escapes for what does not print, but for the ends of lines,
// tabs and the carriage return of a line that updates in place. A write has whole characters.
type Writer struct{ W io.Writer }

// Write writes all of p, what does not print escaped.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, escape(string(p), "\n\t\r")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Shell returns the text as one word for a POSIX shell: as it is where all of it is plain, else in single quotes, and
// as $'…' where some of it does not print.
func Shell(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	if prints(text) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}
