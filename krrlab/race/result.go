package race

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Result is how a race of preconditioners went.
type Result struct {
	stage.Header
	Storage string  `json:"storage"`            // of K
	KError  float64 `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂
	// Racers are those that took part, no preconditioner first, and Winner the one that takes the least time alone:
	// −1 if none came through.
	Racers  []Racer `json:"racers"`
	Winner  int     `json:"winner"`
	Product float64 `json:"product_seconds"` // of K with all t right-hand sides
	Steps   int     `json:"steps"`           // products with K of the race, of one column for each that ran
	Columns int     `json:"columns"`         // of them, in all
	KTime   float64 `json:"kernel_seconds"`  // of forming K
	Racing  float64 `json:"racing_seconds"`  // of the race, with what was built
	Seconds float64 `json:"seconds"`         // in all
}

// Racer is how one preconditioner did.
type Racer struct {
	Name       string    `json:"name"`
	Phase      Phase     `json:"phase"`
	Iterations int       `json:"iterations"`          // done
	Residuals  []float64 `json:"residuals,omitempty"` // ‖r‖₂/‖y‖₂ by recurrence after 0, 1, …, Iterations
	Build      float64   `json:"build_seconds"`       // of building M
	Solve      float64   `json:"solve_seconds"`       // of M⁻¹R for all right-hand sides
	Why        string    `json:"why,omitempty"`       // of Out
	S          int       `json:"s"`                   // 0 for none, and for a sparse inverse alone
	LambdaP    float64   `json:"lambda_p"`
	// Predicted are the iterations and Total the seconds, with building but without K, that it takes alone: of one
	// that was overtaken as its residuals forecast; null where it gets no nearer to τ, and of one that is out.
	Predicted stage.Number `json:"predicted_iterations"`
	Total     stage.Number `json:"predicted_seconds"`

	residual float64 // the last, while it runs
	late     bool    // it is overtaken
}

var _ stage.Stage = (*Result)(nil)

// predict sets what each racer takes alone.
func (r *Result) predict() {
	for i := range r.Racers {
		s := &r.Racers[i]
		s.Predicted, s.Total = stage.Unknown, stage.Unknown
		if _, left, _ := pcg.Forecast(s.Residuals, r.Tol); s.Phase != Out {
			s.Predicted = stage.Number(float64(s.Iterations) + left)
			s.Total = stage.Number(r.clock(s, float64(s.Predicted)))
		}
	}
}

// Best returns the winner, nil if there is none.
func (r *Result) Best() *Racer {
	if r.Winner < 0 || r.Winner >= len(r.Racers) {
		return nil
	}
	return &r.Racers[r.Winner]
}

// name names a racer.
func (s *Racer) name() string {
	switch {
	case s.Name == "none":
		return "M = I"
	case s.S == 0:
		return s.Name
	}
	return fmt.Sprintf("%s, s = %d", s.Name, s.S)
}

// String gives the race in a few aligned lines.
func (r *Result) String() string {
	b := stage.Lines{Width: 22}
	b.Problem(&r.Header)
	b.Add("K", "%s; a product with t = %d takes %.3g s", r.Storage, r.T, r.Product)
	for i := range r.Racers {
		s := &r.Racers[i]
		text := fmt.Sprintf("%s after %s, residual %.2e", s.Phase, plural.Count(s.Iterations, "iteration"), s.last())
		switch {
		case s.Phase == Out:
			text += ": " + s.Why
		case s.Total.Known():
			text += fmt.Sprintf("; alone %s, %.3g s", plural.Count(int(math.Ceil(float64(s.Predicted))), "iteration"),
				s.Total)
		}
		b.Add(s.name(), "%s", text)
	}
	won := "nobody"
	if w := r.Best(); w != nil {
		won = w.name()
	}
	b.Add("winner", "%s", won)
	b.Took(r.Seconds, "kernel", r.KTime, "race", r.Racing)
	return b.String()
}

// last returns the last residual.
func (s *Racer) last() float64 {
	if len(s.Residuals) == 0 {
		return 1
	}
	return s.Residuals[len(s.Residuals)-1]
}

// Table gives a row for each racer.
func (r *Result) Table() *plots.Table {
	t := &plots.Table{
		Title: "race: " + r.Dataset,
		Columns: []plots.Column{
			{Name: "preconditioner"}, {Name: "s"}, {Name: "λ_p", Format: "%.4g"}, {Name: "phase"}, {Name: "iterations"},
			{Name: "residual", Format: "%.2e"},
			{Name: "building", Unit: "s", Format: "%.3g"}, {Name: "M⁻¹R", Unit: "s", Format: "%.3g"},
			{Name: "predicted iterations", Format: "%.0f"}, {Name: "predicted time", Unit: "s", Format: "%.3g"},
		},
	}
	for i := range r.Racers {
		s := &r.Racers[i]
		var its, total any
		if s.Total.Known() {
			its, total = float64(s.Predicted), float64(s.Total)
		}
		t.Add(s.Name, s.S, s.LambdaP, string(s.Phase), s.Iterations, s.last(), s.Build, s.Solve, its, total)
	}
	return t
}

// Plot draws the residual of each racer against the seconds that it takes alone, building included: as far as it was
// raced, and straight on to where it is predicted to meet the tolerance. The ring is the winner's end.
func (r *Result) Plot() *plots.Figure {
	f := plots.Convergence("residual, by recurrence", r.Tol)
	first, last := math.Inf(1), 0.0
	for i := range r.Racers {
		s := &r.Racers[i]
		if len(s.Residuals) < 2 {
			continue
		}
		step, line := r.Product+s.Solve, plots.Series{Name: s.name()}
		for k, v := range s.Residuals {
			line.Add(s.Build+float64(k)*step, v)
		}
		if s.Total.Known() {
			line.Add(float64(s.Total), r.Tol)
		}
		if i == r.Winner {
			f.Marks = []plots.Mark{{X: float64(s.Total), Y: r.Tol, Label: s.name() + " first"}}
		}
		first, last = min(first, s.Build+step), max(last, line.X[len(line.X)-1])
		f.Series = append(f.Series, line)
	}
	f.Title = fmt.Sprintf("%s, n = %d: %s, λ = %g", r.Dataset, r.N, r.Kernel.Prose(), r.Lambda)
	f.X.Label, f.X.Log = "time alone, without K (s)", last > wideRace*first
	f.Caption = fmt.Sprintf("Each preconditioner against the seconds that building it and its iterations with all "+
		"t = %d right-hand sides take. "+
		"The last segment of a line that was overtaken is predicted: to where it meets τ. The winner's end is in "+
		"the ring.", r.T)
	return f
}

// wideRace is how many times the seconds to the first iteration of any racer the last end takes for a logarithmic
// axis of time.
const wideRace = 30

// HTML gives the lines, the picture and the numbers.
func (r *Result) HTML() string { return stage.HTML(r) }
