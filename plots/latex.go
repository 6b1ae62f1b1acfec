package plots

import (
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
	s = latexEscape.Replace(s)
	for _, op := range []string{"^", "_"} {
		s = joinScripts(s, op)
	}
	return s
}

// joinScripts turns $^{a}$$^{b}$ into $^{ab}$.
func joinScripts(s, op string) string {
	return strings.ReplaceAll(s, "}$$"+op+"{", "")
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
		b.WriteString(map[Align]string{Left: "l", Right: "r", Center: "c"}[t.align(j)])
	}
	b.WriteString("}\n\\toprule\n")
	row := func(cell func(j int) string) {
		for j := range t.Columns {
			if j > 0 {
				b.WriteString(" & ")
			}
			s := cell(j)
			if j == 0 && strings.HasPrefix(s, "[") {
				s = "{}" + s // \\ would take [ for its argument
			}
			b.WriteString(s)
		}
		b.WriteString(" \\\\\n")
	}
	row(func(j int) string { return latex(t.Columns[j].head()) })
	b.WriteString("\\midrule\n")
	for i := range t.Rows {
		row(func(j int) string {
			if _, ok := t.cell(i, j).Float(); ok {
				return latexNumber(t.show(i, j))
			}
			return latex(t.show(i, j))
		})
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

// latexNumber typesets a number that show has written.
func latexNumber(s string) string {
	if m, e, ok := strings.Cut(s, "e"); ok && strings.Trim(m, "+-0123456789.") == "" && strings.Trim(e, "+-0123456789") == "" {
		return "$" + m + "\\times 10^{" + e + "}$"
	}
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0123456789.,") == "" {
		return "$" + strings.ReplaceAll(s, ",", "{,}") + "$"
	}
	return latex(s)
}
