package golang

import (
	"log"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// noisy is a value that prints while it shows itself.
type noisy struct{}

func (noisy) HTML() string { log.Print("drawn"); return "<b>n</b>" }

// TestUpdatePrints replaces a value by one that prints while it is rendered.
func TestUpdatePrints(t *testing.T) {
	s := testkit.Must(New(nil))
	s.do(func() { v := any(noisy{}); s.e.Declare(map[string]any{"v": &v}) })
	p := &sheet{}
	done := make(chan Result, 1)
	go func() { done <- s.Run("Cell 1", `Update("a", v)`, p) }()
	select {
	case r := <-done:
		s.Close()
		if got := outcome(r, p); !strings.Contains(got, "drawn\n|update a: ") {
			t.Errorf("%q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the cell does not end")
	}
}
