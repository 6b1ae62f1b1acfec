package notebook

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mathML converts a TeX formula, including its dollar signs, to MathML, which browsers show without a script. It
// returns "" if the formula contains an unknown command or is malformed.
func mathML(tex string) string {
	isBlock := strings.HasPrefix(tex, "$$")
	reader := &texReader{input: strings.Trim(tex, "$")}
	body := reader.row("")
	if reader.isInvalid || reader.input != "" {
		return ""
	}
	if isBlock {
		return `<math display="block">` + body + "</math>"
	}
	return "<math>" + body + "</math>"
}

// TeX commands.
var (
	// texCharacters maps commands that denote a character to this character. A command that is also the name of an HTML
	// entity for the same character is omitted. The value is "" if the entity is a different character.
	texCharacters = map[string]string{
		"epsilon": "ϵ", "varepsilon": "ε", "phi": "ϕ", "varphi": "φ", "ell": "ℓ", "infty": "∞", "partial": "∂",
		"to": "→", "cdot": "⋅", "dots": "…", "ldots": "…", "cdots": "⋯", "|": "‖", "{": "{", "}": "}", "not": "",
	}
	// texSpaces maps commands for spaces to their widths.
	texSpaces = map[string]string{",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.33em", "!": "0", "quad": "1em",
		"qquad": "2em"}
	// texNames lists the names of functions.
	texNames = []string{"max", "min", "log", "ln", "exp", "cos", "sin", "det", "dim", "inf", "sup", "lim"}
	// texAccents maps accents to their characters.
	texAccents = map[string]string{"hat": "^", "tilde": "~", "bar": "‾", "vec": "→", "dot": "˙"}
	// texDouble replaces letters by double-struck ones.
	texDouble = strings.NewReplacer("R", "ℝ", "E", "𝔼", "N", "ℕ", "P", "ℙ", "Z", "ℤ")
	// texStretch lists commands that stretch the following bracket.
	texStretch = []string{"left", "right", "Bigl", "Bigr", "bigl", "bigr"}
)

// texReader converts TeX to MathML while it reads.
type texReader struct {
	input     string // text not read yet
	isInvalid bool   // the formula is malformed or has an unknown command
}

// nextToken reads a token: a character, or a command without its backslash. It first skips spaces. At the end of the
// input, the token is "".
func (t *texReader) nextToken() (token string, isCommand bool) {
	t.input = strings.TrimLeft(t.input, " \n")
	if t.input == "" {
		return "", false
	}
	if t.input[0] != '\\' {
		_, n := utf8.DecodeRuneInString(t.input)
		token, t.input = t.input[:n], t.input[n:]
		return token, false
	}
	n := 1
	for n < len(t.input) && unicode.IsLetter(rune(t.input[n])) {
		n++
	}
	if n == 1 {
		n = min(2, len(t.input))
	}
	token, t.input = t.input[1:n], t.input[n:]
	return token, true
}

// row returns an mrow element. It reads up to end and skips end, or reads the whole input if end is "". The formula is
// malformed if end is missing.
func (t *texReader) row(end string) string {
	var children strings.Builder
	for {
		t.input = strings.TrimLeft(t.input, " \n")
		if t.input == "" || t.isInvalid {
			t.isInvalid = t.isInvalid || end != ""
			break
		}
		if end != "" && strings.HasPrefix(t.input, end) {
			t.input = t.input[len(end):]
			break
		}
		children.WriteString(t.scripted())
	}
	return "<mrow>" + children.String() + "</mrow>"
}

// scripted reads an atom with its subscript and superscript.
func (t *texReader) scripted() string {
	atom, subscript, superscript := t.atom(), "", ""
	for {
		t.input = strings.TrimLeft(t.input, " \n")
		switch {
		case subscript == "" && strings.HasPrefix(t.input, "_"):
			t.input = t.input[1:]
			subscript = t.argument()
		case superscript == "" && strings.HasPrefix(t.input, "^"):
			t.input = t.input[1:]
			superscript = t.argument()
		case subscript != "" && superscript != "":
			if atom == "<mo>∑</mo>" || atom == "<mo>∏</mo>" {
				return "<munderover>" + atom + subscript + superscript + "</munderover>"
			}
			return "<msubsup>" + atom + subscript + superscript + "</msubsup>"
		case subscript != "":
			return "<msub>" + atom + subscript + "</msub>"
		case superscript != "":
			return "<msup>" + atom + superscript + "</msup>"
		default:
			return atom
		}
	}
}

