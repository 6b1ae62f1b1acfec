package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/stage"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/multilevel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/plots"
)

// MultiLevelOptions of MultiLevel. Zero values, and a nil *MultiLevelOptions, mean the defaults.
type MultiLevelOptions struct {
	// Levels of the chain. Default: features of width 8s, an SRHT to 2s, a Gaussian to s, with s
	// the Features of the Config.
	Levels []ChainLevel
	// Confidence that the two intervals of a level hold, in (0, 1). Default 0.95.
	Confidence float64
	// Work is how many flops the set-up of one preconditioner may take; a level that needs
	// more is measured for ‖Z_kZ_kᵀ−K‖₂ alone. Default 5e12.
	Work float64
}

// MultiLevel is what each level of Algorithm 2 (section 4 of the paper) is worth,
//
//	Z_1 = φ₁(X),  Z_{k+1} = Z_k·S_{k+1}ᵀ,  M_k = Z_kZ_kᵀ + λ_pI,
//
// beside features alone of the same widths.
type MultiLevel struct {
	Header
	LambdaP float64 `json:"lambda_p"`

	Levels     []ChainLevel    `json:"levels"` // what was asked for
	Features   string          `json:"features"`
	Confidence float64         `json:"confidence"`
	KError     Number          `json:"kernel_error_bound"` // predicted bound of ‖K_stored−K‖₂, which the intervals allow for
	Chain      []MeasuredLevel `json:"chain"`              // of the levels; those not reached are missing
	OneLevel   []MeasuredLevel `json:"one_level"`          // features alone, at the widths of the levels after the first
	Seconds    float64         `json:"seconds"`            // in all, without K
}

// MeasuredLevel is what was measured of one Z_k, n×s_k.
type MeasuredLevel struct {
	ChainLevel
	Level int               `json:"level"` // k = 1, 2, …; of OneLevel, the level whose width it has
	Error estimate.Interval `json:"error"` // ‖Z_kZ_kᵀ−K‖₂
	Left  string            `json:"left,omitempty"`
	// Indefinite says that K+λI as stored has a negative eigenvalue: ‖K_stored−K‖₂ is above λ, whatever
	// is predicted, and nothing is known of κ.
	Indefinite bool `json:"stored_indefinite,omitempty"`
	// What follows is null or zero where Left says why there is no preconditioner.
	Form         string             `json:"precond_form,omitempty"`
	Kappa        *estimate.Interval `json:"kappa"` // κ(M_k⁻¹A)
	Iterations   int                `json:"iterations"`
	Status       pcg.Status         `json:"status,omitempty"`
	Converged    bool               `json:"converged"`
	TrueResidual float64            `json:"true_residual"` // worst column's, against K as stored
	Seconds      LevelSeconds       `json:"seconds"`
}

// LevelSeconds are the seconds of the parts. A fit takes Form, of Z_k with all levels before
// it, Factor and Solve; Error and Kappa are those of the estimates.
type LevelSeconds struct {
	Form   float64 `json:"form"`
	Factor float64 `json:"factor"`
	Solve  float64 `json:"solve"`
	Error  float64 `json:"error"`
	Kappa  float64 `json:"kappa"`
}

// fit returns the seconds that a fit takes.
func (s LevelSeconds) fit() float64 { return s.Form + s.Factor + s.Solve }

// MultiLevel measures each level of a chain, and features alone of each width after the
// first, the narrowest first. The chain is the one that Solve takes with Map from ChainFor;
// the features alone are those it takes without. If ctx ends, what was finished is returned
// beside its error.
func (l *Lab) MultiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	return run(ctx, l, stage.MultiLevel, o, func(ctx context.Context) (*MultiLevel, error) { return l.multiLevel(ctx, o) })
}

