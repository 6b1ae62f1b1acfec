package plots

import (
	"regexp"
	"strings"
)

// latexEscape writes every special character of LaTeX, and the symbols of the method,
// so that they compile with any engine.
var latexEscape = func() *strings.Replacer {
	pairs := []string{
		`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
		"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
		"<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, `"`, `\textquotedbl{}`,
		"\r\n", " ", "\n", " ", "\r", " ", "\t", " ",
	}
	math := map[string]string{
		"α": `\alpha`, "β": `\beta`, "γ": `\gamma`, "δ": `\delta`, "ε": `\epsilon`, "η": `\eta`, "θ": `\theta`,
		"κ": `\kappa`, "λ": `\lambda`, "μ": `\mu`, "ν": `\nu`, "ξ": `\xi`, "π": `\pi`, "ρ": `\rho`, "σ": `\sigma`,
		"τ": `\tau`, "φ": `\varphi`, "ω": `\omega`, "Σ": `\Sigma`, "Λ": `\Lambda`, "×": `\times`, "−": `-`,
		"≤": `\le`, "≥": `\ge`, "≈": `\approx`, "∞": `\infty`, "√": `\surd`, "±": `\pm`, "·": `\cdot`, "‖": `\|`,
		"→": `\to`, "∈": `\in`, "ℝ": `\mathbf{R}`, "ᵀ": `^{T}`,
	}
	for from, to := range math {
		pairs = append(pairs, from, "$"+to+"$")
	}
	for _, t := range []struct {
		from, to, op string
	}{{raised, raisedP, "^"}, {lowered, loweredP, "_"}} {
		to := []rune(strings.ReplaceAll(t.to, "−", "-"))
		for i, r := range []rune(t.from) {
			if r != 'ᵀ' {
				pairs = append(pairs, string(r), "$"+t.op+"{"+string(to[i])+"}$")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}()

// latex escapes s; sub- and superscripts in a row become one group.
func latex(s string) string {
	s = strings.ReplaceAll(latexEscape.Replace(s), "}$$^{", "")
	return strings.ReplaceAll(s, "}$$_{", "")
}

// LaTeX returns the table as a table environment for the booktabs package
// (\usepackage{booktabs}). Numbers with an exponent are typeset as m × 10^p, and
// Greek letters and scripts as mathematics.
func (t *Table) LaTeX() string {
	var b strings.Builder
	b.WriteString("\\begin{table}\n\\centering\n")
	switch {
	case t.Title != "" && t.Caption != "":
		b.WriteString("\\caption{" + latex(sentence(t.Title)) + " " + latex(t.Caption) + "}\n")
	case t.Title != "" || t.Caption != "":
		b.WriteString("\\caption{" + latex(t.Title+t.Caption) + "}\n")
	}
	b.WriteString("\\begin{tabular}{")
	for j := range t.Columns {
		b.WriteString(map[Align]string{Left: "l", Right: "r"}[t.align(j)])
	}
	b.WriteString("}\n\\toprule\n")
	for i, row := range t.cells(latexCell) {
		if len(row) > 0 && strings.HasPrefix(row[0], "[") {
			row[0] = "{}" + row[0] // \\ would take [ for its argument
		}
		b.WriteString(strings.Join(row, " & ") + " \\\\\n")
		if i == 0 {
			b.WriteString("\\midrule\n")
		}
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n\\end{table}\n")
	return b.String()
}

// sentence ends s with a full stop.
func sentence(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:") {
		return s
	}
	return s + "."
}

var latexPower, latexNegative = regexp.MustCompile(`^(-?[0-9.]+)e(-?[0-9]+)$`), regexp.MustCompile(`^-[0-9.,]+$`)

// latexCell writes a cell, a number in it as mathematics where that differs.
func latexCell(s string) string {
	if m := latexPower.FindStringSubmatch(s); m != nil {
		return "$" + m[1] + "\\times 10^{" + m[2] + "}$"
	}
	if latexNegative.MatchString(s) {
		return "$" + strings.ReplaceAll(s, ",", "{,}") + "$"
	}
	return latex(s)
}
