// Package estimate describes numbers that are not known exactly: a value, an interval that contains the true value with
// a stated confidence, and the method. Every stage that estimates a number returns an Interval. Tests check the stated
// confidence by counting, over many seeds, how often the intervals contain the true value. An interval of confidence 1
// is certain up to the rounding errors that it includes. For a decision that must not be wrong, use the ends of
// the interval and not its value.
package estimate

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Interval is an estimate of a number, with Lo ≤ Value ≤ Hi. An unknown end is −Inf or +Inf.
type Interval struct {
	Value      float64
	Lo, Hi     float64
	Confidence float64 // probability that [Lo, Hi] contains the true value; 1 means certain up to rounding
	Method     string
	Seconds    float64 // time of the computation
}

// Certain returns the certain interval v ± slack.
func Certain(v, slack float64, method string) Interval {
	return Interval{Value: v, Lo: v - slack, Hi: v + slack, Confidence: 1, Method: method}
}

// Widened returns the interval e widened by amount on both sides, for a nonnegative number that differs by at most
// amount from the number that e estimates. Negative ends and values become 0.
func (e Interval) Widened(amount float64) Interval {
	e.Value, e.Lo, e.Hi = max(0, e.Value), max(0, e.Lo-amount), max(0, e.Hi+amount)
	return e
}

// Contains reports whether Lo ≤ v ≤ Hi.
func (e Interval) Contains(v float64) bool { return e.Lo <= v && v <= e.Hi }

// Ends returns Value, Lo and Hi.
func (e Interval) Ends() (value, lo, hi float64) { return e.Value, e.Lo, e.Hi }

// RelativeWidth returns (Hi−Lo)/|Value|, and +Inf for an unbounded interval.
func (e Interval) RelativeWidth() float64 {
	if e.Hi == e.Lo {
		return 0
	}
	return (e.Hi - e.Lo) / math.Abs(e.Value)
}

// String returns, for instance, "57.3, in [55.1, 59.8] with 95 % confidence (hutchinson)". The ends are rounded
// outward.
func (e Interval) String() string {
	text := fmt.Sprintf("%.4g, in %s", e.Value, outward.Span(e.Lo, e.Hi, 4))
	if e.Confidence < 1 {
		text += fmt.Sprintf(" with %.3g %% confidence", 100*e.Confidence)
	}
	return text + " (" + e.Method + ")"
}

// intervalJSON is the JSON form of Interval, with null for numbers that are not finite.
type intervalJSON struct {
	Value      *float64 `json:"value"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	Confidence float64  `json:"confidence"`
	Method     string   `json:"method"`
	Seconds    float64  `json:"seconds"`
}

// MarshalJSON writes null for an unbounded end and for an unknown value.
func (e Interval) MarshalJSON() ([]byte, error) {
	return json.Marshal(intervalJSON{finiteOrNil(e.Value), finiteOrNil(e.Lo), finiteOrNil(e.Hi), e.Confidence, e.Method,
		e.Seconds})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (e *Interval) UnmarshalJSON(text []byte) error {
	var decoded intervalJSON
	if err := json.Unmarshal(text, &decoded); err != nil {
		return err
	}
	*e = Interval{valueOr(decoded.Value, math.NaN()), valueOr(decoded.Lo, math.Inf(-1)), valueOr(decoded.Hi,
		math.Inf(1)),
		decoded.Confidence, decoded.Method, decoded.Seconds}
	return nil
}

// finiteOrNil returns a pointer to v, or nil if v is not finite.
func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// valueOr returns *p, or v if p is nil.
func valueOr(p *float64, v float64) float64 {
	if p == nil {
		return v
	}
	return *p
}

// DefaultConfidence is the confidence of the estimates if an option leaves the confidence 0.
const DefaultConfidence = 0.95

// CheckConfidence returns an error unless 0 < c ≤ 1 − 10⁻¹².
func CheckConfidence(c float64) error {
	if !(c > 0 && c < 1) {
		return fmt.Errorf("confidence %g: want a number between 0 and 1, such as 0.95", c)
	}
	if 1-c < 1e-12 { // stages divide 1−c among several intervals, and a part must not round to 0
		return fmt.Errorf("confidence 1 − %.1e: want at most 1 − 1e-12", 1-c)
	}
	return nil
}
