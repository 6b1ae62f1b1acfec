package theory

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/plots"
)

// Kind says in what sense a claim holds, and so how its check fails.
type Kind string

const (
	Identity    Kind = "identity"    // always and exactly: an error above rounding fails it
	Bound       Kind = "bound"       // always: one counterexample fails it
	Probability Kind = "probability" // with probability 1−δ, or on average: what contradicts that fails it
)

// Claim is one statement of the paper, or of the notes that correct and complete it, with the
// check of it; claims.json has the statements.
type Claim struct {
	Name      string // what the command knows it by, such as "theorem1"
	Place     string // where it stands
	Kind      Kind
	Statement string // the formula, as corrected (ERRATA.md)
	Measured  string // what is measured
	Fails     string // why the check can fail

	program
}

// Options of a check. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	Trials int    `flag:"trials" default:"400" check:">=20" help:"random instances of each claim"`
	Seed   uint64 `flag:"seed" help:"seed of all random numbers"`
	Parts  Parts  // what the claims are checked on. Default: the project's own
	// Progress, if not nil, is called with the trials of the claim that are done of those of
	// the part of it under way; calls do not overlap.
	Progress func(claim string, done, total int)
}

// minTrials is the least number of trials that the statistics of a check make sense for.
const minTrials = 20

func (o *Options) settled() (Options, error) {
	s := *cmp.Or(o, &Options{})
	if err := schema.Settle(&s); err != nil {
		return s, fmt.Errorf("theory: %w", err)
	}
	s.Parts = s.Parts.settled()
	return s, nil
}

// stated are the claims without their checks: in the order of the paper, then those of the notes.
//
//go:embed claims.json
var stated []byte

// program is the check of a claim and its figure, nil if it has none.
type program struct {
	run    func(e *experiment)
	figure func(e *experiment) *plots.Figure
}

// programs are those of the claims, by name.
var programs = map[string]program{
	"features":      {run: checkFeatures},
	"definition1":   {run: checkDefinition1},
	"proposition2":  {run: checkProposition2},
	"proposition3":  {run: checkProposition3},
	"lemma4":        {run: checkLemma4, figure: figureLemma4},
	"theorem1":      {run: checkTheorem1, figure: figureTheorem1},
	"remark1":       {run: checkRemark1},
	"remark2":       {run: checkRemark2},
	"definition2":   {run: checkDefinition2},
	"theorem5":      {run: checkTheorem5, figure: figureTheorem5},
	"definition3":   {run: checkDefinition3},
	"theorem6":      {run: checkTheorem6, figure: figureTheorem6},
	"remark3":       {run: checkRemark3},
	"remark4":       {run: checkRemark4},
	"theorem7":      {run: checkTheorem7, figure: figureTheorem7},
	"proposition8":  {run: checkProposition8},
	"proposition9":  {run: checkProposition9},
	"iterations":    {run: checkIterations, figure: figureIterations},
	"general":       {run: checkGeneral},
	"lambda-p":      {run: checkLambdaP, figure: figureLambdaP},
	"nystrom":       {run: checkNystrom},
	"prediction":    {run: checkPrediction},
	"leave-one-out": {run: checkLeaveOneOut},
	"fixed16":       {run: checkFixed16, figure: figureFixed16},
}

// Claims returns all claims, in the order of the paper, then those of the notes.
func Claims() []Claim {
	var all []Claim
	if err := json.Unmarshal(stated, &all); err != nil { // the file is ours
		panic(err)
	}
	for i := range all {
		all[i].program = programs[all[i].Name]
	}
	return all
}

// Find returns the claim of that name.
func Find(name string) (Claim, error) {
	var names []string
	for _, c := range Claims() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Claim{}, fmt.Errorf("unknown claim %q: want one of %s", name, strings.Join(names, ", "))
}

// Check runs the check. The result depends on the options alone, not on the number of
// threads. It returns an error if ctx ends, an option makes no sense, or a part fails where
// the claim says that it works.
func (c Claim) Check(ctx context.Context, o *Options) (*Result, error) {
	began := time.Now()
	e, err := c.do(ctx, o, c.run)
	if err != nil {
		return nil, err
	}
	e.finish()
	e.Seconds = time.Since(began).Seconds()
	return &e.Result, nil
}

// Figure draws the claim: its bound beside what is measured, mostly against s. It panics if
// the claim has none.
func (c Claim) Figure(ctx context.Context, o *Options) (f *plots.Figure, err error) {
	if c.figure == nil {
		panic("theory: " + c.Name + " has no figure")
	}
	_, err = c.do(ctx, o, func(e *experiment) { f = c.figure(e) })
	return f, err
}

// do calls f with an experiment, which it returns, or the error that ended f.
func (c Claim) do(ctx context.Context, o *Options, f func(e *experiment)) (*experiment, error) {
	s, err := o.settled()
	if err != nil {
		return nil, err
	}
	e := &experiment{ctx: ctx, trials: s.Trials, g: rng.New(s.Seed).Sub(c.Name), parts: s.Parts}
	e.Claim, e.Kind, e.Place = c.Name, c.Kind, c.Place
	e.progress = func(done, total int) {
		if s.Progress != nil {
			s.Progress(c.Name, done, total)
		}
	}
	if err := run(func() { f(e) }); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, fmt.Errorf("theory: %s: %w", c.Name, err)
	}
	return e, nil
}

