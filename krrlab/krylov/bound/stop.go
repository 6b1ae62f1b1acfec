package bound

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/enum"
)

// Rule is the criterion that ends an iteration.
type Rule int

const (
	DefaultRule   Rule = iota // ByPredictions or ByResidual, as the configuration of a solve decides
	ByResidual                // end at the residual: ‖y_j−Ac_j‖₂ ≤ τ‖y_j‖₂
	ByANorm                   // end when the bound of the error is at most τ‖c_j*‖_A
	ByLabels                  // end when the labels of at most a fraction of the rows are undecided, or at the residual
	ByPredictions             // end when the residual is small compared with the noise of the data, or at the residual
)

// Stop is the criterion that ends an iteration: a Rule, with MaxUndecided of the rule ByLabels. Its text is "",
// "residual", "anorm", "labels=1%" or "predictions".
type Stop struct {
	Rule         Rule
	MaxUndecided float64 // largest fraction of undecided labels for the rule ByLabels, in (0, 1)
}

// ruleNames are the texts of the rules, without the MaxUndecided of ByLabels.
var ruleNames = []string{"", "residual", "anorm", "labels", "predictions"}

// parseStop parses a Stop: the name of a rule, or labels=P with a fraction P such as 1% or 0.01.
func parseStop(text string) (Stop, error) {
	if rule := slices.Index(ruleNames, text); rule >= 0 && Rule(rule) != ByLabels {
		return Stop{Rule: Rule(rule)}, nil
	}
	if share, ok := strings.CutPrefix(text, "labels="); ok {
		number, percent := strings.CutSuffix(share, "%")
		fraction, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if percent {
			fraction /= 100
		}
		if err == nil && fraction > 0 && fraction < 1 {
			return Stop{ByLabels, fraction}, nil
		}
		return Stop{}, fmt.Errorf("labels=%s: want a share above 0 and below 1, such as labels=1%%", share)
	}
	return Stop{}, fmt.Errorf(`unknown stop %q: want "predictions", "residual", "anorm" or "labels=1%%"`, text)
}

// String returns a text that parseStop can parse.
func (s Stop) String() string {
	text := enum.Name(ruleNames, s.Rule)
	if s.Rule == ByLabels {
		text += "=" + strconv.FormatFloat(100*s.MaxUndecided, 'g', 6, 64) + "%"
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (s Stop) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Stop) UnmarshalText(text []byte) (err error) {
	*s, err = parseStop(string(text))
	return err
}
