package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/plots"
)

// TestRoundingInTexts checks that bounds are rounded outward, and that texts say what is unknown.
func TestRoundingInTexts(t *testing.T) {
	for _, c := range [][2]string{
		{"[" + StorageErrorText(0) + StorageErrorText(Unknown) + "]", "[]"}, {StorageErrorText(2e-3),
			", ‖E‖₂ ≲ 2.0e-03"},
		{IntervalText(estimate.Interval{Lo: 1.23456, Value: 2.00004, Hi: 3.45612, Confidence: 0.95}),
			"2 in [1.234, 3.457] with 95 %"},
		{IntervalText(estimate.Interval{Lo: 1.23456, Value: math.NaN(), Hi: math.Inf(1), Confidence: 1}),
			"not known, at least 1.234, without an upper bound"},
		{"[" + Event{Stage: Load, Remaining: -1}.String() + "]", "[load]"},
	} {
		testkit.Contains(t, c[0], c[1])
	}
}

// named is a type that is both the options and the result of a stage.
type named struct {
	With  Entries
	Value Number
}

func (n *named) Run(context.Context, Bench) (Stage, error) { return n, nil }
func (n *named) String() string                            { return "lines" }
func (n *named) Table() *plots.Table                       { return &plots.Table{} }
func (n *named) Plot() *plots.Figure                       { return &plots.Figure{} }
func (n *named) HTML() string                              { return HTML(n) }

// options are the options of a Definition, as a value.
type options struct{ named }

func (o options) Run(context.Context, Bench) (Stage, error) { return &o.named, nil }

// TestNoDrawer checks that a program without plots/draw, such as this test, shows which package it must import, and
// saves nothing.
func TestNoDrawer(t *testing.T) {
	f, file := plots.Convergence("t", 0, plots.Series{Y: []float64{1, 2}}), filepath.Join(t.TempDir(), "f.svg")
	const want = `has to import _ "github.com/krrlab/lab/plots/draw"`
	testkit.Fails(t, f.Save(file), want)
	testkit.Contains(t, html.UnescapeString(f.HTML()+f.SVG()), "<pre>plots: ", "</text></svg>", want)
	if _, err := os.Stat(file); f.PNG() != nil || err == nil {
		t.Error("there is a picture")
	}
}

// TestJSON checks that options and numbers survive JSON, and that unknown keys and entries without a text are refused.
func TestJSON(t *testing.T) {
	d := &Definition{Name: "x", Options: options{}, Result: (*named)(nil)}
	r, err := d.Decode([]byte(`{"With": ["a b", "c"], "Value": 2}`))
	if o, ok := r.(*options); err != nil || !ok || o.With.String() != "[a b c]" || o.Value != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if n, ok := d.NewResult().(*named); !ok || n.Value != 0 || !strings.Contains(n.HTML(), "the numbers") {
		t.Error("a result of another type")
	}
	testkit.Fails(t, testkit.ErrOf(d.Decode([]byte(`{"none": 1}`))), "options of x: ")
	testkit.Fails(t, testkit.ErrOf(json.Marshal(Entry{})), "cannot be sent to ranks")
	testkit.OK(t, (*Entries)(&r.(*options).With).Set("d"))
	for v, want := range map[Number]string{2.5: "2.5", Unknown: "null", Number(math.Inf(-1)): "null"} {
		text := testkit.Must(json.Marshal(v))
		var back Number
		if err := json.Unmarshal(text, &back); string(text) != want || err != nil || back != v && back.Known() {
			t.Errorf("%g: %s, %g", v, text, back)
		}
	}
	name := filepath.Join(t.TempDir(), "a.json")
	testkit.OK(t, WriteJSON(name, r))
	testkit.Fails(t, WriteJSON(name, math.NaN), "krrlab: json: unsupported type")
	testkit.Equal(t, RoundDigits(1.23456, 3), 1.23)
}

// TestMemory checks MemoryWith and LowRankBytes, and the progress and the times that Progress, Timed and Lap report.
func TestMemory(t *testing.T) {
	k := &Gram{Matrix: testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(9, 1, nil), 1, nil))}
	p := &Problem{Header: Header{N: 10}, Comm: comm.Alone()}
	for limit, want := range map[int64]int64{0: math.MaxInt64, k.Bytes() + 17: 10, k.Bytes() + 7: 0, 1: -6 - k.Bytes()} {
		p.Memory = accel.Budget{Limit: limit, Used: 7}
		testkit.Equal(t, testkit.Must(p.MemoryWith(t.Context(), k)).Free(), want, limit)
	}
	testkit.Equal(t, p.LowRankBytes(3), 4*10*3+24*9)
	var events []string
	progress := Progress(t.Context(), func(_ context.Context, e Event) {
		events = append(events, fmt.Sprint(e.Stage, e.Done, e.Total, e.Remaining < 0, e.Remaining > 0))
	}, Kernel)
	for done := range 3 {
		progress(done, 2)
	}
	testkit.Equal(t, strings.Join(events, "; "), "kernel0 2 true false; kernel1 2 false true; kernel2 2 false false")
	anHourAgo := time.Now().Add(-time.Hour)
	seconds := 1.
	testkit.OK(t, Timed(&seconds, func() error { return nil }))
	if lap := Lap(&anHourAgo); lap < 3600 || lap > 7200 || time.Since(anHourAgo) > time.Hour/2 || seconds < 1 || seconds > 999 {
		t.Errorf("a lap of %g s, %g s", lap, seconds)
	}
}
