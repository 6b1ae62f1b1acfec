package golang

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// growth is a picture that grows while a stage iterates or searches: residuals and bounds of the error, or the
// leave-one-out error of the best so far, against seconds.
type growth struct {
	curves []plots.Series
	search bool
}

// mostGrown is how many samples a curve has before every other one is dropped.
const mostGrown = 1000

// add takes what an event reports after that many seconds.
func (g *growth) add(e krrlab.Event, seconds float64) {
	if e.Loss > 0 {
		rows, _, _ := strings.Cut(e.Detail, ":")
		g.search = true
		g.put(rows, seconds, e.Loss)
	}
	if e.Iteration == 0 || g.search {
		return
	}
	name := e.Detail
	if name == "" || e.Stage != stage.Compare {
		name = "relative residual"
	}
	g.put(name, seconds, e.Residual)
	if e.Bound > 0 {
		g.put("bound of the relative error", seconds, e.Bound)
	}
}

func (g *growth) put(name string, x, y float64) {
	i := slices.IndexFunc(g.curves, func(s plots.Series) bool { return s.Name == name })
	if i < 0 {
		i, g.curves = len(g.curves), append(g.curves, plots.Series{Name: name})
	}
	c := &g.curves[i]
	if len(c.Y) == mostGrown {
		for k := range mostGrown / 2 {
			c.X[k], c.Y[k] = c.X[2*k], c.Y[2*k]
		}
		c.X, c.Y = c.X[:mostGrown/2], c.Y[:mostGrown/2]
	}
	c.Add(x, y)
}

// figure returns the picture, nil while there is nothing to see.
func (g *growth) figure() *plots.Figure {
	f := &plots.Figure{X: plots.Axis{Label: "seconds"}, Y: plots.Axis{Label: "relative", Log: true}, Series: g.curves,
		Width: 5.5, Height: 2.4}
	switch {
	case g.search:
		f.Y = plots.Axis{Label: "leave-one-out error of the best"}
	case len(g.curves) == 1:
		f.Y.Label = g.curves[0].Name
	}
	if !slices.ContainsFunc(g.curves, func(s plots.Series) bool { return len(s.Y) > 1 }) || f.Validate() != nil {
		return nil
	}
	return f
}

// picture returns the figure as an image in HTML, "" while there is nothing to see.
func (g *growth) picture() string {
	f := g.figure()
	if f == nil {
		return ""
	}
	return display.SVGImage(f.SVG(), f.Y.Label+" against "+f.X.Label)
}

const (
	progressAfter = 700 * time.Millisecond // what is over sooner shows nothing
	progressEvery = 200 * time.Millisecond // of a line
	pictureEvery  = 500 * time.Millisecond // of a picture
)

// event shows an event if it is time to.
func (p *progressLine) event(s *Session, e krrlab.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grown.add(e, now.Sub(p.start).Seconds())
	every := progressEvery
	if len(p.grown.curves) > 0 {
		every = pictureEvery
	}
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < every {
		return
	}
	p.last = now
	p.put(s, e, e.String(), p.grown.picture())
}

// end replaces the line by how long it took, with the picture at a click.
func (p *progressLine) end(s *Session, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown {
		return
	}
	picture := p.grown.picture()
	if picture != "" {
		picture = plots.FoldedHTML("how it went", picture)
	}
	p.put(s, krrlab.Event{}, fmt.Sprintf("%.1f seconds", now.Sub(p.start).Seconds()), picture)
}