// atom reads a character, a group, or a command with its arguments.
func (t *texReader) atom() string {
	token, isCommand := t.nextToken()
	if !isCommand {
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
		bracket, isCommand := t.nextToken()
		if isCommand {
			bracket = commandCharacter(bracket)
		}
		return `<mo stretchy="true">` + html.EscapeString(bracket) + "</mo>"
	}
	switch token {
	case "frac", "tfrac", "dfrac":
		return "<mfrac>" + t.argument() + t.argument() + "</mfrac>"
	case "sqrt":
		return "<msqrt>" + t.argument() + "</msqrt>"
	case "rm": // as in {\rm text}, where the group ends the text
		roman, _, _ := strings.Cut(t.input, "}")
		t.input = t.input[len(roman):]
		return `<mi mathvariant="normal">` + html.EscapeString(strings.TrimSpace(roman)) + "</mi>"
	case "mathrm", "operatorname":
		return `<mi mathvariant="normal">` + html.EscapeString(t.text()) + "</mi>"
	case "text":
		return "<mtext>" + strings.ReplaceAll(html.EscapeString(t.text()), " ", "\u00a0") + "</mtext>"
	case "mathbb":
		return "<mi>" + texDouble.Replace(html.EscapeString(t.text())) + "</mi>"
	}
	char := commandCharacter(token)
	t.isInvalid = t.isInvalid || char == ""
	return symbol(char)
}

// commandCharacter returns the letter or operator that a command denotes, or "" if there is none.
func commandCharacter(command string) string {
	if char, ok := texCharacters[command]; ok {
		return char
	}
	char := html.UnescapeString("&" + command + ";")
	if firstRune, size := utf8.DecodeRuneInString(char); size < len(char) ||
		!unicode.In(firstRune, unicode.Greek, unicode.Sm, unicode.Ps, unicode.Pe) {
		return ""
	}
	return char
}

// argument reads an argument: an atom, or the first digit of a number.
func (t *texReader) argument() string {
	t.input = strings.TrimLeft(t.input, " \n")
	if t.input == "" || !unicode.IsDigit(rune(t.input[0])) {
		return t.atom()
	}
	digit, _ := t.nextToken()
	return "<mn>" + digit + "</mn>"
}

// character converts a character that is not part of a command. It reads on if the character starts a group or a
// number.
func (t *texReader) character(c string) string {
	switch {
	case c == "{":
		return t.row("}")
	case c == "" || strings.Contains("}_^&%#", c):
		t.isInvalid = true
		return ""
	case c == "'":
		return "<mo>′</mo>"
	case c == "-":
		return "<mo>−</mo>"
	case unicode.IsDigit(rune(c[0])):
		n := 0
		for n < len(t.input) && (unicode.IsDigit(rune(t.input[n])) || t.input[n] == '.' && n+1 < len(t.input) &&
			unicode.IsDigit(rune(t.input[n+1]))) {
			n++
		}
		c, t.input = c+t.input[:n], t.input[n:]
		return "<mn>" + c + "</mn>"
	}
	return symbol(c)
}

// symbol returns the MathML of a letter or operator. Brackets keep their size, because rows are not grouped by
// brackets.
func symbol(s string) string {
	switch r, _ := utf8.DecodeRuneInString(s); {
	case unicode.IsLetter(r) || r == '∞':
		return "<mi>" + s + "</mi>"
	case strings.Contains("()[]{}|‖⌈⌉⌊⌋⟨⟩", s):
		return `<mo stretchy="false">` + s + "</mo>"
	}
	return "<mo>" + html.EscapeString(s) + "</mo>"
}

// text reads an argument as text, including its spaces.
func (t *texReader) text() string {
	t.input = strings.TrimLeft(t.input, " ")
	if !strings.HasPrefix(t.input, "{") {
		token, _ := t.nextToken()
		return token
	}
	group, following, ok := strings.Cut(t.input[1:], "}")
	t.isInvalid, t.input = t.isInvalid || !ok, following
	return group
}
