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

// htmlRecorder is an Output that collects the HTML of displayed values.
type htmlRecorder struct {
	outputRecorder
	html []string
}

// Display implements Output.
func (r *htmlRecorder) Display(d display.Data) {
	r.html = append(r.html, fmt.Sprint(d.Data[display.MIMETypeHTML]))
}

// Update implements Output.
func (r *htmlRecorder) Update(d display.Data) { r.Display(d) }

// TestProgressPictures simulates the events of a race of two preconditioners during ten seconds. There must be at least
// ten pictures in all, at most two in a second, with a curve for each of the two, and a folded picture at the end. A
// task that ends before progressDelay shows nothing, and a stage that does not iterate has no picture.
func TestProgressPictures(t *testing.T) {
	s := openSession(t, nil)
	pictures := &htmlRecorder{}
	s.out.startCell(pictures)
	start := time.Now()
	line := &progressLine{out: s.out, id: "a", start: start}
	for i := range 1000 {
		for _, name := range []string{"none", "features"} {
			line.update(krrlab.Event{Stage: stage.Compare, Detail: name, Iteration: i + 1,
				Residual: math.Exp(-float64(i) / 100), Remaining: -1}, start.Add(time.Duration(i)*10*time.Millisecond))
		}
	}
	if count := len(pictures.html); count < 10 || count > 20 {
		t.Errorf("%d pictures in ten seconds, want 10 to 20", count)
	}
	line.finish(start.Add(10 * time.Second))
	last := pictures.html[len(pictures.html)-1]
	if !strings.Contains(last, "10.0 seconds") ||
		!regexp.MustCompile(`(?s)<details>.*data:image/svg\+xml;base64,`).MatchString(last) {
		t.Errorf("at the end, want the time and a folded picture: %.300s", last)
	}
	figure := line.curves.figure()
	if len(figure.Series) != 2 || figure.Series[0].Name != "none" || len(figure.Series[0].Y) > maxSamples ||
		figure.Series[1].X[len(figure.Series[1].X)-1] != 9.99 || // the time of the last event in seconds
		figure.Validate() != nil {
		t.Errorf("the curves of two preconditioners: %v", figure)
	}
	quiet := &htmlRecorder{}
	s.out.startCell(quiet)
	shortLine := &progressLine{out: s.out, id: "b", start: start}
	shortLine.update(krrlab.Event{Stage: stage.Solve, Iteration: 1, Residual: 1}, start.Add(progressDelay/2))
	shortLine.finish(start.Add(progressDelay / 2))
	kernelLine := &progressLine{out: s.out, id: "c", start: start}
	kernelLine.update(krrlab.Event{Stage: stage.Kernel, Done: 1, Total: 2}, start.Add(time.Second))
	if len(quiet.html) != 1 || strings.Contains(quiet.html[0], "<img") { // that of kernelLine
		t.Errorf("want one line without a picture: %q", quiet.html)
	}
}

// TestProgressCurves checks the curves of a solve with a bound of its error, and those of a search, which has a point
// for each event with a loss.
func TestProgressCurves(t *testing.T) {
	var solveCurves progressCurves
	for i := range 5 {
		solveCurves.add(krrlab.Event{Stage: stage.Solve, Detail: "float64", Iteration: i + 1, Residual: 1, Bound: 2}, float64(i))
		solveCurves.add(krrlab.Event{Stage: stage.Kernel, Done: i, Total: 9}, float64(i))
	}
	if len(solveCurves.curves) != 2 || solveCurves.curves[1].Name != "bound of the relative error" || solveCurves.curves[1].Y[4] != 2 {
		t.Errorf("curves %v, want two, the second of the bound", solveCurves.curves)
	}
	var search progressCurves
	for i, loss := range []float64{0, 0.5, 0.4, 0.4} {
		search.add(krrlab.Event{Stage: stage.Tune, Detail: "500 rows: best of 3", Loss: loss}, float64(i))
	}
	if figure := search.figure(); figure == nil || figure.Y.Log || figure.Series[0].Name != "500 rows" || len(figure.Series[0].Y) != 3 {
		t.Errorf("a search: %v", figure)
	}
}
