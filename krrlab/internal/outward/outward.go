// Package outward formats numbers with few digits. The ends of intervals are rounded outward (directed rounding), so
// that the printed interval contains the exact one: as an upper bound, 150003.9 in four digits is 1.501e+05 and not
// 1.5e+05.
package outward

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Down formats v with the given number of digits, as %g does, rounded so that the result is at most v.
func Down(v float64, digits int) string { return formatDirected(v, 'g', digits, digits, -1) }

// Up formats v with the given number of digits, as %g does, rounded so that the result is at least v.
func Up(v float64, digits int) string { return formatDirected(v, 'g', digits, digits, 1) }

// UpE formats v as Up does, but in the format %e.
func UpE(v float64, digits int) string { return formatDirected(v, 'e', digits-1, digits, 1) }

// Rounded returns v rounded to the given number of significant digits, or v itself if the rounded number overflows
// float64.
func Rounded(v float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return rounded
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
func Plain(v float64, digits int) string {
	return removeExponent(strconv.FormatFloat(v, 'g', digits, 64))
}

// PlainSpan formats an interval as Span does, with the ends in the format of Plain.
func PlainSpan(lo, hi float64, digits int) string {
	return "[" + removeExponent(Down(lo, digits)) + ", " + removeExponent(Up(hi, digits)) + "]"
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

// removeExponent rewrites a decimal number without an exponent, with commas between thousands, unless its absolute
// value is nonzero and below 10⁻⁴, or at least 10⁹.
func removeExponent(number string) string {
	v, err := strconv.ParseFloat(number, 64)
	if size := math.Abs(v); err != nil || v != 0 && size < 1e-4 || !(size < 1e9) {
		return number
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

// formatDirected formats v by strconv.FormatFloat with the given format and precision, which gives a number of digits
// significant digits. direction is 1 to round up, and −1 to round down: if the formatted number is on the other side of
// v, the result is the next number with as many digits.
func formatDirected(v float64, format byte, precision, digits int, direction float64) string {
	text := strconv.FormatFloat(v, format, precision, 64)
	printed, _ := strconv.ParseFloat(text, 64) // ±Inf if s exceeds float64
	if !(direction*printed < direction*v) {
		return text
	}
	// The exponent is taken from the shortest text of v, because math.Log10 is too inexact. In units of the last digit,
	// the number is an integer. The text of the integer is converted, because the rounded number may be infinite.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	rounded, roundedExponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	units, _ := strconv.ParseInt(strings.Replace(rounded, ".", "", 1), 10, 64)
	if roundedExponent != exponent {
		units *= 10
	}
	lastPlace, _ := strconv.Atoi(exponent)
	printed, _ = strconv.ParseFloat(fmt.Sprintf("%de%d", units+int64(direction), lastPlace-digits+1), 64)
	return strconv.FormatFloat(printed, format, precision, 64)
}
