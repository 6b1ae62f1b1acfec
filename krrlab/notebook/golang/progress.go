package golang

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// progressCurves holds the curves of the progress plot: residuals and error bounds of an iteration, or the best
// leave-one-out error of a search, over time in seconds.
type progressCurves struct {
	curves   []plots.Series
	isSearch bool // the curves are those of a search
}

// maxSamples is the number of samples of a curve at which every other one is dropped. A larger value gives smoother
// curves and larger pictures. It was chosen by judgment.
const maxSamples = 1000

// add adds the samples that an event reports, at the given time in seconds. An event with a loss belongs to a search:
// its curve is named by the text before the colon of Event.Detail, and from then on iterations are ignored. A
// comparison has a curve of residuals for each Event.Detail, and any other stage has one.
func (plot *progressCurves) add(event krrlab.Event, seconds float64) {
	if event.Loss > 0 {
		curveName, _, _ := strings.Cut(event.Detail, ":")
		plot.isSearch = true
		plot.addSample(curveName, seconds, event.Loss)
	}
	if event.Iteration == 0 || plot.isSearch {
		return
	}
	name := event.Detail
	if name == "" || event.Stage != stage.Compare {
		name = "relative residual"
	}
	plot.addSample(name, seconds, event.Residual)
	if event.Bound > 0 {
		plot.addSample("bound of the relative error", seconds, event.Bound)
	}
}

// addSample adds the point (x, y) to the curve with the given name.
func (plot *progressCurves) addSample(name string, x, y float64) {
	i := slices.IndexFunc(plot.curves, func(s plots.Series) bool { return s.Name == name })
	if i < 0 {
		i, plot.curves = len(plot.curves), append(plot.curves, plots.Series{Name: name})
	}
	series := &plot.curves[i]
	if len(series.Y) == maxSamples {
		for j := range maxSamples / 2 {
			series.X[j], series.Y[j] = series.X[2*j], series.Y[2*j]
		}
		series.X, series.Y = series.X[:maxSamples/2], series.Y[:maxSamples/2]
	}
	series.Add(x, y)
}

// figure returns the plot, or nil if no curve has two points yet or the plot is invalid.
func (plot *progressCurves) figure() *plots.Figure {
	figure := &plots.Figure{X: plots.Axis{Label: "seconds"}, Y: plots.Axis{Label: "relative", Log: true},
		Series: plot.curves, Width: 5.5, Height: 2.4}
	switch {
	case plot.isSearch:
		figure.Y = plots.Axis{Label: "leave-one-out error of the best"}
	case len(plot.curves) == 1:
		figure.Y.Label = plot.curves[0].Name
	}
	hasCurve := slices.ContainsFunc(plot.curves, func(s plots.Series) bool { return len(s.Y) > 1 })
	if !hasCurve || figure.Validate() != nil {
		return nil
	}
	return figure
}

// picture returns the plot as an HTML image, or "" if there is no plot.
func (plot *progressCurves) picture() string {
	figure := plot.figure()
	if figure == nil {
		return ""
	}
	return display.SVGImage(figure.SVG(), figure.Y.Label+" against "+figure.X.Label)
}

// progressLine is an output line of a cell that is updated in place, with a plot below it.
type progressLine struct {
	out *capture
	// mu protects the fields below. update and finish hold it while they call show.
	mu         sync.Mutex
	id         string // display_id of the line
	start      time.Time
	lastUpdate time.Time
	isShown    bool           // the line is displayed, so that it can be updated
	curves     progressCurves // samples for the plot
}

// Progress returns a monitor that displays one line with the stage, the fraction done or the iteration, the residual
// and the remaining time. If the stage iterates, a plot of its progress appears below the line. A late event of a cell
// that has ended starts a new line.
func (s *Session) Progress() func(krrlab.Event) error {
	return func(event krrlab.Event) error {
		now := time.Now()
		id := fmt.Sprint("krrlab-progress-", now.UnixNano())
		s.progress.CompareAndSwap(nil, &progressLine{out: s.out, id: id, start: now})
		if line := s.progress.Load(); line != nil { // nil if endProgress has just removed the line
			line.update(event, now)
		}
		return nil
	}
}

// show displays text and a picture as the progress line, replacing its previous contents. If event.Total is positive, a
// progress bar precedes the text.
func (p *progressLine) show(event krrlab.Event, text, picture string) {
	bar := ""
	if event.Total > 0 {
		bar = fmt.Sprintf(`<progress max="%d" value="%d" style="width:12em"></progress> `, event.Total, event.Done)
	}
	data := withID(display.MakeData3(display.MIMETypeHTML, text,
		`<div style="white-space:nowrap;font-size:90%">`+bar+html.EscapeString(text)+`</div>`+picture), p.id)
	if p.isShown {
		p.out.update(data)
	} else {
		p.out.show(data)
	}
	p.isShown = true
}

// endProgress replaces the progress line, if there is one, by the elapsed time.
func (s *Session) endProgress() {
	if line := s.progress.Swap(nil); line != nil {
		line.finish(time.Now())
	}
}

const (
	progressDelay    = 700 * time.Millisecond // a stage that ends earlier displays nothing
	progressInterval = 200 * time.Millisecond // minimum time between updates of a line without a plot
	pictureInterval  = 500 * time.Millisecond // minimum time between updates of a line with a plot
)

// update adds an event to the curves. It displays the event, unless the stage has only just begun or the previous
// update is too recent.
func (p *progressLine) update(event krrlab.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.curves.add(event, now.Sub(p.start).Seconds())
	interval := progressInterval
	if len(p.curves.curves) > 0 {
		interval = pictureInterval
	}
	if now.Sub(p.start) < progressDelay || now.Sub(p.lastUpdate) < interval {
		return
	}
	p.lastUpdate = now
	p.show(event, event.String(), p.curves.picture())
}

// finish replaces the line by the elapsed time, with the plot folded below it. It does nothing if the line was never
// shown.
func (p *progressLine) finish(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isShown {
		return
	}
	picture := p.curves.picture()
	if picture != "" {
		picture = plots.FoldedHTML("how it went", picture)
	}
	p.show(krrlab.Event{}, fmt.Sprintf("%.1f seconds", now.Sub(p.start).Seconds()), picture)
}
