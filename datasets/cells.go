package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// missingWords are the cells that stand for a missing value, in lower case. Upper-case letters are taken as equal to
// lower-case ones. The first word is the empty cell.
var missingWords = strings.Split(`|na|n/a|n.a.|null|(null)|none|missing|nan|nat|?|-|--|---|.|..|...|\n|<na>|`+
	`#n/a|#na|#n/a n/a|#null!|#div/0!|#value!|#ref!|#name?|#num!`, "|")

// isMissing reports whether the cell stands for a missing value.
func isMissing(cell string) bool {
	const maxLength = 11 // bytes, at least the length of every missing word; a longer cell needs no search
	return len(cell) <= maxLength && slices.Contains(missingWords, strings.ToLower(cell))
}

// parseNumber is strconv.ParseFloat restricted to decimal numbers: hexadecimal numbers (0x10) and underscores (1_0) are
// syntax errors.
func parseNumber(text string) (float64, error) {
	if v, ok := parseShort(text); ok {
		return v, nil
	}
	if strings.ContainsAny(text, "xXpP_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// parseShort parses a number of at most 15 digits without an exponent; ok is false for any other text. The digits, as
// an integer below 10¹⁵ < 2⁵³, and a power of 10 below 10²³ are exact float64 numbers, so their quotient, rounded once,
// is the correctly rounded number (Clinger, PLDI 1990, DOI 10.1145/93542.93557).
func parseShort[T string | []byte](text T) (v float64, ok bool) {
	i, digits, point, mantissa := 0, 0, -1, int64(0)
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i = 1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			mantissa = 10*mantissa + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = digits
		default:
			return 0, false
		}
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	if v = float64(mantissa); point >= 0 {
		v /= math.Pow10(digits - point) // exact
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}

// isSyntaxError reports whether err, returned by parseNumber, says that the text does not have the form of a number.
func isSyntaxError(err error) bool { return errors.Is(err, strconv.ErrSyntax) }

// parseFinite parses a finite number. Its errors explain how to repair the cell.
func parseFinite(text string) (float64, error) {
	v, err := parseNumber(text)
	switch {
	case text == "":
		return 0, errors.New("the cell is empty; fill in or remove missing values")
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large for a float64", quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number%s", quote(text), localFormAdvice(text))
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s is not finite; fill in or remove missing values", quote(text))
	}
	return v, nil
}

// isWord reports whether the text does not have the form of a number, finite or not.
func isWord(text string) bool {
	_, err := parseNumber(text)
	return isSyntaxError(err)
}

// parseBoolean returns 1 for the word true and 0 for the word false, in any case; ok is false for other texts.
func parseBoolean(text string) (v float64, ok bool) {
	if strings.EqualFold(text, "true") {
		return 1, true
	}
	return 0, strings.EqualFold(text, "false")
}

// isFinite reports whether v is neither NaN nor infinite.
func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// cellKind is the kind of content of a cell.
type cellKind int

const (
	wordCell cellKind = iota
	missingCell
	numberCell
	localCell // a number in a local form, such as with a decimal comma, a date or a time of day
)

// kindOf returns the kind of a cell.
func kindOf(cell string) cellKind {
	if isMissing(cell) {
		return missingCell
	}
	if _, err := parseNumber(cell); !isSyntaxError(err) {
		return numberCell
	}
	if localFormAdvice(cell) != "" {
		return localCell
	}
	return wordCell
}
