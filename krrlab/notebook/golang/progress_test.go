package golang

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/stage"
)

// album collects the HTML of displayed values.
type album struct {
	sheet
	pages []string
}

func (a *album) Display(d display.Data) {
	a.pages = append(a.pages, fmt.Sprint(d.Data[display.MIMETypeHTML]))
}
func (a *album) Update(d display.Data) { a.Display(d) }

// TestGrowth lets a race run for ten seconds of events: a picture at most twice a second, each later one of more than
// the one before, a curve for each that runs, and at the end the picture folded away. Nothing is shown of what is
// over at once, and a stage that does not iterate has no picture.
func TestGrowth(t *testing.T) {
	s := open(t, nil)
	a := &album{}
	s.out.begin(a)
	start := time.Now()
	p := &progressLine{id: "a", start: start}
	for i := range 1000 {
		for _, name := range []string{"none", "features"} {
			p.update(s, krrlab.Event{Stage: stage.Compare, Detail: name, Iteration: i + 1,
				Residual: math.Exp(-float64(i) / 100), Remaining: -1}, start.Add(time.Duration(i)*10*time.Millisecond))
		}
	}
	if n := len(a.pages); n < 10 || n > 20 {
		t.Errorf("%d pictures in ten seconds", n)
	}
	p.finish(s, start.Add(10*time.Second))
	last := a.pages[len(a.pages)-1]
	if !strings.Contains(last, "10.0 seconds") ||
		!regexp.MustCompile(`(?s)<details>.*data:image/svg\+xml;base64,`).MatchString(last) {
		t.Errorf("at the end %.300s", last)
	}
	f := p.curves.figure()
	if len(f.Series) != 2 || f.Series[0].Name != "none" || len(f.Series[0].Y) > maxSamples ||
		f.Series[1].X[len(f.Series[1].X)-1] != 9.99 || f.Validate() != nil {
		t.Errorf("%v", f)
	}
	var g progressCurves
	for i := range 5 {
		g.add(krrlab.Event{Stage: stage.Solve, Detail: "float64", Iteration: i + 1, Residual: 1, Bound: 2}, float64(i))
		g.add(krrlab.Event{Stage: stage.Kernel, Done: i, Total: 9}, float64(i))
	}
	if len(g.curves) != 2 || g.curves[1].Name != "bound of the relative error" || g.curves[1].Y[4] != 2 {
		t.Errorf("%v", g.curves)
	}
	var search progressCurves
	for i, loss := range []float64{0, 0.5, 0.4, 0.4} {
		search.add(krrlab.Event{Stage: stage.Tune, Detail: "500 rows: best of 3", Loss: loss}, float64(i))
	}
	if f := search.figure(); f == nil || f.Y.Log || f.Series[0].Name != "500 rows" || len(f.Series[0].Y) != 3 {
		t.Errorf("a search: %v", f)
	}
	quiet := &album{}
	s.out.begin(quiet)
	q := &progressLine{id: "b", start: start}
	q.update(s, krrlab.Event{Stage: stage.Solve, Iteration: 1, Residual: 1}, start.Add(progressDelay/2))
	q.finish(s, start.Add(progressDelay/2))
	line := &progressLine{id: "c", start: start}
	line.update(s, krrlab.Event{Stage: stage.Kernel, Done: 1, Total: 2}, start.Add(time.Second))
	if len(quiet.pages) != 1 || strings.Contains(quiet.pages[0], "<img") {
		t.Errorf("%q", quiet.pages)
	}
}
