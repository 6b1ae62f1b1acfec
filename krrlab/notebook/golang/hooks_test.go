package golang

import (
	"log"
	"strings"
	"testing"
)

// printingValue is a value that prints while it is rendered.
type printingValue struct{}

// HTML returns the representation of the value that a notebook shows.
func (printingValue) HTML() string { log.Print("drawn"); return "<b>n</b>" }

// TestPrintingWhileRendering replaces a displayed value by one that prints while it is rendered, and checks that the
// printed text is shown too.
func TestPrintingWhileRendering(t *testing.T) {
	s := openSession(t, nil)
	s.runOnWorker(func() { v := any(printingValue{}); s.interp.Declare(map[string]any{"v": &v}) })
	if got := run(s, `Update("a", v)`); !strings.Contains(got, "drawn\n|update a: ") {
		t.Errorf("got %q, want the printed text before the update", got)
	}
}
