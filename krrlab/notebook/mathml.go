package notebook

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mathML returns a formula of TeX, between its dollar signs, as MathML, which browsers draw without a script. A command
// that it does not know makes it return "".
func mathML(tex string) string {
	display := strings.HasPrefix(tex, "$$")
	t := &texReader{rest: strings.Trim(tex, "$")}
	body := t.row("")
	if t.wrong || t.rest != "" {
		return ""
	}
	if display {
		return `<math display="block">` + body + "</math>"
	}
	return "<math>" + body + "</math>"
}

// Commands of TeX.
var (
	// of those that stand for a character, those that HTML names otherwise; "" for what HTML has another for
	texCharacters = map[string]string{
		"epsilon": "ϵ", "varepsilon": "ε", "phi": "ϕ", "varphi": "φ", "ell": "ℓ", "infty": "∞", "partial": "∂",
		"to": "→", "cdot": "⋅", "dots": "…", "ldots": "…", "cdots": "⋯", "|": "‖", "{": "{", "}": "}", "not": "",
	}
	texSpaces = map[string]string{",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.33em", "!": "0", "quad": "1em",
		"qquad": "2em"}
	texNames   = []string{"max", "min", "log", "ln", "exp", "cos", "sin", "det", "dim", "inf", "sup", "lim"}
	texAccents = map[string]string{"hat": "^", "tilde": "~", "bar": "‾", "vec": "→", "dot": "˙"}
	texDouble  = strings.NewReplacer("R", "ℝ", "E", "𝔼", "N", "ℕ", "P", "ℙ", "Z", "ℤ")
	texStretch = []string{"left", "right", "Bigl", "Bigr", "bigl", "bigr"}
)

// texReader reads TeX.
type texReader struct {
	rest  string
	wrong bool
}

// next takes a token: a character, or a command without its backslash.
func (t *texReader) next() (token string, command bool) {
	t.rest = strings.TrimLeft(t.rest, " \n")
	if t.rest == "" {
		return "", false
	}
	if t.rest[0] != '\\' {
		_, n := utf8.DecodeRuneInString(t.rest)
		token, t.rest = t.rest[:n], t.rest[n:]
		return token, false
	}
	n := 1
	for n < len(t.rest) && unicode.IsLetter(rune(t.rest[n])) {
		n++
	}
	if n == 1 {
		n = min(2, len(t.rest))
	}
	token, t.rest = t.rest[1:n], t.rest[n:]
	return token, true
}

// row reads up to the character end, which it takes, or all that is left.
func (t *texReader) row(end string) string {
	var b strings.Builder
	for {
		t.rest = strings.TrimLeft(t.rest, " \n")
		if t.rest == "" || t.wrong {
			t.wrong = t.wrong || end != ""
			break
		}
		if end != "" && strings.HasPrefix(t.rest, end) {
			t.rest = t.rest[len(end):]
			break
		}
		b.WriteString(t.scripted())
	}
	return "<mrow>" + b.String() + "</mrow>"
}

// scripted reads an atom with its index and exponent.
func (t *texReader) scripted() string {
	atom, below, above := t.atom(), "", ""
	for {
		t.rest = strings.TrimLeft(t.rest, " \n")
		switch {
		case below == "" && strings.HasPrefix(t.rest, "_"):
			t.rest = t.rest[1:]
			below = t.argument()
		case above == "" && strings.HasPrefix(t.rest, "^"):
			t.rest = t.rest[1:]
			above = t.argument()
		case below != "" && above != "":
			if atom == "<mo>∑</mo>" || atom == "<mo>∏</mo>" {
				return "<munderover>" + atom + below + above + "</munderover>"
			}
			return "<msubsup>" + atom + below + above + "</msubsup>"
		case below != "":
			return "<msub>" + atom + below + "</msub>"
		case above != "":
			return "<msup>" + atom + above + "</msup>"
		default:
			return atom
		}
	}
}

