package feature

import (
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// draw draws a map, or ends the test if that is an error.
func draw(t *testing.T, f Dist, d, s int) Map {
	t.Helper()
	return testkit.Must(f.Sample(d, s, rng.New(1)))
}
