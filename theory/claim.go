package theory

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/plots"
)

// Kind is the sense in which a claim holds, which determines how its check can fail.
type Kind string

const (
	Identity    Kind = "identity"    // holds exactly; fails by an error that is larger than rounding explains
	Bound       Kind = "bound"       // holds always; fails by one counterexample
	Probability Kind = "probability" // holds with probability 1−δ or in expectation; fails if the trials contradict it
)

// Claim is a statement of the paper, or of the notes that correct and complete it, with its check. The statements are
// in claims.json.
type Claim struct {
	Name      string // identifier for the command line, such as "theorem1"
	Place     string // place in the paper or in the notes
	Kind      Kind
	Statement string // the formula, with corrections (ERRATA.md)
	Measured  string // description of the measured quantities
	Fails     string // reason why the check can fail

	program program
}

// Options of a check. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	Trials int    `flag:"trials" default:"400" check:">=20" help:"number of random instances of each claim"`
	Seed   uint64 `flag:"seed" help:"seed of all random numbers"`
	Parts  Parts  // implementations that the claims are checked on; default: the project's own
	// Progress, if not nil, is called with the number of completed trials and the total number of trials in the current
	// part of a check. Calls do not overlap.
	Progress func(claim string, completed, total int)
}

// minTrials is the smallest number of trials for which the statistics of a check are meaningful.
const minTrials = 20

// withDefaults returns a copy of the options with the defaults filled in, or an error if an option is invalid.
func (o *Options) withDefaults() (Options, error) {
	settings := *cmp.Or(o, &Options{})
	if err := schema.Complete(&settings); err != nil {
		return settings, fmt.Errorf("theory: %w", err)
	}
	settings.Parts = settings.Parts.withDefaults()
	return settings, nil
}

// claimsJSON contains the claims without their checks: first those of the paper in its order, then those of the notes.
//
//go:embed claims.json
var claimsJSON []byte

// program contains the functions that check a claim and draw its figure. Each of them may be nil.
type program struct {
	trial  func(e *experiment, i int, g rng.Stream, t *trial) // measures random instance i
	check  func(e *experiment)                                // adds further measures, after the trials
	figure func(e *experiment) *plots.Figure
}

// programs contains the program of each claim, by the name of the claim.
var programs = map[string]program{
	"features":      {check: checkFeatures},
	"definition1":   {trial: trialDefinition1},
	"proposition2":  {trial: trialProposition2},
	"proposition3":  {trial: trialProposition3},
	"lemma4":        {check: checkLemma4, figure: figureLemma4},
	"theorem1":      {check: checkTheorem1, figure: figureTheorem1},
	"remark1":       {trial: trialRemark1},
	"remark2":       {check: checkRemark2},
	"definition2":   {check: checkDefinition2},
	"theorem5":      {check: checkTheorem5, figure: figureTheorem5},
	"definition3":   {check: checkDefinition3},
	"theorem6":      {check: checkTheorem6, figure: figureTheorem6},
	"remark3":       {trial: trialRemark3},
	"remark4":       {check: checkRemark4},
	"theorem7":      {check: checkTheorem7, figure: figureTheorem7},
	"proposition8":  {trial: trialProposition8},
	"proposition9":  {trial: trialProposition9},
	"iterations":    {trialIterations, checkHardestSystems, figureIterations},
	"general":       {trial: trialGeneral, check: checkTightConditions},
	"lambda-p":      {trialLambdaP, checkTightRidge, figureLambdaP},
	"nystrom":       {check: checkNystrom},
	"prediction":    {trial: trialPrediction, check: checkTightPrediction},
	"leave-one-out": {trial: trialLeaveOneOut},
	"fixed16":       {trial: trialFixed16, figure: figureFixed16},
}

// Claims returns all claims, in the order of the paper, then those of the notes.
func Claims() []Claim {
	var claims []Claim
	if err := json.Unmarshal(claimsJSON, &claims); err != nil { // the file is part of this program
		panic(err)
	}
	for i := range claims {
		claims[i].program = programs[claims[i].Name]
	}
	return claims
}

// FindClaim returns the claim with this name, or an error if there is none.
func FindClaim(name string) (Claim, error) {
	var names []string
	for _, claim := range Claims() {
		if claim.Name == name {
			return claim, nil
		}
		names = append(names, claim.Name)
	}
	return Claim{}, fmt.Errorf("unknown claim %q: want one of %s", name, strings.Join(names, ", "))
}

// Check runs the check of the claim. The result depends only on the options and not on the number of threads. It
// returns an error if ctx ends, if an option is invalid, or if a part returns an error although it should work
// according to the claim.
func (c Claim) Check(ctx context.Context, options *Options) (*Result, error) {
	start := time.Now()
	e, err := c.runExperiment(ctx, options, func(e *experiment) {
		if c.program.trial != nil {
			e.runTrials("trial", func(i int, g rng.Stream, t *trial) { c.program.trial(e, i, g, t) })
		}
		if c.program.check != nil {
			c.program.check(e)
		}
	})
	if err != nil {
		return nil, err
	}
	e.finish()
	e.Seconds = time.Since(start).Seconds()
	return &e.Result, nil
}