// Check runs the checks of several claims one after the other; each, if not nil, is called with
// every result. If ctx ends it returns what has run beside ctx's error. A part that fails where the
// claim says that it works fails the claim, and the others go on.
func Check(ctx context.Context, claims []Claim, o *Options, each func(*Result)) (*Report, error) {
	s, err := o.settled()
	if err != nil {
		return nil, err
	}
	rep := &Report{Trials: s.Trials, Seed: s.Seed}
	for _, c := range claims {
		r, err := c.Check(ctx, &s)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return rep, err
			}
			r = &Result{Claim: c.Name, Kind: c.Kind, Place: c.Place, Verdict: Fail, Margin: -worstRatio,
				Error: err.Error()}
		}
		rep.Claims = append(rep.Claims, *r)
		if each != nil {
			each(r)
		}
	}
	return rep, nil
}

// Verdict is what a check found.
type Verdict string

const (
	Pass Verdict = "pass" // no measure contradicts the claim
	Fail Verdict = "fail" // one does, or nothing could be measured
)

// Measure is one quantity of a check, beside what the claim says about it.
type Measure struct {
	Name string `json:"name"`
	// Value is what was measured (the worst error, the largest ratio, the share of failures,
	// the mean), Limit what the claim has in its place: a tolerance, 1, δ, or an expectation.
	Value    float64 `json:"value"`
	Limit    float64 `json:"limit"`
	Trials   int     `json:"trials"`
	Failures int     `json:"failures"`
	// Ratio is above 1 if the measure contradicts the claim; see the package doc.
	Ratio float64 `json:"ratio"`
	// Tightness is what is expected over its bound where the bound alone could hardly
	// fail: above 1 it is the Ratio, or less than it; 0 where it is not known.
	Tightness float64 `json:"tightness,omitempty"`
}

// Result is what the check of one claim found.
type Result struct {
	Claim    string  `json:"claim"`
	Kind     Kind    `json:"kind"`
	Trials   int     `json:"trials"`   // in all measures
	Failures int     `json:"failures"` // of them; a Probability may have some
	Margin   float64 `json:"margin"`   // 1 − the largest Ratio; negative if the claim fails
	Verdict  Verdict `json:"verdict"`

	Place    string    `json:"place"`
	Measures []Measure `json:"measures"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"` // why nothing could be measured
}

// worstRatio stands for a ratio that is infinite or not a number.
const worstRatio = 1e9

// finish settles margin and verdict.
func (r *Result) finish() {
	worst := 0.0
	for i := range r.Measures {
		m := &r.Measures[i]
		for _, v := range []*float64{&m.Value, &m.Ratio, &m.Limit} {
			if math.IsNaN(*v) || math.Abs(*v) > worstRatio {
				*v = worstRatio
			}
		}
		worst = max(worst, m.Ratio)
		r.Trials += m.Trials
		r.Failures += m.Failures
	}
	r.Margin = 1 - worst
	r.Verdict = Fail
	if r.Margin >= 0 && r.Trials > 0 {
		r.Verdict = Pass
	}
}

// worst returns the measure of the largest ratio; it panics if there is none.
func (r *Result) worst() Measure {
	worst := r.Measures[0]
	for _, m := range r.Measures {
		if m.Ratio > worst.Ratio {
			worst = m
		}
	}
	return worst
}

// Line says what was found in one line.
func (r *Result) Line() string {
	return fmt.Sprintf("%-13s %-11s %9d trials %6d failures  margin %9.3g  %s  %6.1f s", r.Claim, r.Kind, r.Trials,
		r.Failures, r.Margin, r.Verdict, r.Seconds)
}

// String is Line, and one line more for each measure.
func (r *Result) String() string {
	var b strings.Builder
	b.WriteString(r.Line() + "\n")
	if r.Error != "" {
		fmt.Fprintf(&b, "    %s\n", r.Error)
	}
	for _, m := range r.Measures {
		fmt.Fprintf(&b, "    %s: %.4g, claimed %.4g, ratio %.3g", m.Name, m.Value, m.Limit, m.Ratio)
		if m.Tightness > 0 {
			fmt.Fprintf(&b, ", tightness %.3g", m.Tightness)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Report is what a run of checks found.
type Report struct {
	Claims []Result `json:"claims"`
	Trials int      `json:"trials"`
	Seed   uint64   `json:"seed"`
}

// Failed returns the names of the claims that failed.
func (r *Report) Failed() (names []string) {
	for _, c := range r.Claims {
		if c.Verdict != Pass {
			names = append(names, c.Claim)
		}
	}
	return names
}

// Table returns a row for each claim.
func (r *Report) Table() *plots.Table {
	t := &plots.Table{
		Title: fmt.Sprintf("The theory, %d trials, seed %d", r.Trials, r.Seed),
		Columns: plots.Heads("claim", "kind", "trials", "failures", "margin %.3f", "verdict", "time (s) %.1f",
			"nearest to failing"),
	}
	for _, c := range r.Claims {
		what := c.Error
		if len(c.Measures) > 0 {
			what = c.worst().Name
		}
		t.Add(c.Claim, string(c.Kind), c.Trials, c.Failures, c.Margin, string(c.Verdict), c.Seconds, what)
	}
	return t
}

func (r *Report) String() string { return r.Table().Text() }
