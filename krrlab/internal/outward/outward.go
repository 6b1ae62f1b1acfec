// Package outward writes numbers with few digits, the ends of intervals, so that what is printed holds too: 150003.9 as
// an upper bound is 1.501e+05 in four digits, and not 1.5e+05.
package outward

import (
	"math"
	"strconv"
	"strings"
)

// Down writes v in the given number of digits, as %g does, as a number that is not larger than v.
func Down(v float64, digits int) string { return toward(v, 'g', digits, digits, -1) }

// Up writes v in the given number of digits, as %g does, as a number that is not smaller than v.
func Up(v float64, digits int) string { return toward(v, 'g', digits, digits, 1) }

// UpE is Up in the form of %e.
func UpE(v float64, digits int) string { return toward(v, 'e', digits-1, digits, 1) }

// Rounded returns v to the given number of significant digits, and v itself where that is beyond float64.
func Rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// Percent writes a share, such as 0.997, as percent with the given number of significant digits: "100 %", never
// "1e+02 %".
func Percent(share float64, digits int) string {
	return strconv.FormatFloat(Rounded(100*share, digits), 'g', -1, 64) + " %"
}

// Span writes the ends of an interval, as %g does: "[lo, hi]" holds it.
func Span(lo, hi float64, digits int) string {
	return "[" + Down(lo, digits) + ", " + Up(hi, digits) + "]"
}

// Plain writes v in the given number of digits for a person: 63,310 and 0.1006, with an exponent only below 10⁻⁴ and
// from 10⁹ on.
func Plain(v float64, digits int) string { return plain(strconv.FormatFloat(v, 'g', digits, 64)) }

// PlainSpan is Span in the form of Plain.
func PlainSpan(lo, hi float64, digits int) string {
	return "[" + plain(Down(lo, digits)) + ", " + plain(Up(hi, digits)) + "]"
}

// PlainList is Plain of each number; where one has a comma, semicolons are between them.
func PlainList(v []float64, digits int) string {
	text := make([]string, len(v))
	between := ", "
	for i := range v {
		if text[i] = Plain(v[i], digits); strings.Contains(text[i], ",") {
			between = "; "
		}
	}
	return strings.Join(text, between)
}

// plain writes a decimal number without an exponent, thousands apart, where that is short.
func plain(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if a := math.Abs(v); err != nil || v != 0 && a < 1e-4 || !(a < 1e9) {
		return s
	}
	if math.Abs(v) < 1e4 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', -1, 64), ".")
	if rest != "" {
		rest = "." + rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if v < 0 {
		whole = "-" + whole
	}
	return whole + rest
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
