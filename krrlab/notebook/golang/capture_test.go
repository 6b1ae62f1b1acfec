package golang

import (
	"strings"
	"testing"
	"time"
)

// TestCutBetweenCharacters checks that output that is cut at maxOutput ends with a whole character, even if the bytes
// of the character were printed separately.
func TestCutBetweenCharacters(t *testing.T) {
	for _, parts := range [][]string{{"aλb"}, {"a\xce", "\xbbb"}, {"a", "λ", "b"}} {
		var out outputRecorder
		c := &capture{out: &out, timer: time.NewTimer(time.Hour), acceptedBytes: maxOutput - 2}
		for _, part := range parts {
			c.add(stdout, []byte(part))
		}
		c.endCell()
		got := out.joined()
		if !strings.HasPrefix(got, "stdout: a") || strings.Contains(got, "\xce") || !strings.Contains(got, "[3 more bytes") {
			t.Errorf("%q is captured as %q", parts, got)
		}
	}
}
