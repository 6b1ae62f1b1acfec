package display_test

import (
	"errors"
	"fmt"
	"image"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/plots"
)

// page is a value with an HTML method.
type page struct{}

func (page) HTML() string   { return "<b>x</b>" }
func (page) String() string { return "x" }

// drawing is a value with methods for pictures; SVG returns err.
type drawing struct{ err error }

func (d *drawing) SVG() (string, error) { return "<svg/>", d.err }
func (d *drawing) PNG() []byte          { return []byte("png") }

// panicker is a value whose HTML method panics.
type panicker struct{}

func (panicker) HTML() string   { panic("no") }
func (panicker) String() string { return "panicker" }

// figureReport is a value whose HTML contains the HTML of a figure.
type figureReport struct{ figure *plots.Figure }

func (r figureReport) HTML() string { return "<p>a</p>" + r.figure.HTML() }

// node is a value that can contain another node.
type node struct {
	Name string
	X    []float64
	Next *node
	Err  error
	M    map[int]int
}

// TestRender checks the representations of one value of every kind: exactly the wanted MIME types, with the wanted text
// in each. Show must return an error for values that cannot be shown.
func TestRender(t *testing.T) {
	figure := plots.Convergence("c", 0, plots.Series{Name: "s", X: []float64{0, 1}, Y: []float64{1, 0.1}})
	captioned := *figure
	captioned.Title, captioned.Caption = "c <d>", "what is seen"
	nested := node{Name: "n", X: make([]float64, 5000), M: map[int]int{10: 2, 2: 1}, Next: &node{Err: errors.New("ink")}}
	x := points.NewDense(7, 10, nil)
	x.Row(0)[0] = 1.5
	dataset := &datasets.Dataset{Name: "a<b", Task: datasets.Classification, X: x, Class: []int{0, 1, 0, 1, 0, 1, 0},
		Labels: []string{"no", "yes"}, Columns: []string{"age"}}
	frame := dataframe.New(series.New([]float64{1.5, 2}, series.Float, "a<b"),
		series.New([]string{"x", "y"}, series.String, "s"))
	broken := plot.New()
	broken.Title.Text, broken.Y.Scale, broken.Y.Min = "b", plot.LogScale{}, -1
	gaussian := kernel.Gaussian{Sigma: 2}
	k := testkit.Must(gram.New(t.Context(), gaussian, x, 0.5, &gram.Options{}))
	plainText := func(text string) map[string]string { return map[string]string{"text/plain": text} }
	type config struct {
		Kernel                    kernel.Kernel
		Lambda                    float64
		A, B, C, D, E, F, G, H, I int
	}
	// Show returns an error for the values with these names.
	showFails := map[string]bool{"panics": true, "invalid plot": true, "invalid figure": true}
	for name, test := range map[string]struct {
		value     any
		wantParts map[string]string // part of each representation, by MIME type
	}{
		"number":      {3, map[string]string{"text/plain": "3"}},
		"nil":         {nil, map[string]string{"text/plain": "nil"}},
		"nil value":   {(*drawing)(nil), map[string]string{"text/plain": "nil"}},
		"struct":      {struct{ A int }{3}, map[string]string{"text/plain": "{A:3}"}},
		"slice":       {make([]int, 5000), map[string]string{"text/plain": "5000 elements"}},
		"long string": {strings.Repeat("ü", 20000), map[string]string{"text/plain": "40000 bytes"}},
		"HTML":        {page{}, map[string]string{"text/html": "<b>x</b>", "text/plain": "x"}},
		"SVG": {&drawing{}, map[string]string{"image/svg+xml": "<svg/>", "image/png": "",
			"text/html": `src="data:image/svg+xml;base64,PHN2Zy8+">`, "text/plain": "err"}},
		"failing SVG": {&drawing{errors.New("ink")}, map[string]string{"image/png": "", "text/plain": "SVG: ink"}},
		// The methods of drawing have pointer receivers.
		"drawing by value": {drawing{}, map[string]string{"image/svg+xml": "<svg/>", "image/png": "",
			"text/html": `src="data:image/svg+xml;base64,PHN2Zy8+">`, "text/plain": "err"}},
		"panics": {panicker{}, map[string]string{"text/plain": "panicker\nHTML panicked: no"}},
		"image":  {image.NewGray(image.Rect(0, 0, 2, 3)), map[string]string{"image/png": "", "text/plain": ""}},
		"figure": {figure, map[string]string{"image/svg+xml": "<svg", "image/png": "",
			"text/html": `<figure class="krr-figure">`, "text/plain": ""}},
		"captioned": {&captioned, map[string]string{"image/svg+xml": "<svg", "image/png": "",
			"text/html": `alt="c &lt;d&gt;" src="data:image/svg+xml;base64,`, "text/plain": ""}},
		"figure in HTML": {figureReport{figure}, map[string]string{"text/html": `<p>a</p><figure class="krr-figure">
<img `, "text/plain": ""}},
		"plot": {plot.New(), map[string]string{"image/svg+xml": "<svg", "image/png": "",
			"text/html": `<img style="max-width:100%;height:auto" alt="plot &#34;&#34;" src=`, "text/plain": "plot"}},
		"invalid plot": {broken,
			map[string]string{"text/plain": "plot \"b\"\ndisplay panicked: Values must be greater than 0 for a " +
				"log scale."}},
		"invalid figure": {&plots.Figure{Title: "t"}, map[string]string{"image/svg+xml": "<svg", "image/png": "",
			"text/html": "<pre>", "text/plain": "figure: "}},
		"SVG text": {display.SVG("<svg/>"), map[string]string{"image/svg+xml": "<svg/>",
			"text/html":  `alt="&lt;image/svg+xml, 6 bytes&gt;" src="data:image/svg+xml;base64,PHN2Zy8+">`,
			"text/plain": "6 bytes"}},
		"SVG bytes": {display.Any("image/svg+xml", []byte("<svg/>")),
			map[string]string{"image/svg+xml": "<svg/>", "text/html": "PHN2Zy8+", "text/plain": "6 bytes"}},
		"data set": {dataset, map[string]string{"text/html": "The first 5 of 7 points, 8 of 10 features.",
			"text/plain": "a<b: classification, n = 7, d = 10, classes no, yes"}},
		"training and test data": {&datasets.TrainTest{Train: dataset}, map[string]string{"text/html": ">1.5<",
			"text/plain": "test     none"}},
		"empty training and test data": {&datasets.TrainTest{}, map[string]string{"text/html": "training none",
			"text/plain": "test     none"}},
		"nested": {&nested,
			map[string]string{"text/plain": "&{Name:n X:[0 0 0 0 0 0 0 0 0 0 0 0 … 5000 elements in all] " +
				"Next:&{Name: X:[] Next:nil Err:ink M:map[]} Err:nil M:map[2:1 10:2]}"}},
		"huge":            {make([][20]node, 50), map[string]string{"text/plain": "show its fields one by one"}},
		"matrix":          {mat.NewDense(30, 2, nil), map[string]string{"text/html": "30 × 2", "text/plain": "⋮"}},
		"matrix by value": {*mat.NewDense(3, 2, nil), map[string]string{"text/html": "3 × 2", "text/plain": "3 × 2"}},
		"empty matrix":    {mat.SymDense{}, map[string]string{"text/html": "0 × 0", "text/plain": "0 × 0"}},
		"data set by value": {*dataset, map[string]string{"text/html": "The first 5 of 7 points",
			"text/plain": "a<b: classification"}},
		"frame":          {frame, map[string]string{"text/html": "a&lt;b (float)", "text/plain": "2 rows × 2 columns"}},
		"series":         {frame.Col("s"), map[string]string{"text/html": "string", "text/plain": ""}},
		"kernel matrix":  {k, plainText("K+λI, kernel gaussian(sigma=2), λ = 0.5; K 7×7 in float")},
		"points":         {x, plainText("7 × 10 *points.Dense")},
		"preconditioner": {precond.Identity{N: 3}, plainText("{N:3}")},
		"kernel":         {kernel.Laplacian{Sigma: 3}, plainText("laplacian(sigma=3)")},
		"config": {config{Kernel: gaussian, Lambda: 0.5},
			plainText("{Kernel:gaussian(sigma=2) Lambda:0.5 … 9 fields are zero}")},
		"formula": {display.Math("x"), map[string]string{"text/latex": "$$x$$", "text/plain": "x"}},
		"bytes": {display.Any("", []byte("\x89PNG\r\n\x1a\n")),
			map[string]string{"image/png": "", "text/plain": "8 bytes"}},
	} {
		if _, err := display.Show(test.value); (err != nil) != showFails[name] || err != nil &&
			!strings.HasPrefix(err.Error(), "it cannot be shown: ") {
			t.Errorf("%s: %v, want an error: %v", name, err, showFails[name])
		}
		got := display.Render(test.value).Data
		// A description is cut after 2,000 bytes, and a note follows. A string is shown as it is up to 20,000 bytes.
		if text, _ := got["text/plain"].(string); len(text) > 2200 && name != "long string" {
			t.Errorf("%s: a text of %d bytes", name, len(text))
		}
		for mime, part := range test.wantParts {
			if s := fmt.Sprint(got[mime]); got[mime] == nil || !strings.Contains(s, part) {
				t.Errorf("%s: %s is %.80q, want %q", name, mime, s, part)
			}
		}
		testkit.Equal(t, len(got), len(test.wantParts), name, slices.Sorted(maps.Keys(got)))
	}
}

// ExampleRender prints the text of a matrix in a notebook.
func ExampleRender() {
	fmt.Println(display.Render(mat.NewDense(2, 2, []float64{1, 0.5, 0.5, 1})).Data[display.MIMETypeText])
	// Output:
	// 2 × 2 *mat.Dense
	//      0    1
	// ─  ───  ───
	// 0    1  0.5
	// 1  0.5    1
}
