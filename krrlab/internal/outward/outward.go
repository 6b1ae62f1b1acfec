// Package outward formats numbers with few digits. The ends of intervals are rounded outward (directed rounding), so
// that the printed interval contains the exact one: as an upper bound, 150003.9 in four digits is 1.501e+05 and not
// 1.5e+05.
package outward

import (
	"math"
	"strconv"
	"strings"
)

// Down formats v with the given number of digits, as %g does, rounded so that the result is at most v.
func Down(v float64, digits int) string { return toward(v, 'g', digits, digits, -1) }

// Up formats v with the given number of digits, as %g does, rounded so that the result is at least v.
func Up(v float64, digits int) string { return toward(v, 'g', digits, digits, 1) }

// UpE is Up with the format %e.
func UpE(v float64, digits int) string { return toward(v, 'e', digits-1, digits, 1) }

// Rounded returns v rounded to the given number of significant digits, or v itself if the rounded number overflows
// float64.
func Rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// Percent formats a fraction, such as 0.997, as a percentage with the given number of significant digits: "100 %",
// never "1e+02 %".
func Percent(share float64, digits int) string {
	return strconv.FormatFloat(Rounded(100*share, digits), 'g', -1, 64) + " %"
}

// Span formats an interval as "[lo, hi]" with %g, rounded outward so that it contains the exact interval.
func Span(lo, hi float64, digits int) string {
	return "[" + Down(lo, digits) + ", " + Up(hi, digits) + "]"
}

// Plain formats v with the given number of digits for readers, as 63,310 or 0.1006. It uses an exponent only below
// 10⁻⁴ and from 10⁹ on.
func Plain(v float64, digits int) string { return plain(strconv.FormatFloat(v, 'g', digits, 64)) }

// PlainSpan is Span with the format of Plain.
func PlainSpan(lo, hi float64, digits int) string {
	return "[" + plain(Down(lo, digits)) + ", " + plain(Up(hi, digits)) + "]"
}

// PlainList formats each number as Plain does. The separator is a comma, or a semicolon if a number contains a comma.
func PlainList(v []float64, digits int) string {
	text := make([]string, len(v))
	separator := ", "
	for i := range v {
		if text[i] = Plain(v[i], digits); strings.Contains(text[i], ",") {
			separator = "; "
		}
	}
	return strings.Join(text, separator)
}

// plain rewrites a decimal number without an exponent, with commas between thousands, unless its absolute value is
// nonzero and below 10⁻⁴, or at least 10⁹.
func plain(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if a := math.Abs(v); err != nil || v != 0 && a < 1e-4 || !(a < 1e9) {
		return s
	}
	if math.Abs(v) < 1e4 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	integer, decimals, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', -1, 64), ".")
	if decimals != "" {
		decimals = "." + decimals
	}
	for i := len(integer) - 3; i > 0; i -= 3 {
		integer = integer[:i] + "," + integer[i:]
	}
	if v < 0 {
		integer = "-" + integer
	}
	return integer + decimals
}

// toward formats v. If rounding went against the sign of direction, it adds one unit of the last digit in that
// direction.
func toward(v float64, format byte, precision, digits int, direction float64) string {
	s := strconv.FormatFloat(v, format, precision, 64)
	if r, err := strconv.ParseFloat(s, 64); err == nil && direction*r < direction*v {
		unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-float64(digits-1))
		s = strconv.FormatFloat(r+direction*unit, format, precision, 64)
	}
	return s
}
