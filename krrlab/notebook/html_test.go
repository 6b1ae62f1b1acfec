package notebook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestStreamWithoutName checks that a stream without a name, as another program may save it, has no class on a page.
func TestStreamWithoutName(t *testing.T) {
	testkit.Equal(t, outputOnPage(map[string]any{"output_type": "stream", "text": "a"}), pageOutput{Text: "a"})
}

// TestHTMLPage runs a notebook with a failing cell and checks its HTML page: Markdown with formulas, escaped code and
// outputs, the figures with one common script, and the error message of the failing cell. The notebook itself must not
// change.
func TestHTMLPage(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "a.ipynb"), filepath.Join(dir, "a.html")
	writeNotebookWith := func(cells string) {
		testkit.OK(t, os.WriteFile(file, []byte(`{"cells":[`+cells+`],"metadata":{},"nbformat":4,"nbformat_minor":5}`),
			0o600))
	}
	codeCell := func(src string) string {
		return `{"cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":` + src + `}`
	}
	writeNotebookWith(`{"cell_type":"markdown","metadata":{},"source":["# The *title*\n","$a_i<b_i$ and _so_ $5 or 6, ` +
		"`$x_1$`" + `\n\n","$$\\sum_i\nx_i$$\n\n| a | b |\n|---|---|\n| 1 | $x_j$ |\n\n$\\unknown<x$\n"]},` +
		codeCell(`["import \"github.com/krrlab/lab/plots\"\n","fmt.Println(\"a < b\")\n","plots.Convergence(\"one\", 0, plots.Series{Y: []float64{1, 0.1}})"]`) + `,` +
		codeCell(`"plots.Convergence(\"two\", 0, plots.Series{Y: []float64{1, 0.1}})"`) + `,` + codeCell(`"panic(\"<here>\")"`))
	before, _ := os.ReadFile(file)
	testkit.Fails(t, Run(t.Context(), file, "", &Options{HTML: page}), "<here>")
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("the notebook was changed")
	}
	content := testkit.Must(os.ReadFile(page))
	got := string(content)
	testkit.Contains(t, got,
		"<title>The *title*</title>", "<em>title</em>",
		"<math><mrow><msub><mi>a</mi><mi>i</mi></msub><mo>&lt;</mo><msub><mi>b</mi><mi>i</mi></msub></mrow></math> and <em>so</em> $5 or 6, <code>$x_1$</code>",
		`<p><math display="block"><mrow><msub><mo>∑</mo><mi>i</mi></msub><msub><mi>x</mi><mi>i</mi></msub></mrow></math></p>`, "<td><math><mrow><msub><mi>x</mi><mi>j</mi></msub></mrow></math></td>", "$\\unknown&lt;x$",
		"<span>[1]</span><pre>import &#34;github.com/krrlab/lab/plots&#34;\nfmt.Println(&#34;a &lt; b&#34;)",
		`<pre class="stdout">a &lt; b`, `<figure class="krr-figure">`, `<pre class="error">`, "&lt;here&gt;",
	)
	if scriptCount := strings.Count(got, "class Panel"); scriptCount != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("%d scripts, or colors of a terminal", scriptCount)
	}
	if scriptStart := strings.Index(got, "class Panel"); scriptStart < strings.LastIndex(got, `class="krr-figure"`) {
		t.Error("the script stands before a figure")
	}
}
