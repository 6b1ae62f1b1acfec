package stage_test

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestUnitOfSeconds checks that the total determines the unit and the number of digits of all seconds in a line.
func TestUnitOfSeconds(t *testing.T) {
	for total, want := range map[float64]string{
		0.00004: "milliseconds a 0.0, total 0.0\n", 0.0421: "milliseconds a 21.1, total 42.1\n",
		0.4214: "milliseconds a 211, total 421\n",
		1.234:  "seconds a 0.62, total 1.23\n", 121.34: "seconds a 60.7, total 121.3\n",
	} {
		lines := stage.Lines{Width: 1}
		if lines.AddSeconds(total, "a", total/2); lines.String() != want {
			t.Errorf("a total of %g s: %q, want %q", total, lines.String(), want)
		}
	}
	lines := stage.Lines{Width: 1}
	lines.AddSeconds(0.5)
	testkit.Equal(t, lines.String(), "milliseconds 500\n", "a total without parts")
}

// TestEntryNames checks the name in reports, the name in figures and the text without the name= option of entries
// that describe preconditioners.
func TestEntryNames(t *testing.T) {
	for text, want := range map[string][3]string{ // report, figure, text; an empty third text means the whole one
		"nystrom features=500 lambda-p=0.1": {"nystrom features=500 lambda-p=0.1", "Nyström, s = 500, λ_p = 0.1"},
		"name=mine vecchia neighbors=30":    {"mine", "mine", "vecchia neighbors=30"},
		"vecchia neighbors=30 damping=0.5":  {"vecchia neighbors=30 damping=0.5", "sparse inverse, k = 30, ω = 0.5"},
		"rpcholesky spectral=true":          {"rpcholesky spectral=true", "RPCholesky, spectral"},
		"features":                          {"features", "random features"},
		"nystrom landmarks=1,2,3,4":         {"nystrom landmarks=1,2,3,4", "Nyström, landmarks = 1,2,3,4"},
		"nystrom landmarks=1,2,3,4,5":       {"nystrom landmarks=1,2,…,5", "Nyström, landmarks = 1,2,…,5"},
		"process:python3 /a/b/nystrom.py 9": {"process:python3 nystrom.py 9", "process:python3 nystrom.py 9"},
		"process:" + strings.Repeat("é", 31): {"process:" + strings.Repeat("é", 29) + "…",
			"process:" + strings.Repeat("é", 29) + "…"},
		"name=m process:./a b": {"m", "m", "process:./a b"},
		"name=m":               {"m", "m", ""},
	} {
		entry := stage.Entry{Text: text}
		_, spec := entry.Split()
		if want[2] == "" && want[0] != "m" { // Without name=, the text is unchanged.
			want[2] = text
		}
		if got := [3]string{entry.String(), stage.FigureLabel(entry.String()), spec}; got != want {
			t.Errorf("%s: names in reports and figures, and text: %q, want %q", text, got, want)
		}
	}
}

// EmbeddedNumbers is embedded by the struct of TestSetUnknown.
type EmbeddedNumbers struct{ A, B stage.Number }

// unexportedNumbers is embedded by the struct of TestSetUnknown. SetUnknown must not change it, because its type is not
// exported.
type unexportedNumbers struct{ E stage.Number }

// TestSetUnknown checks that the numbers of a struct and of the structs that it embeds become unknown, and no others.
func TestSetUnknown(t *testing.T) {
	var numbers struct {
		EmbeddedNumbers
		unexportedNumbers
		C     stage.Number
		D     float64
		Inner EmbeddedNumbers
	}
	stage.SetUnknown(&numbers)
	for i, number := range []stage.Number{numbers.A, numbers.B, numbers.C} {
		testkit.Equal(t, number.Known(), false, "number", i)
	}
	if numbers.D != 0 || numbers.Inner != (EmbeddedNumbers{}) || numbers.unexportedNumbers.E != 0 {
		t.Errorf("fields that are not numbers of the struct are changed: %+v", numbers)
	}
}
