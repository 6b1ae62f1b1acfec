package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// Point is one kernel and one λ.
type Point struct {
	Kernel string  `json:"kernel"`
	Sigma  float64 `json:"sigma"` // length scale, 0 for a polynomial; the geometric mean of Lengths, if there are any
	Gamma  float64 `json:"gamma,omitempty"`
	Coef0  float64 `json:"coef0,omitempty"`
	Degree int     `json:"degree,omitempty"`
	// Params are the parameters of a registered kernel.
	Params kernel.Params `json:"params,omitempty"`
	Lambda float64       `json:"lambda"`
	// Lengths are the length scales of the features, as krrlab fit --sigma and datasets.Stretch take them; nil: σ for
	// all.
	Lengths []float64 `json:"lengths,omitempty"`
	// Error is the share of wrong labels, or √(Σ(y_i−f(x_i))²/n); null where K+λI is not positive definite in
	// float64, or the solve did not converge. Lo and Hi are its 95 % interval over samples of rows.
	Error stage.Number `json:"error"`
	Lo    stage.Number `json:"lo"`
	Hi    stage.Number `json:"hi"`
	// Model is the error that the model of the search gives, which rests on the points about it too.
	Model   stage.Number `json:"model"`
	Level   int          `json:"level"` // index of Levels
	Seconds float64      `json:"seconds"`
}

// Spec returns the kernel as data, with σ = 1 where the features are to be divided by Lengths.
func (p *Point) Spec() kernel.Spec {
	switch {
	case p.Params != "":
		return kernel.Spec{Name: p.Kernel, Params: p.Params}
	case p.Lengths != nil:
		return kernel.Spec{Name: p.Kernel, Sigma: 1}
	}
	return kernel.Spec{Name: p.Kernel, Sigma: p.Sigma, Gamma: p.Gamma, Coef0: p.Coef0, Degree: p.Degree}
}

// Level is a size of the problem that was searched.
type Level struct {
	Name    string  `json:"name"`
	Rows    int     `json:"rows"` // that are fitted
	Points  int     `json:"points"`
	Seconds float64 `json:"seconds"`
}

// Map is the error of the chosen kernel about the chosen point, by the model.
type Map struct {
	Scale  []float64   `json:"scale"` // σ, or γ of a polynomial
	Lambda []float64   `json:"lambda"`
	Error  [][]float64 `json:"error"` // [i][j] at Lambda[i], Scale[j]
}

// Result is the stage of a search: Header has the kernel and λ that were chosen.
type Result struct {
	stage.Header
	Criterion string `json:"criterion"`
	// Metric is what was made best. Errors are its losses: 1 − AUC, 1 − F1, and else the metric itself.
	Metric model.Metric `json:"metric"`
	// Of is the class whose F1 is meant, if there are two classes; empty otherwise.
	Of     string  `json:"metric_of,omitempty"`
	Best   Point   `json:"best"`
	Points []Point `json:"points"` // in the order they were evaluated
	Levels []Level `json:"levels"`
	// Gain is which part of the error the next point was expected to gain when the search ended; null without a model.
	Gain    stage.Number `json:"gain"`
	ARD     *Lengths     `json:"ard,omitempty"`     // the search of length scales for each feature; null without one
	Map     *Map         `json:"map,omitempty"`     // null where σ or λ was held
	Command string       `json:"command,omitempty"` // that fits with the result
	// Lacks says why no length scales were searched although they were asked for: the kernel lacks a method.
	Lacks string `json:"lacks,omitempty"`
	// Limited says that the memory limits the rows of the search.
	Limited string  `json:"limited,omitempty"`
	Seconds float64 `json:"seconds"`
	// Repeats says which rows are left out, or held out, together, and which question Error answers. Other is the
	// error of Best by the question Repeats.Other; null if there is none, or the last level held rows out.
	Repeats datasets.Repeats `json:"repeats"`
	Other   stage.Number     `json:"other_error"`

	edge string // says where Best is at an end of what is searched
}

// result returns what was found, nil for nothing.
func (s *search) result() *Result {
	if len(s.points) == 0 {
		return nil
	}
	best := s.choose(s.points[len(s.points)-1].level)
	if best == nil {
		return nil
	}
	r := &Result{Criterion: s.data.criterion(), Metric: s.data.judged.metric, Gain: stage.Number(s.gain),
		Best: s.describe(best), ARD: s.stretched, Lacks: s.lacks, Seconds: time.Since(s.start).Seconds()}
	for _, l := range s.levels {
		r.Levels = append(r.Levels, Level{Name: l.name, Rows: l.rows})
	}
	for _, p := range s.points {
		one := s.describe(p)
		r.Points = append(r.Points, one)
		r.Levels[p.level].Points++
		r.Levels[p.level].Seconds += one.Seconds
	}
	r.Map, r.Repeats, r.Other = s.surface(best), s.groups.Repeats, stage.Unknown
	if r.edge = best.edge(); r.edge != "" {
		r.edge += ": others, held by flags, may be better"
	}
	r.Kernel, r.Lambda = r.Best.Spec(), r.Best.Lambda
	return r
}

