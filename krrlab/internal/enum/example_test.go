package enum_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/enum"
)

type color int

var colors = []string{"red", "green"}

func (c color) String() string { return enum.Name(colors, c) }

// A value has its name, and a name its value.
func Example() {
	green, err := enum.Parse[color]("color", colors, "green")
	fmt.Println(green, int(green), err)
	_, err = enum.Parse[color]("color", colors, "blue")
	fmt.Println(err)
	fmt.Println(color(-1), color(2))
	// Output:
	// green 1 <nil>
	// unknown color "blue": want one of red, green
	// unknown (-1) unknown (2)
}
