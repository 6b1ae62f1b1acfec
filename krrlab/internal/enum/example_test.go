package enum_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/enum"
)

// color is an enumeration whose names are in colors.
type color int

var colors = []string{"red", "green"}

func (c color) String() string { return enum.Name(colors, c) }

// This example defines an enumeration, parses the name of a value, and prints values inside and outside the
// enumeration.
func Example() {
	green, err := enum.Parse[color]("color", colors, "green")
	fmt.Println(green, int(green), err)
	_, err = enum.Parse[color]("color", colors, "blue")
	fmt.Println(err)
	fmt.Println(color(-1), color(0), color(2))
	// Output:
	// green 1 <nil>
	// unknown color "blue": want one of red, green
	// unknown (-1) red unknown (2)
}