// Figure draws the bound of the claim and the measured quantities, usually against s. It panics if the claim has no
// figure.
func (c Claim) Figure(ctx context.Context, options *Options) (f *plots.Figure, err error) {
	if c.program.figure == nil {
		panic("theory: " + c.Name + " has no figure")
	}
	_, err = c.runExperiment(ctx, options, func(e *experiment) { f = c.program.figure(e) })
	return f, err
}

// runExperiment calls body with a new experiment and returns the experiment, or the error that ended body.
func (c Claim) runExperiment(ctx context.Context, options *Options, body func(e *experiment)) (*experiment, error) {
	settings, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &experiment{ctx: ctx, trials: settings.Trials, random: rng.New(settings.Seed).Sub(c.Name),
		parts: settings.Parts}
	e.Claim, e.Kind, e.Place = c.Name, c.Kind, c.Place
	e.progress = func(completed, total int) {
		if settings.Progress != nil {
			settings.Progress(c.Name, completed, total)
		}
	}
	if err := run(func() { body(e) }); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, fmt.Errorf("theory: %s: %w", c.Name, err)
	}
	return e, nil
}

// CheckClaims runs the checks of several claims one after the other. onResult, if not nil, is called with every result.
// If ctx ends, CheckClaims returns the results so far and the error of ctx. If a part returns an error although it
// should work according to the claim, the claim fails, and the other claims are still checked.
func CheckClaims(ctx context.Context, claims []Claim, options *Options, onResult func(*Result)) (*Report, error) {
	settings, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	report := &Report{Trials: settings.Trials, Seed: settings.Seed}
	for _, c := range claims {
		result, err := c.Check(ctx, &settings)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return report, err
			}
			result = &Result{Claim: c.Name, Kind: c.Kind, Place: c.Place, Verdict: Fail, Margin: -worstRatio,
				Error: err.Error()}
		}
		report.Claims = append(report.Claims, *result)
		if onResult != nil {
			onResult(result)
		}
	}
	return report, nil
}

// Verdict is the outcome of a check.
type Verdict string

const (
	Pass Verdict = "pass" // no measure contradicts the claim
	Fail Verdict = "fail" // a measure contradicts the claim, or nothing could be measured
)

// Measure is a measured quantity of a check and the value that the claim has for it.
type Measure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`    // the worst error, the largest ratio, the share of failures, or the mean
	Limit    float64 `json:"limit"`    // the claimed value: a tolerance, 1, δ, or an expectation
	Trials   int     `json:"trials"`   // number of trials
	Failures int     `json:"failures"` // number of trials that contradict the claim or exceed the limit of an event
	// Ratio is above 1 if the measure contradicts the claim; see the package documentation.
	Ratio float64 `json:"ratio"`
	// Tightness is the expectation of the quantity divided by its bound, for bounds that are too loose to be
	// contradicted by trials. If it is above 1, Ratio is at least as large. It is 0 if the expectation is not known.
	Tightness float64 `json:"tightness,omitempty"`
}

// Result is the result of the check of one claim.
type Result struct {
	Claim    string  `json:"claim"`
	Kind     Kind    `json:"kind"`
	Trials   int     `json:"trials"`   // total number of trials of all measures
	Failures int     `json:"failures"` // total number of failures; a claim of kind Probability may have some
	Margin   float64 `json:"margin"`   // 1 − the largest Ratio; negative if the claim fails
	Verdict  Verdict `json:"verdict"`

	Place    string    `json:"place"`
	Measures []Measure `json:"measures"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"` // why nothing could be measured
}

// worstRatio replaces numbers that are larger, infinite or not a number, as JSON has no representation of the last two.
const worstRatio = 1e9

// finish sets the margin, the verdict and the numbers of trials and failures.
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

// worst returns the measure with the largest ratio. It panics if there are no measures.
func (r *Result) worst() Measure {
	return slices.MaxFunc(r.Measures, func(a, b Measure) int { return cmp.Compare(a.Ratio, b.Ratio) })
}

// Line returns the result in one line.
func (r *Result) Line() string {
	return fmt.Sprintf("%-13s %-11s %9d trials %6d failures  margin %9.3g  %s  %6.1f s", r.Claim, r.Kind, r.Trials,
		r.Failures, r.Margin, r.Verdict, r.Seconds)
}

// String returns Line and an additional line for each measure.
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

// Report contains the results of several checks.
type Report struct {
	Claims []Result `json:"claims"`
	Trials int      `json:"trials"`
	Seed   uint64   `json:"seed"`
}

// Failed returns the names of the claims that failed.
func (r *Report) Failed() (names []string) {
	for _, result := range r.Claims {
		if result.Verdict != Pass {
			names = append(names, result.Claim)
		}
	}
	return names
}

// Table returns a table with a row for each claim.
func (r *Report) Table() *plots.Table {
	table := &plots.Table{
		Title: fmt.Sprintf("The theory, %d trials, seed %d", r.Trials, r.Seed),
		Columns: plots.ParseColumns("claim", "kind", "trials", "failures", "margin %.3f", "verdict", "time (s) %.1f",
			"nearest to failing"),
	}
	for _, result := range r.Claims {
		nearestMeasure := result.Error
		if len(result.Measures) > 0 {
			nearestMeasure = result.worst().Name
		}
		table.Add(result.Claim, string(result.Kind), result.Trials, result.Failures, result.Margin,
			string(result.Verdict), result.Seconds, nearestMeasure)
	}
	return table
}

// String returns the table of the results for a terminal.
func (r *Report) String() string { return r.Table().Text() }
