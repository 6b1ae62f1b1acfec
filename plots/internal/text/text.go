// Package text writes texts and numbers as tables and figures show them.
package text

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsMark reports whether a character is private, and so of no use in a label.
func IsMark(r rune) bool { return r >= '\ue000' && r <= '\uf8ff' }

// OneLine returns the text without control characters and private ones.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || IsMark(r) {
			return ' '
		}
		return r
	}, s)
}

// Columns returns how many columns of a terminal s takes.
func Columns(s string) (n int) {
	for _, r := range s {
		if !unicode.Is(unicode.Mn, r) {
			n++
		}
	}
	return n
}

// Run is a piece of text at one height: level +1 is raised, −1 lowered.
type Run struct {
	Text  string
	Level int
}

const (
	raised   = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ⁿᵀ"
	raisedP  = "0123456789−+()nT"
	lowered  = "₀₁₂₃₄₅₆₇₈₉₋₊₍₎ₐₑᵢⱼₖₘₙₚₛₜₓ"
	loweredP = "0123456789−+()aeijkmnpstx"
)

// translate maps the super- and subscript characters to plain ones.
var translate = func() map[rune]Run {
	m := map[rune]Run{'ℝ': {"R", 0}, '‑': {"-", 0}}
	for _, t := range []struct {
		scripted, plain string
		level           int
	}{{raised, raisedP, 1}, {lowered, loweredP, -1}} {
		plain := []rune(t.plain)
		for i, r := range []rune(t.scripted) {
			m[r] = Run{string(plain[i]), t.level}
		}
	}
	return m
}()

// Runs splits a line of text by height. See the package documentation for the rules.
func Runs(s string) (out []Run) {
	add := func(text string, level int) string {
		if n := len(out); n > 0 && out[n-1].Level == level {
			out[n-1].Text += text
		} else if text != "" {
			out = append(out, Run{text, level})
		}
		return ""
	}
	scripted(OneLine(s), func(text string) string {
		for _, r := range text {
			if t, ok := translate[r]; ok {
				add(t.Text, t.Level)
			} else {
				add(string(r), 0)
			}
		}
		return ""
	}, add)
	return out
}

// inWord are the characters of words in a class of a regular expression: letters and digits, none that is raised or
// lowered.
const inWord = `\p{Lu}\p{Ll}\p{Lt}\p{Lo}\p{Nd}`

// Sub- and superscripts. The expressions for those without braces match from the character before the mark on.
var (
	braced = regexp.MustCompile(`^[_^]\{([^}]*)\}`)
	// a short word after a symbol, as in λ_max and λ_pI
	afterSymbol = regexp.MustCompile(`^(?:‖|[^\P{L}\x00-\x7F])[_^](\p{Ll}{1,4}|[` + inWord +
		`])(?:\p{Lu}|[^_` + inWord + `]|$)`)
	// one character after a letter, as in s_λ and Z_kZ
	afterLetter = regexp.MustCompile(`^(?:[A-Z][_^]([` + inWord + `])\p{Lu}|[A-Za-z][_^]([` + inWord +
		`])(?:[^_` + inWord + `]|$))`)
	// a letter that stands alone, or is the second Z of Z_kZ_kᵀ
	alone = regexp.MustCompile(`(?:^|[^_` + inWord + `]|\p{Lu}_.)\pL$`)
)

// levels are those of the marks.
var levels = map[rune]int{'^': 1, '_': -1}

// script reads the sub- or superscript that starts with the mark at s[i], and returns its text and the index behind it;
// ok is false if there is none.
func script(s string, i int) (group string, end int, ok bool) {
	if m := braced.FindStringSubmatch(s[i:]); m != nil && i > 0 {
		return strings.NewReplacer("-", "−", "_", "").Replace(m[1]), i + len(m[0]), true
	}
	_, width := utf8.DecodeLastRuneInString(s[:i])
	if m := afterSymbol.FindStringSubmatch(s[i-width:]); m != nil {
		return m[1], i + 1 + len(m[1]), true
	}
	if m := afterLetter.FindStringSubmatch(s[i-width:]); m != nil && alone.MatchString(s[:i]) {
		group = m[1] + m[2]
		return group, i + 1 + len(group), true
	}
	return "", 0, false
}

// scripted rewrites a line. It replaces each sub- or superscript by write(text, level), and the text between them by
// plain(text).
func scripted(s string, plain func(string) string, write func(text string, level int) string) string {
	var b strings.Builder
	start := 0
	for i, mark := range s {
		if level := levels[mark]; level != 0 && i >= start {
			if group, end, ok := script(s, i); ok {
				b.WriteString(plain(s[start:i]) + write(group, level))
				start = end
			}
		}
	}
	return b.String() + plain(s[start:])
}

// Flat returns a text in one line with its sub- and superscripts in Unicode characters: λₚ, λₘₐₓ. A sub- or superscript
// without such characters remains in the notation with _ or ^.
func Flat(s string) string {
	identity := func(s string) string { return s }
	return scripted(OneLine(s), identity, func(text string, level int) string {
		plainChars, scriptChars, mark := []rune(loweredP), []rune(lowered), "_"
		if level > 0 {
			plainChars, scriptChars, mark = []rune(raisedP), []rune(raised), "^"
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

// Markup returns a text as HTML with its sub- and superscripts.
func Markup(s string) string {
	return scripted(s, html.EscapeString, func(text string, level int) string {
		tag := map[int]string{1: "sup", -1: "sub"}[level]
		return "<" + tag + ">" + html.EscapeString(text) + "</" + tag + ">"
	})
}
