package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Power returns the text of m·10^p, where m is the text of a number. The factor 1 is omitted.
func Power(m string, p int) string {
	exp := Flat(fmt.Sprintf("10^{%d}", p))
	switch m {
	case "1":
		return exp
	case "-1":
		return "−" + exp
	}
	return Minus(m) + "×" + exp
}

// Minus replaces a leading hyphen with a minus sign.
func Minus(s string) string {
	if strings.HasPrefix(s, "-") {
		return "−" + s[1:]
	}
	return s
}

// Group inserts commas between groups of three digits into a decimal number whose integer part has five digits or more.
func Group(s string) string { return Commas(s, 5) }

// Commas is like Group, for numbers whose integer part has minDigits digits or more.
func Commas(s string, minDigits int) string {
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

// Scientific formats v with at most three significant digits: 10⁻³, 2.5×10⁻⁴, 0.1, 20.
func Scientific(v float64) string { return Rounded(v, -1, 3) }

// Rounded formats v with at most three significant digits, or as a whole number if it is at least 1000. If its magnitude is
// below 10^low, or 10^(high+1) or more, it is written with a Power of ten.
func Rounded(v float64, low, high int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	m, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	switch p, _ := strconv.Atoi(e); {
	case p < low || p > high:
		return Power(strings.TrimRight(strings.TrimRight(m, "0"), "."), p)
	case p >= 3:
		v = math.RoundToEven(v)
	}
	return Plain(v)
}

// Plain formats v without a power of ten: a whole number in full, and any other with three significant digits.
func Plain(v float64) string {
	if v == math.Trunc(v) {
		return Group(Minus(strconv.FormatFloat(v, 'f', 0, 64)))
	}
	return Minus(strconv.FormatFloat(v, 'g', 3, 64))
}