func (l *Lab) multiLevel(ctx context.Context, o *MultiLevelOptions) (*MultiLevel, error) {
	var opt MultiLevelOptions
	if o != nil {
		opt = *o
	}
	m, err := l.newMultiLevel(&opt)
	if err != nil {
		return nil, err
	}
	chain, err := ChainFor(l.cfg.Kernel, l.orthogonal(), m.Levels)
	if err != nil {
		return nil, err
	}
	a, err := l.K(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	last := len(m.Levels) - 1
	n, d, _ := l.Dims()
	g := rng.New(l.cfg.Seed)
	drawn, err := chain.Sample(d, m.Levels[last].Width, g.Sub("features", 0))
	if err != nil {
		return nil, err
	}
	p := &multilevel.Problem{Comm: l.comm, A: a, X: l.train.X, Y: l.y, LambdaP: m.LambdaP, Error: a.Choice().Error}
	m.KError = Number(p.Error)
	mo := multilevel.Options{Confidence: m.Confidence, Work: opt.Work, Tol: l.cfg.Tol, Aim: aim, MaxIter: l.cfg.MaxIter}
	if l.cfg.Memory > 0 {
		mo.Memory = max(8*int64(n), l.cfg.Memory-a.Bytes()-l.vectors())
	}
	if mo.Memory, err = comm.Least(ctx, l.comm, mo.Memory); err != nil { // one memory decides what all leave out
		return nil, err
	}
	for k := last; k >= 0; k-- {
		level := m.Levels[k]
		if k > 0 && (k == last || level.Width != m.Levels[k+1].Width) {
			err = l.measureOne(ctx, m, k, p, chain.Features, mo)
		}
		if err == nil {
			mo.Progress = l.watchLevel(ctx, fmt.Sprintf("level %d, %s:%d", k+1, level.Sketch, level.Width))
			var r *multilevel.Level
			if r, err = multilevel.Measure(ctx, p, drawn.(*feature.ChainMap).Level(k+1), g.Sub("multilevel chain", uint64(k)), &mo); err == nil {
				m.Chain = append(m.Chain, measured(k, level, r))
			}
		}
		if err != nil {
			break
		}
	}
	slices.Reverse(m.Chain)
	slices.Reverse(m.OneLevel)
	if len(m.Chain)+len(m.OneLevel) == 0 {
		return nil, err
	}
	m.Seconds = time.Since(began).Seconds()
	return m, err
}

// newMultiLevel checks the options and fills in what does not depend on the measurements.
func (l *Lab) newMultiLevel(o *MultiLevelOptions) (*MultiLevel, error) {
	s, lambdaP := DefaultFeatures(l.train.Len()), l.cfg.Lambda
	if r := l.approximation(); r != nil {
		s, lambdaP = r.s, r.lambdaP
	}
	m := &MultiLevel{Header: l.header(), LambdaP: lambdaP, Levels: slices.Clone(o.Levels), Confidence: o.Confidence}
	m.Confidence = cmp.Or(m.Confidence, estimate.DefaultConfidence)
	if len(m.Levels) == 0 {
		m.Levels = []ChainLevel{{"features", 8 * s}, {"srht", 2 * s}, {"gaussian", s}}
	}
	if err := estimate.CheckConfidence(m.Confidence); err != nil {
		return nil, err
	}
	if o.Work < 0 {
		return nil, fmt.Errorf("limit of %g flops on the setup: want a positive number", o.Work)
	}
	if err := checkLevels(m.Levels); err != nil {
		return nil, err
	}
	if s := m.Levels[len(m.Levels)-1].Width; s > m.N {
		return nil, fmt.Errorf("the last level has s = %d for n = %d points: want 1 ≤ s ≤ n", s, m.N)
	}
	dist, err := featuresFor(l.cfg.Kernel, l.orthogonal())
	if err != nil {
		return nil, err
	}
	m.Features = dist.String()
	return m, nil
}

// orthogonal reports whether the features of the configuration are orthogonal ones.
func (l *Lab) orthogonal() bool {
	f, _ := l.cfg.Precond.(Features)
	return f.Orthogonal
}

// measureOne measures features alone of the width of level k, counted from 0.
func (l *Lab) measureOne(ctx context.Context, m *MultiLevel, k int, p *multilevel.Problem, dist feature.Dist, o multilevel.Options) error {
	_, d, _ := l.Dims()
	level := ChainLevel{"features", m.Levels[k].Width}
	g := rng.New(l.cfg.Seed)
	alone, err := dist.Sample(d, level.Width, g.Sub("features", 0))
	if err != nil {
		return err
	}
	o.Progress = l.watchLevel(ctx, fmt.Sprintf("features alone, %d", level.Width))
	r, err := multilevel.Measure(ctx, p, alone, g.Sub("multilevel one level", uint64(k)), &o)
	if err != nil {
		return err
	}
	m.OneLevel = append(m.OneLevel, measured(k, level, r))
	return nil
}

// watchLevel returns a progress function that says which level is at work on what.
func (l *Lab) watchLevel(ctx context.Context, name string) func(part string, done, total int) {
	return func(part string, done, total int) {
		e := Event{Stage: stage.Name(part), Detail: name, Done: done, Total: total, Remaining: -1}
		if total == 0 && done > 0 {
			e.Detail += fmt.Sprintf(", step %d", done)
		}
		l.Tell(ctx, e)
	}
}

// measured is a level as the stage reports it.
func measured(k int, level ChainLevel, r *multilevel.Level) MeasuredLevel {
	m := MeasuredLevel{
		ChainLevel: level, Level: k + 1, Error: r.Error, Left: r.Left, Indefinite: r.Indefinite,
		Seconds: LevelSeconds{Form: r.Seconds.Form, Factor: r.Seconds.Factor, Solve: r.Seconds.Solve, Error: r.Seconds.Error, Kappa: r.Seconds.Kappa},
	}
	if r.Left == "" {
		m.Kappa = &r.Kappa
		m.Form, m.Iterations, m.Status, m.Converged, m.TrueResidual = r.Form, r.Iterations, r.Status, r.Converged, r.TrueResidual
	}
	return m
}

var _ Stage = (*MultiLevel)(nil)

// HTML gives the lines, the picture and the table.
func (m *MultiLevel) HTML() string { return stage.HTML(m) }

// String gives the levels in aligned lines.
func (m *MultiLevel) String() string {
	var b stage.Lines
	b.Problem(&m.Header)
	b.Add("chain", "%s of %s, λ_p = %g, τ = %g", formatLevels(m.Levels), m.Features, m.LambdaP, m.Tol)
	b.Add("", "%-11s %5s  %-23s  %-23s %5s  %s", "map", "s_k", "‖Z_kZ_kᵀ−K‖₂", "κ(M_k⁻¹A)", "steps", "seconds: form+factor+solve")
	row := func(name string, l *MeasuredLevel) {
		e := fmt.Sprintf("%.4g in [%.4g, %.4g]", l.Error.Value, l.Error.Lo, l.Error.Hi)
		if l.Left != "" {
			b.Add(name, "%-11s %5d  %-23s  no preconditioner: %s", l.Sketch, l.Width, e, l.Left)
			return
		}
		k := fmt.Sprintf("%.4g in [%.4g, %.4g]", l.Kappa.Value, l.Kappa.Lo, l.Kappa.Hi)
		note := ""
		if !l.Converged {
			note = ", " + l.Status.String()
		}
		if l.Indefinite {
			note += "; K+λI as stored is indefinite: its error is above λ, take float64 storage or a larger λ"
		}
		s := l.Seconds
		b.Add(name, "%-11s %5d  %-23s  %-23s %5d  %.1f = %.1f + %.1f + %.1f%s", l.Sketch, l.Width, e, k, l.Iterations, s.fit(), s.Form, s.Factor, s.Solve, note)
	}
	for i := range m.Chain {
		row(fmt.Sprintf("level %d", m.Chain[i].Level), &m.Chain[i])
	}
	for i := range m.OneLevel {
		row("one level", &m.OneLevel[i])
	}
	if m.KError.Known() {
		b.Add("allowed", "‖K_stored−K‖₂ ≤ %.2g, which is predicted and not part of the confidence", m.KError)
	}
	b.Add("confidence", "%g that both intervals of a level hold; %.1f seconds in all, without K", m.Confidence, m.Seconds)
	return b.String()
}

// Table gives a row for each level, and for features alone of the same widths.
func (m *MultiLevel) Table() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("Algorithm 2 on %s, n = %d, %s, λ = %g", m.Dataset, m.N, m.Kernel.Short(), m.Lambda),
		Caption: fmt.Sprintf("λ_p = %g, τ = %g; the two intervals of a level hold with probability %g; form is the time of Z_k with all levels before it.", m.LambdaP, m.Tol, m.Confidence),
		Columns: []plots.Column{
			{Name: "level"}, {Name: "map"}, {Name: "s_k"}, {Name: "‖Z_kZ_kᵀ−K‖₂"}, {Name: "at least"}, {Name: "at most"},
			{Name: "κ(M_k⁻¹A)"}, {Name: "at least"}, {Name: "at most"}, {Name: "iterations"},
			{Name: "form", Unit: "s", Format: "%.2f"}, {Name: "factor", Unit: "s", Format: "%.2f"},
			{Name: "solve", Unit: "s", Format: "%.2f"}, {Name: "in all", Unit: "s", Format: "%.2f"},
		},
	}
	add := func(name string, l *MeasuredLevel) {
		e, s := l.Error, l.Seconds
		if l.Kappa == nil {
			t.Add(name, l.Sketch, l.Width, e.Value, e.Lo, e.Hi, nil, nil, nil, nil, s.Form)
			return
		}
		k := l.Kappa
		t.Add(name, l.Sketch, l.Width, e.Value, e.Lo, e.Hi, k.Value, k.Lo, k.Hi, l.Iterations, s.Form, s.Factor, s.Solve, s.fit())
	}
	for i := range m.Chain {
		add(fmt.Sprint(m.Chain[i].Level), &m.Chain[i])
	}
	for i := range m.OneLevel {
		add("one", &m.OneLevel[i])
	}
	return t
}