// atom reads a character, a group, or a command with its arguments.
func (t *texReader) atom() string {
	token, command := t.next()
	if !command {
		return t.character(token)
	}
	switch {
	case texSpaces[token] != "":
		return `<mspace width="` + texSpaces[token] + `"></mspace>`
	case slices.Contains(texNames, token):
		return "<mi>" + token + "</mi><mspace width=\"0.1em\"></mspace>"
	case texAccents[token] != "":
		return `<mover accent="true">` + t.argument() + "<mo>" + texAccents[token] + "</mo></mover>"
	case slices.Contains(texStretch, token):
		s, isCommand := t.next()
		if isCommand {
			s = named(s)
		}
		return `<mo stretchy="true">` + html.EscapeString(s) + "</mo>"
	}
	switch token {
	case "frac", "tfrac", "dfrac":
		return "<mfrac>" + t.argument() + t.argument() + "</mfrac>"
	case "sqrt":
		return "<msqrt>" + t.argument() + "</msqrt>"
	case "rm": // {\rm text}
		s, _, _ := strings.Cut(t.rest, "}")
		t.rest = t.rest[len(s):]
		return `<mi mathvariant="normal">` + html.EscapeString(strings.TrimSpace(s)) + "</mi>"
	case "mathrm", "operatorname":
		return `<mi mathvariant="normal">` + html.EscapeString(t.words()) + "</mi>"
	case "text":
		return "<mtext>" + strings.ReplaceAll(html.EscapeString(t.words()), " ", "\u00a0") + "</mtext>"
	case "mathbb":
		return "<mi>" + texDouble.Replace(html.EscapeString(t.words())) + "</mi>"
	}
	c := named(token)
	t.wrong = t.wrong || c == ""
	return symbol(c)
}

// named returns the letter or the operator that a command stands for, "" for none.
func named(command string) string {
	if c, ok := texCharacters[command]; ok {
		return c
	}
	c := html.UnescapeString("&" + command + ";")
	if r, n := utf8.DecodeRuneInString(c); n < len(c) || !unicode.In(r, unicode.Greek, unicode.Sm, unicode.Ps, unicode.Pe) {
		return ""
	}
	return c
}

// argument reads an atom, of a number its first digit alone.
func (t *texReader) argument() string {
	t.rest = strings.TrimLeft(t.rest, " \n")
	if t.rest == "" || !unicode.IsDigit(rune(t.rest[0])) {
		return t.atom()
	}
	digit, _ := t.next()
	return "<mn>" + digit + "</mn>"
}

// character is what one means that is no command.
func (t *texReader) character(c string) string {
	switch {
	case c == "{":
		return t.row("}")
	case c == "" || strings.Contains("}_^&%#", c):
		t.wrong = true
		return ""
	case c == "'":
		return "<mo>′</mo>"
	case c == "-":
		return "<mo>−</mo>"
	case unicode.IsDigit(rune(c[0])):
		n := 0
		for n < len(t.rest) && (unicode.IsDigit(rune(t.rest[n])) || t.rest[n] == '.' && n+1 < len(t.rest) &&
			unicode.IsDigit(rune(t.rest[n+1]))) {
			n++
		}
		c, t.rest = c+t.rest[:n], t.rest[n:]
		return "<mn>" + c + "</mn>"
	}
	return symbol(c)
}

// symbol is a letter or an operator; brackets keep their size, for rows are not grouped by them.
func symbol(s string) string {
	switch r, _ := utf8.DecodeRuneInString(s); {
	case unicode.IsLetter(r) || r == '∞':
		return "<mi>" + s + "</mi>"
	case strings.Contains("()[]{}|‖⌈⌉⌊⌋⟨⟩", s):
		return `<mo stretchy="false">` + s + "</mo>"
	}
	return "<mo>" + html.EscapeString(s) + "</mo>"
}

// words reads an argument as text, with its spaces.
func (t *texReader) words() string {
	t.rest = strings.TrimLeft(t.rest, " ")
	if !strings.HasPrefix(t.rest, "{") {
		s, _ := t.next()
		return s
	}
	s, rest, ok := strings.Cut(t.rest[1:], "}")
	t.wrong, t.rest = t.wrong || !ok, rest
	return s
}
