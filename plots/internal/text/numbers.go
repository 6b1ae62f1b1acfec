package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// TimesPower returns the text of m·10^p, such as 2.5×10⁻⁴, where m is the text of a number. A factor 1 is omitted.
func TimesPower(m string, p int) string {
	power := Flat(fmt.Sprintf("10^{%d}", p)) // with superscript digits
	switch m {
	case "1":
		return power
	case "-1":
		return "−" + power
	}
	return Minus(m) + "×" + power
}

// Minus replaces a leading hyphen with a minus sign.
func Minus(s string) string {
	if strings.HasPrefix(s, "-") {
		return "−" + s[1:]
	}
	return s
}

// Group inserts commas between groups of three digits into a decimal number whose integer part has five digits or more.
func Group(s string) string { return GroupFrom(s, 5) }

// GroupFrom is like Group, for numbers whose integer part has minDigits digits or more.
func GroupFrom(s string, minDigits int) string {
	integerPart, _, _ := strings.Cut(s, ".")
	digits := strings.TrimLeft(integerPart, "−-")
	if len(digits) < minDigits || strings.Trim(digits, "0123456789") != "" {
		return s
	}
	for i := len(integerPart) - 3; i > len(integerPart)-len(digits); i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Compact formats v with a power of ten if its magnitude is below 0.1, or 10,000 or more, and otherwise like Plain:
// 10⁻³, 2.5×10⁻⁴, 0.1, 20, 1234.
func Compact(v float64) string { return PlainWithin(v, -1, 3) }

// PlainWithin formats v like Plain if its magnitude, rounded to three significant digits, is from 10^minExp to below
// 10^(maxExp+1). Otherwise it formats v with at most three significant digits and a power of ten, like TimesPower.
// Zero, infinities and NaN are formatted like Plain.
func PlainWithin(v float64, minExp, maxExp int) string {
	m, p := threeDigits(v)
	if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) && (p < minExp || p > maxExp) {
		return TimesPower(strings.TrimRight(strings.TrimRight(m, "0"), "."), p)
	}
	return Plain(v)
}

// Plain formats v without a power of ten, with a minus sign (−), and with commas from five digits before the point. A
// whole number is written in full. Any other number is rounded to at most three significant digits if its magnitude is
// below 1000, and otherwise to a whole number. Infinities are ∞ and −∞, and NaN is "NaN".
func Plain(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	case v == 0: // no sign for −0
		return "0"
	}
	_, p := threeDigits(v)
	s := strconv.FormatFloat(v, 'f', max(0, 2-p), 64) // three significant digits have 2−p decimals
	if p < 2 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return Group(Minus(s))
}

// threeDigits returns the text m of the significand of v, such as "2.50", and the exponent p: v ≈ m·10^p, rounded to
// three digits. p is 0 if v is 0, infinite or NaN.
func threeDigits(v float64) (m string, p int) {
	m, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	p, _ = strconv.Atoi(exponent)
	return m, p
}
