package notebook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMathML checks the MathML of formulas, and that mathML returns nothing for TeX that it does not know or that is
// not complete.
func TestMathML(t *testing.T) {
	for tex, want := range map[string]string{
		`$\frac12x^10$`:          "<mfrac><mn>1</mn><mn>2</mn></mfrac><msup><mi>x</mi><mn>1</mn></msup><mn>0</mn>",
		`$12.5-\lambda_p^{-1}$`:  "<mn>12.5</mn><mo>−</mo><msubsup><mi>λ</mi><mi>p</mi><mrow><mo>−</mo><mn>1</mn></mrow></msubsup>",
		`$\|\hat f\|_2'$`:        `<mo stretchy="false">‖</mo><mover accent="true"><mi>f</mi><mo>^</mo></mover><msub><mo stretchy="false">‖</mo><mn>2</mn></msub><mo>′</mo>`,
		`$\text{<for every } x$`: "<mtext>&lt;for\u00a0every\u00a0</mtext><mi>x</mi>",
		`$\sum_{i=1}^n\sqrt\mu$`: "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><msqrt><mi>μ</mi></msqrt>",
		`$\propto\vartheta\lt$`:  "<mo>∝</mo><mi>ϑ</mi><mo>&lt;</mo>",
		`$Z_{\rm new}$`:          `<msub><mi>Z</mi><mrow><mi mathvariant="normal">new</mi></mrow></msub>`,
		`$\mathbb{<img>R}$`:      "<mi>&lt;img&gt;ℝ</mi>",
		`$\Bigl(\mathrm{tr}K$`:   `<mo stretchy="true">(</mo><mi mathvariant="normal">tr</mi><mi>K</mi>`,
	} {
		testkit.Equal(t, mathML(tex), "<math><mrow>"+want+"</mrow></math>", tex, want)
	}
	for _, tex := range []string{`$\begin{x}$`, `${x$`, `$x}$`, `$x^$`, `$\$`, `$\text{x$`, `$a&b$`, `$\not=$`, `$\circ$`, `$\amp$`} {
		testkit.Equal(t, mathML(tex), "", tex)
	}
}

// TestHostileFormulas checks that no formula can put elements of its own into a page, and that very long or deeply
// nested formulas are left as text.
func TestHostileFormulas(t *testing.T) {
	for _, tex := range []string{"\\mathbb%s", "\\mathrm%s", "\\operatorname%s", "\\text%s", "{\\rm %s}", "\\hat%s",
		"\\left%s", "\\frac%s1", "\\sqrt%s", "x_%s", "%s"} {
		for _, text := range []string{"{<img src=x onerror=y>}", "<b>", "{\"'&lt;&}", "{</mi><script>}",
			"\\text{<i>}"} {
			got := mathML("$" + strings.Replace(tex, "%s", text, 1) + "$")
			for _, tag := range regexp.MustCompile(`</?(\w+)`).FindAllStringSubmatch(got, -1) {
				if !strings.HasPrefix(tag[1], "m") {
					t.Errorf("%s with %s: %s", tex, text, got)
				}
			}
		}
	}
	for _, text := range []string{"$" + strings.Repeat("{", 3_000_000) + "x$", strings.Repeat("$x ", 200_000),
		"$$" + strings.Repeat("\\hat", 500_000) + "$$",
		"$" + strings.Repeat("x_{", 100_000) + strings.Repeat("}", 100_000) + "$"} {
		if page, err := markdown(text); err != nil || strings.Contains(string(page), "<math") {
			t.Errorf("%.20s…: %.80s, %v", text, page, err)
		}
	}
}

// TestMathMLOfNotebooks checks that all formulas in the notebooks of the project can be converted.
func TestMathMLOfNotebooks(t *testing.T) {
	files, _ := filepath.Glob("../../notebooks/*.ipynb")
	count := 0
	for _, file := range files {
		content := testkit.Must(os.ReadFile(file))
		var notebook struct {
			Cells []struct {
				Type   string `json:"cell_type"`
				Source any    `json:"source"`
			} `json:"cells"`
		}
		testkit.OK(t, json.Unmarshal(content, &notebook))
		for _, cell := range notebook.Cells {
			if cell.Type != "markdown" {
				continue
			}
			for src := joinLines(cell.Source); src != ""; {
				formula := formulaPattern.FindString(src)
				if formula != "" && mathML(formula) == "" {
					t.Errorf("%s: no MathML for %s", filepath.Base(file), formula)
				}
				count += min(len(formula), 1)
				src = src[max(len(formula), 1):]
			}
		}
	}
	if count < 300 {
		t.Errorf("%d formulas", count)
	}
}
