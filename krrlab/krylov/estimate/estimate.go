// Package estimate holds numbers that are not known exactly: a value, the interval that
// covers the truth with a stated confidence, and how it was found. Every stage of the
// laboratory that estimates a number returns one of these, and the statements they make
// are tested by counting how often they hold over many seeds. An interval of confidence 1
// is certain up to the rounding it includes; take its ends, not its value, for a decision
// that must not be wrong.
package estimate

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Interval is an estimate of a number. Lo ≤ Value ≤ Hi; an end that nothing is known of
// is −Inf or +Inf.
type Interval struct {
	Value      float64
	Lo, Hi     float64
	Confidence float64 // probability that [Lo, Hi] covers the truth; 1: certain up to rounding
	Method     string
	Seconds    float64 // that it took
}

// Exact returns an interval that is certain: v ± slack.
func Exact(v, slack float64, method string) Interval {
	return Interval{Value: v, Lo: v - slack, Hi: v + slack, Confidence: 1, Method: method}
}

// Widened returns the interval of a number ≥ 0 that differs from that of e by at most by.
func (e Interval) Widened(by float64) Interval {
	e.Value, e.Lo, e.Hi = max(0, e.Value), max(0, e.Lo-by), max(0, e.Hi+by)
	return e
}

// Covers reports whether Lo ≤ v ≤ Hi.
func (e Interval) Covers(v float64) bool { return e.Lo <= v && v <= e.Hi }

// Ends returns Value, Lo and Hi.
func (e Interval) Ends() (value, lo, hi float64) { return e.Value, e.Lo, e.Hi }

// Width returns (Hi−Lo)/|Value|, +Inf for an unbounded interval.
func (e Interval) Width() float64 {
	if e.Hi == e.Lo {
		return 0
	}
	return (e.Hi - e.Lo) / math.Abs(e.Value)
}

// String returns, for instance, "57.3, in [55.1, 59.8] with 95 % confidence (hutchinson)", the ends rounded outward.
func (e Interval) String() string {
	s := fmt.Sprintf("%.4g, in %s", e.Value, outward.Span(e.Lo, e.Hi, 4))
	if e.Confidence < 1 {
		s += fmt.Sprintf(" with %.3g %% confidence", 100*e.Confidence)
	}
	return s + " (" + e.Method + ")"
}

// intervalJSON has null for what is not a finite number.
type intervalJSON struct {
	Value      *float64 `json:"value"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	Confidence float64  `json:"confidence"`
	Method     string   `json:"method"`
	Seconds    float64  `json:"seconds"`
}

// MarshalJSON writes null for an unbounded end and for a value that is not known.
func (e Interval) MarshalJSON() ([]byte, error) {
	return json.Marshal(intervalJSON{finite(e.Value), finite(e.Lo), finite(e.Hi), e.Confidence, e.Method, e.Seconds})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Interval) UnmarshalJSON(b []byte) error {
	var j intervalJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Interval{or(j.Value, math.NaN()), or(j.Lo, math.Inf(-1)), or(j.Hi, math.Inf(1)), j.Confidence, j.Method,
		j.Seconds}
	return nil
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func or(p *float64, v float64) float64 {
	if p == nil {
		return v
	}
	return *p
}

// DefaultConfidence is what options of confidence mean by 0.
const DefaultConfidence = 0.95

// CheckConfidence returns an error unless c lies in (0, 1).
func CheckConfidence(c float64) error {
	if !(c > 0 && c < 1) {
		return fmt.Errorf("confidence %g: want a number between 0 and 1, such as 0.95", c)
	}
	if 1-c < 1e-12 { // what is left is shared out, and a share must not round to nothing
		return fmt.Errorf("confidence 1 − %.1e: want at most 1 − 1e-12", 1-c)
	}
	return nil
}
