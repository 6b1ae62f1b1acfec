// Package text formats texts and numbers for tables and figures.
package text

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsMark reports whether r is a private-use character of Unicode. Package draw uses these as marks in SVG text; OneLine
// removes them from labels.
func IsMark(r rune) bool { return r >= '\ue000' && r <= '\uf8ff' }

// OneLine returns s in one line: control characters, such as line breaks, and private-use characters become blanks.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || IsMark(r) {
			return ' '
		}
		return r
	}, s)
}

// Columns returns the number of columns that s needs in a terminal. Each character but a combining mark takes one
// column; wide characters, such as Chinese, are not considered.
func Columns(s string) (n int) {
	for _, r := range s {
		if !unicode.Is(unicode.Mn, r) {
			n++
		}
	}
	return n
}

// Run is a piece of text at one height.
type Run struct {
	Text  string
	Level int // 1 for a superscript, −1 for a subscript, 0 for other text
}

// The superscript and subscript characters of Unicode, each with the plain character at the same position.
const (
	superscripts     = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ⁿᵀ"
	superscriptPlain = "0123456789−+()nT"
	subscripts       = "₀₁₂₃₄₅₆₇₈₉₋₊₍₎ₐₑᵢⱼₖₘₙₚₛₜₓ"
	subscriptPlain   = "0123456789−+()aeijkmnpstx"
)

// scriptRuns maps superscript and subscript characters, and two characters that the font lacks, to plain text.
var scriptRuns = func() map[rune]Run {
	runs := map[rune]Run{'ℝ': {"R", 0}, '‑': {"-", 0}}
	for _, table := range []struct {
		scripted, plain string
		level           int
	}{{superscripts, superscriptPlain, 1}, {subscripts, subscriptPlain, -1}} {
		plain := []rune(table.plain)
		for i, r := range []rune(table.scripted) {
			runs[r] = Run{string(plain[i]), table.level}
		}
	}
	return runs
}()

// Runs splits a text, which it makes one line, into pieces of one height. The documentation of package plots (Style)
// has the rules for superscripts and subscripts.
func Runs(s string) (out []Run) {
	// addText appends text to the last run or starts a new one. Like the second function, it returns "", because only
	// the calls that replaceScripts makes matter here, not the line that it builds.
	addText := func(text string, level int) string {
		if n := len(out); n > 0 && out[n-1].Level == level {
			out[n-1].Text += text
		} else if text != "" {
			out = append(out, Run{text, level})
		}
		return ""
	}
	replaceScripts(OneLine(s), func(text string) string {
		for _, r := range text {
			if t, ok := scriptRuns[r]; ok {
				addText(t.Text, t.Level)
			} else {
				addText(string(r), 0)
			}
		}
		return ""
	}, addText)
	return out
}

// inWord contains the characters of words, for a class of a regular expression: letters and digits, but no superscripts
// and subscripts.
const inWord = `\p{Lu}\p{Ll}\p{Lt}\p{Lo}\p{Nd}`

// Regular expressions for subscripts and superscripts. Those without braces begin with the character before the mark.
var (
	bracedScript = regexp.MustCompile(`^[_^]\{([^}]*)\}`)
	// A short word after a symbol, such as λ_max and λ_pI.
	scriptAfterSymbol = regexp.MustCompile(`^(?:‖|[^\P{L}\x00-\x7F])[_^](\p{Ll}{1,4}|[` + inWord +
		`])(?:\p{Lu}|[^_` + inWord + `]|$)`)
	// One character after a letter, such as s_λ and Z_kZ.
	scriptAfterLetter = regexp.MustCompile(`^(?:[A-Z][_^]([` + inWord + `])\p{Lu}|[A-Za-z][_^]([` + inWord +
		`])(?:[^_` + inWord + `]|$))`)
	// A letter that stands alone, or follows a subscript, such as the second Z of Z_kZ_kᵀ.
	endsInLoneLetter = regexp.MustCompile(`(?:^|[^_` + inWord + `]|\p{Lu}_.)\pL$`)
)

// scriptLevels contains the Level of the text after a mark.
var scriptLevels = map[rune]int{'^': 1, '_': -1}

// parseScript returns the text of the subscript or superscript that begins with the mark _ or ^ at s[i], without the
// mark and braces, and the index of its end. ok reports whether there is one.
func parseScript(s string, i int) (group string, end int, ok bool) {
	if match := bracedScript.FindStringSubmatch(s[i:]); match != nil && i > 0 {
		return strings.NewReplacer("-", "−", "_", "").Replace(match[1]), i + len(match[0]), true
	}
	_, width := utf8.DecodeLastRuneInString(s[:i])
	if match := scriptAfterSymbol.FindStringSubmatch(s[i-width:]); match != nil {
		return match[1], i + 1 + len(match[1]), true
	}
	if match := scriptAfterLetter.FindStringSubmatch(s[i-width:]); match != nil && endsInLoneLetter.MatchString(s[:i]) {
		group = match[1] + match[2]
		return group, i + 1 + len(group), true
	}
	return "", 0, false
}

// replaceScripts returns s in which each subscript or superscript is replaced with write(text, level), and the text
// between them with plain(text). It calls these functions in the order of the text.
func replaceScripts(s string, plain func(string) string, write func(text string, level int) string) string {
	var text strings.Builder
	start := 0
	for i, mark := range s {
		if level := scriptLevels[mark]; level != 0 && i >= start {
			if group, end, ok := parseScript(s, i); ok {
				text.WriteString(plain(s[start:i]) + write(group, level))
				start = end
			}
		}
	}
	return text.String() + plain(s[start:])
}

// Flat returns a text in one line in which subscripts and superscripts are Unicode characters: λₚ, λₘₐₓ. A script for
// which Unicode has no characters remains in the notation with _ or ^.
func Flat(s string) string {
	identity := func(s string) string { return s }
	return replaceScripts(OneLine(s), identity, func(text string, level int) string {
		plainChars, scriptChars, mark := []rune(subscriptPlain), []rune(subscripts), "_"
		if level > 0 {
			plainChars, scriptChars, mark = []rune(superscriptPlain), []rune(superscripts), "^"
		}
		var out []rune
		for _, r := range text {
			k := slices.Index(plainChars, r)
			if k < 0 {
				if utf8.RuneCountInString(text) > 1 {
					text = "{" + text + "}"
				}
				return mark + text
			}
			out = append(out, scriptChars[k])
		}
		return string(out)
	})
}

// Markup returns a text as HTML with its subscripts and superscripts.
func Markup(s string) string {
	return replaceScripts(s, html.EscapeString, func(text string, level int) string {
		tag := map[int]string{1: "sup", -1: "sub"}[level]
		return "<" + tag + ">" + html.EscapeString(text) + "</" + tag + ">"
	})
}
