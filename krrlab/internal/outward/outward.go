// Package outward writes the ends of intervals with few digits, so that what is printed holds too: 150003.9 as
// an upper bound is 1.501e+05 in four digits, and not 1.5e+05.
package outward

import (
	"math"
	"strconv"
)

// Down writes v in the given number of digits, as %g does, as a number that is not larger than v.
func Down(v float64, digits int) string { return toward(v, 'g', digits, digits, -1) }

// Up writes v in the given number of digits, as %g does, as a number that is not smaller than v.
func Up(v float64, digits int) string { return toward(v, 'g', digits, digits, 1) }

// UpE is Up in the form of %e.
func UpE(v float64, digits int) string { return toward(v, 'e', digits-1, digits, 1) }

// Span writes the ends of an interval, as %g does: "[lo, hi]" holds it.
func Span(lo, hi float64, digits int) string {
	return "[" + Down(lo, digits) + ", " + Up(hi, digits) + "]"
}

// toward writes v, and where that is rounded the wrong way, the number one unit of its last digit on.
func toward(v float64, format byte, precision, digits int, sign float64) string {
	s := strconv.FormatFloat(v, format, precision, 64)
	if r, err := strconv.ParseFloat(s, 64); err == nil && sign*r < sign*v {
		unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-float64(digits-1))
		s = strconv.FormatFloat(r+sign*unit, format, precision, 64)
	}
	return s
}
