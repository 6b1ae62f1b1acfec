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

// album is an Output that collects the HTML of displayed values.
type album struct {
	sheet
	pages []string
}

func (a *album) Display(d display.Data) {
	a.pages = append(a.pages, fmt.Sprint(d.Data[display.MIMETypeHTML]))
}
func (a *album) Update(d display.Data) { a.Display(d) }

// TestGrowth simulates the events of a race of two preconditioners during ten seconds. There must be a picture at most
// twice a second, with a curve for each of the two, and a folded picture at the end. A task that ends before
// progressDelay shows nothing, and a stage that does not iterate has no picture.
func TestGrowth(t *testing.T) {
	s := open(t, nil)
	pictures := &album{}
	s.out.begin(pictures)
	start := time.Now()
	line := &progressLine{id: "a", start: start}
	for i := range 1000 {
		for _, name := range []string{"none", "features"} {
			line.update(s, krrlab.Event{Stage: stage.Compare, Detail: name, Iteration: i + 1,
				Residual: math.Exp(-float64(i) / 100), Remaining: -1}, start.Add(time.Duration(i)*10*time.Millisecond))
		}
	}
	if n := len(pictures.pages); n < 10 || n > 20 {
		t.Errorf("%d pictures in ten seconds", n)
	}
	line.finish(s, start.Add(10*time.Second))
	last := pictures.pages[len(pictures.pages)-1]
	if !strings.Contains(last, "10.0 seconds") ||
		!regexp.MustCompile(`(?s)<details>.*data:image/svg\+xml;base64,`).MatchString(last) {
		t.Errorf("at the end %.300s", last)
	}
	figure := line.curves.figure()
	if len(figure.Series) != 2 || figure.Series[0].Name != "none" || len(figure.Series[0].Y) > maxSamples ||
		figure.Series[1].X[len(figure.Series[1].X)-1] != 9.99 || figure.Validate() != nil {
		t.Errorf("%v", figure)
	}
	var solveCurves progressCurves
	for i := range 5 {
		solveCurves.add(krrlab.Event{Stage: stage.Solve, Detail: "float64", Iteration: i + 1, Residual: 1, Bound: 2}, float64(i))
		solveCurves.add(krrlab.Event{Stage: stage.Kernel, Done: i, Total: 9}, float64(i))
	}
	if len(solveCurves.curves) != 2 || solveCurves.curves[1].Name != "bound of the relative error" || solveCurves.curves[1].Y[4] != 2 {
		t.Errorf("%v", solveCurves.curves)
	}
	var search progressCurves
	for i, loss := range []float64{0, 0.5, 0.4, 0.4} {
		search.add(krrlab.Event{Stage: stage.Tune, Detail: "500 rows: best of 3", Loss: loss}, float64(i))
	}
	if figure := search.figure(); figure == nil || figure.Y.Log || figure.Series[0].Name != "500 rows" || len(figure.Series[0].Y) != 3 {
		t.Errorf("a search: %v", figure)
	}
	quiet := &album{}
	s.out.begin(quiet)
	quietLine := &progressLine{id: "b", start: start}
	quietLine.update(s, krrlab.Event{Stage: stage.Solve, Iteration: 1, Residual: 1}, start.Add(progressDelay/2))
	quietLine.finish(s, start.Add(progressDelay/2))
	kernelLine := &progressLine{id: "c", start: start}
	kernelLine.update(s, krrlab.Event{Stage: stage.Kernel, Done: 1, Total: 2}, start.Add(time.Second))
	if len(quiet.pages) != 1 || strings.Contains(quiet.pages[0], "<img") {
		t.Errorf("%q", quiet.pages)
	}
}
