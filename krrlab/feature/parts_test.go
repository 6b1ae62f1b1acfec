package feature

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/rng"
)

func draw(t *testing.T, f Dist, d, s int) Map {
	t.Helper()
	m := testkit.Must(f.Sample(d, s, rng.New(1)))
	return m
}
