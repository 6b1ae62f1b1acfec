package stage_test

import (
	"testing"

	"github.com/krrlab/lab/krrlab/stage"
)

// TestTook: the unit goes by the total.
func TestTook(t *testing.T) {
	for total, want := range map[float64]string{
		0.00004: "milliseconds a 0.0, total 0.0\n", 0.0421: "milliseconds a 21.1, total 42.1\n",
		0.4214: "milliseconds a 211, total 421\n",
		1.234:  "seconds a 0.62, total 1.23\n", 121.34: "seconds a 60.7, total 121.3\n",
	} {
		b := stage.Lines{Width: 1}
		if b.Took(total, "a", total/2); b.String() != want {
			t.Errorf("%g: %s, want %s", total, b.String(), want)
		}
	}
	b := stage.Lines{Width: 1}
	if b.Took(0.5); b.String() != "milliseconds 500\n" {
		t.Error(b.String())
	}
}
