package golang_test

import (
	"fmt"
	"log"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// screen is an Output that prints what cells print.
type screen struct{}

func (screen) Interrupts() <-chan struct{}        { return nil }
func (screen) Stream(_, text string)              { fmt.Print(text) }
func (screen) Display(display.Data)               {}
func (screen) Update(display.Data)                {}
func (screen) Clear(bool)                         {}
func (screen) Input(string, bool) (string, error) { return "", nil }

// This example runs two cells, which share their variables. The last expression of a cell is its value.
func ExampleSession_Run() {
	s, err := golang.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	s.Run("Cell 1", "x := 20", screen{})
	r := s.Run("Cell 2", "x+1", screen{})
	s.Close() // afterwards, os.Stdout is that of the program again
	fmt.Println(r.Value.Data["text/plain"], r.Err)
	// Output: 21 <nil>
}