// edge says at which ends of its grids a point lies, beyond which the error may be less; "" for none.
func (p *point) edge() string {
	var at []string
	for k, grid := range p.f.grid {
		name, value, ends := "λ", p.lambda(), []string{"least", "largest"}
		if k == 0 {
			name, value = "σ", p.f.size(p.scale())
			if kernel.ArgumentOf(p.f.base) == kernel.InnerProduct { // whose scale is 1/γ
				name, ends = "γ", []string{"largest", "least"}
			}
		}
		if i := slices.Index(grid, p.at[k]); len(grid) > 1 && (i == 0 || i == len(grid)-1) {
			at = append(at, fmt.Sprintf("%s = %g is the %s that is searched", name, value, ends[min(i, 1)]))
		}
	}
	return strings.Join(at, "; ")
}

// surface returns the map about a point; nil where there is nothing to see.
func (s *search) surface(best *point) *Map {
	m := &Map{}
	var at [2][]float64
	for k, far := range [2]float64{math.Log(7), math.Log(1e4)} {
		for _, v := range best.f.grid[k] {
			if math.Abs(v-best.at[k]) < far {
				at[k] = append(at[k], v)
			}
		}
		if len(at[k]) < 2 {
			return nil
		}
	}
	for _, u := range at[0] {
		m.Scale = append(m.Scale, best.f.size(digits(math.Exp(u))))
	}
	for _, v := range at[1] {
		m.Lambda = append(m.Lambda, digits(math.Exp(v)))
		row := make([]float64, len(at[0]))
		for j, u := range at[0] {
			row[j] = math.Exp(s.model(best.level, best.f).mean([2]float64{u, v}))
		}
		m.Error = append(m.Error, row)
	}
	if m.Scale[0] > m.Scale[1] { // γ
		slices.Reverse(m.Scale)
		for _, row := range m.Error {
			slices.Reverse(row)
		}
	}
	return m
}

// size returns the length scale of a scale as it is reported, or γ of a polynomial.
func (f *family) size(scale float64) float64 {
	k := f.kernel(scale)
	if p, ok := k.(kernel.Polynomial); ok {
		return p.Gamma
	}
	return k.(kernel.Scaled).Scale()
}

// choose returns the point of a level that is least by the model, or a smoother one that is hardly worse.
func (s *search) choose(q int) *point {
	best, least := s.best(q)
	if best == nil {
		return nil
	}
	var tied []*point
	for _, p := range s.points {
		if p.level != q || p.loss == nil {
			continue
		}
		share, se := p.loss.worse(best.loss)
		if p == best || share <= min(se, tie) && s.model(q, p.f).mean(p.at)-least <= tie {
			tied = append(tied, p)
		}
	}
	return slices.MinFunc(tied, func(a, b *point) int {
		smooth := func(p *point) int {
			if i := slices.Index(usual, p.f.name); i >= 0 {
				return i
			}
			return len(usual) + p.f.index
		}
		return cmp.Or(cmp.Compare(len(a.f.shape), len(b.f.shape)), cmp.Compare(smooth(a), smooth(b)),
			cmp.Compare(b.at[1], a.at[1]), cmp.Compare(b.at[0], a.at[0]))
	})
}

// describe returns a point as it is reported.
func (s *search) describe(p *point) Point {
	scale := p.scale()
	if p.f.shape != nil {
		scale = 1 // the features are divided by the lengths
	}
	spec := p.f.spec(scale)
	r := Point{
		Kernel: spec.Name, Gamma: spec.Gamma, Coef0: spec.Coef0, Degree: spec.Degree, Params: spec.Params,
		Lambda: p.lambda(), Level: p.level,
	}
	stage.SetUnknown(&r)
	if spec.Gamma == 0 {
		r.Sigma = p.scale()
	}
	for _, v := range p.f.shape {
		r.Lengths = append(r.Lengths, outward.Rounded(r.Sigma*v, 6)) // exactly, of two numbers of three digits
	}
	if p.loss == nil {
		return r
	}
	v, lo, hi := p.loss.Error()
	r.Error, r.Lo, r.Hi, r.Seconds = stage.Number(v), stage.Number(lo), stage.Number(hi), p.loss.seconds
	if r.Model = stage.Number(math.Exp(s.model(p.level, p.f).mean(p.at))); p.loss.classes {
		r.Model -= stage.Number(0.25 / float64(len(p.loss.rows)))
	}
	return r
}
