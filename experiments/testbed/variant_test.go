package testbed

import (
	"testing"

	"github.com/krrlab/lab/krrlab/stage"
)

// TestVariantName checks that a kind without the option features gets no rank: a run with one would be an error.
func TestVariantName(t *testing.T) {
	for _, c := range []struct{ kind, variant, want, text string }{
		{"nystrom", "", "nystrom", "nystrom features=7"},
		{"vecchia", "neighbors=30 features=0", "vecchia neighbors=30 alone", "vecchia neighbors=30"},
		{"none", "", "none alone", "none"},
		{"field.greedy", "rank=3", "field.greedy rank=3 alone", "field.greedy rank=3"},
		{"field.blocks", "", "field.blocks alone", "field.blocks"},
		{"field.afn", "", "field.afn", "field.afn features=7"},
	} {
		if err := registerExternal(); err != nil {
			t.Fatal(err)
		}
		name := variantName(stage.KindNamed(c.kind), c.variant)
		if text := compareEntry(name, 7, 1).Text; name != c.want || text != c.text {
			t.Errorf("%s %s: name %q, text %q", c.kind, c.variant, name, text)
		}
		if _, err := stage.ParsePreconditioner(c.text); err != nil {
			t.Error(err)
		}
	}
}
