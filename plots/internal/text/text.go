// Package text writes texts and numbers as tables and figures show them.
package text

import (
	"html"
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
		from, to string
		level    int
	}{{raised, raisedP, 1}, {lowered, loweredP, -1}} {
		to := []rune(t.to)
		for i, r := range []rune(t.from) {
			m[r] = Run{string(to[i]), t.level}
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

// script reads the sub- or superscript that starts at rs[i], and returns its text and
// the index behind it.
func script(rs []rune, i int) (group string, next int, ok bool) {
	if rs[i] != '_' && rs[i] != '^' || i == 0 || i+1 >= len(rs) {
		return "", 0, false
	}
	if rs[i+1] == '{' {
		if n := strings.IndexRune(string(rs[i+2:]), '}'); n >= 0 {
			g := []rune(string(rs[i+2:])[:n])
			return strings.NewReplacer("-", "−", "_", "").Replace(string(g)), i + 3 + len(g), true
		}
		return "", 0, false
	}
	word := func(j int) bool {
		return j >= 0 && j < len(rs) && translate[rs[j]].Level == 0 &&
			(unicode.IsLetter(rs[j]) || unicode.IsDigit(rs[j]) || rs[j] == '_')
	}
	base, end := rs[i-1], i+2
	if !word(i+1) || rs[i+1] == '_' {
		return "", 0, false
	}
	// a symbol: a short word, as of λ_max and λ_pI
	if base == '‖' || base > unicode.MaxASCII && unicode.IsLetter(base) {
		for end < len(rs) && unicode.IsLower(rs[i+1]) && unicode.IsLower(rs[end]) {
			end++
		}
		return string(rs[i+1 : end]), end, end <= i+5 && (!word(end) || unicode.IsUpper(rs[end]))
	}
	alone := !word(i-2) || i >= 4 && rs[i-3] == '_' && unicode.IsUpper(rs[i-4]) // the second Z of Z_kZ_kᵀ
	after := !word(end) || unicode.IsUpper(base) && unicode.IsUpper(rs[end])
	return string(rs[i+1]), end, unicode.IsLetter(base) && alone && after
}

// scripted returns a line with its sub- and superscripts as write has them, of a text and a level, and the rest as
// plain has it.
func scripted(s string, plain func(string) string, write func(text string, level int) string) string {
	var b strings.Builder
	rs, from := []rune(s), 0
	for i := 0; i < len(rs); i++ {
		group, next, ok := script(rs, i)
		if !ok {
			continue
		}
		b.WriteString(plain(string(rs[from:i])) + write(group, map[bool]int{true: 1, false: -1}[rs[i] == '^']))
		from, i = next, next-1
	}
	return b.String() + plain(string(rs[from:]))
}

// Flat returns a text in one line with sub- and superscripts in the characters that Unicode has of them: λₚ, λₘₐₓ;
// those that it has not remain as they are written.
func Flat(s string) string {
	same := func(s string) string { return s }
	return scripted(OneLine(s), same, func(text string, level int) string {
		from, to, mark := []rune(loweredP), []rune(lowered), "_"
		if level > 0 {
			from, to, mark = []rune(raisedP), []rune(raised), "^"
		}
		var out []rune
		for _, r := range text {
			k := slices.Index(from, r)
			if k < 0 {
				if utf8.RuneCountInString(text) > 1 {
					text = "{" + text + "}"
				}
				return mark + text
			}
			out = append(out, to[k])
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
