package stage

import (
	"context"
	"encoding/json"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/plots"
)

// TestRoundingInTexts checks that bounds are rounded outward, and that texts say what is unknown.
func TestRoundingInTexts(t *testing.T) {
	for _, texts := range [][2]string{
		{"[" + StorageErrorText(0) + StorageErrorText(Unknown) + "]", "[]"},
		{StorageErrorText(2e-3), ", ‖E‖₂ ≲ 2.0e-03"},
		{IntervalText(estimate.Interval{Lo: 1.23456, Value: 2.00004, Hi: 3.45612, Confidence: 0.95}),
			"2 in [1.234, 3.457] with 95 %"},
		{IntervalText(estimate.Interval{Lo: 1.23456, Value: math.NaN(), Hi: math.Inf(1), Confidence: 1}),
			"not known, at least 1.234, without an upper bound"},
		{"[" + Event{Stage: Load, Remaining: -1}.String() + "]", "[load]"},
	} {
		testkit.Contains(t, texts[0], texts[1])
	}
}

// echoStage is both the options and the result of a stage: Run returns its receiver.
type echoStage struct {
	With  Entries
	Value Number
}

func (e *echoStage) Run(context.Context, Bench) (Stage, error) { return e, nil }
func (e *echoStage) String() string                            { return "lines" }
func (e *echoStage) Table() *plots.Table                       { return &plots.Table{} }
func (e *echoStage) Plot() *plots.Figure                       { return &plots.Figure{} }
func (e *echoStage) HTML() string                              { return HTML(e) }

// echoOptions are options whose Run has a value receiver, as in most stages.
type echoOptions struct{ echoStage }

func (o echoOptions) Run(context.Context, Bench) (Stage, error) { return &o.echoStage, nil }

// TestFigureWithoutDraw checks that a program without plots/draw, such as this test, shows which package it must
// import, and saves nothing.
func TestFigureWithoutDraw(t *testing.T) {
	figure, file := plots.Convergence("t", 0, plots.Series{Y: []float64{1, 2}}), filepath.Join(t.TempDir(), "f.svg")
	const want = `has to import _ "github.com/krrlab/lab/plots/draw"`
	testkit.Fails(t, figure.Save(file), want)
	testkit.Contains(t, html.UnescapeString(figure.HTML()+figure.SVG()), "<pre>plots: ", "</text></svg>", want)
	if _, err := os.Stat(file); figure.PNG() != nil || err == nil {
		t.Error("a picture is made without plots/draw")
	}
}

// TestJSON checks that options and numbers are unchanged by a conversion to JSON and back, and that unknown keys and
// entries without a text are refused.
func TestJSON(t *testing.T) {
	definition := &Definition{Name: "x", Options: echoOptions{}, Result: (*echoStage)(nil)}
	decoded, err := definition.Decode([]byte(`{"With": ["a b", "c"], "Value": 2}`))
	if options, ok := decoded.(*echoOptions); err != nil || !ok || options.With.String() != "[a b c]" ||
		options.Value != 2 {
		t.Errorf("options decoded as %+v, error %v", decoded, err)
	}
	if result, ok := definition.NewResult().(*echoStage); !ok || result.Value != 0 ||
		!strings.Contains(result.HTML(), "the numbers") {
		t.Errorf("a new result is %#v, want a zero *echoStage with a figure as HTML", result)
	}
	testkit.Fails(t, testkit.ErrOf(definition.Decode([]byte(`{"none": 1}`))), "options of x: ")
	testkit.Fails(t, testkit.ErrOf(json.Marshal(Entry{})), "cannot be sent to ranks")
	testkit.OK(t, (*Entries)(&decoded.(*echoOptions).With).Set("d"))
	for number, want := range map[Number]string{2.5: "2.5", Unknown: "null", Number(math.Inf(-1)): "null"} {
		text := testkit.Must(json.Marshal(number))
		var back Number
		if err := json.Unmarshal(text, &back); string(text) != want || err != nil || back != number && back.Known() {
			t.Errorf("%g in JSON: %s, want %s; read as %g, error %v", number, text, want, back, err)
		}
	}
	name := filepath.Join(t.TempDir(), "a.json")
	testkit.OK(t, WriteJSON(name, decoded))
	testkit.Fails(t, WriteJSON(name, math.NaN), "krrlab: json: unsupported type")
	testkit.Equal(t, RoundDigits(1.23456, 3), 1.23)
}
