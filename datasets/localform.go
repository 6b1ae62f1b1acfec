package datasets

import (
	"regexp"
	"strings"
)

// Forms of numbers that are not read: with digits in groups of thousands, dates, times of day, with an exponent in the
// form of Fortran, hexadecimal, with underscores, and with a unit.
var (
	groupedNumber = regexp.MustCompile(`^([+-]?\d{1,3})([ ,.'’_\x{a0}\x{202f}])(\d{3})` +
		`((?:[ ,.'’_\x{a0}\x{202f}]\d{3})*)(?:[.,](\d+))?$`)
	dateForm          = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ,].*)?$`)
	clockForm         = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$`)
	fortranExponent   = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)[dDqQ][+-]?\d+$`)
	hexNumber         = regexp.MustCompile(`^[+-]?0[xX][0-9a-fA-F]`)
	underscoredNumber = regexp.MustCompile(`^[+-]?\d+(?:_\d+)+(?:\.\d*)?$`)
	unitForm          = regexp.MustCompile(`^(?:[$€£¥] ?)?([+-]?[\d.,]+) ?(?:[%‰$€£¥°])?$`)
)

// localFormAdvice returns advice on how to write a text that looks like a number in a local form, or like a date, and
// is not read as a number. It returns "" for other texts.
func localFormAdvice(text string) string {
	if len(text) > maxQuotedBytes {
		return ""
	}
	if hyphen := strings.ReplaceAll(text, "\u2212", "-"); hyphen != text {
		if _, err := parseNumber(hyphen); err == nil {
			return ": write the minus sign as a hyphen"
		}
		text = hyphen
	}
	if match := parenthesizedAmount.FindStringSubmatch(text); match != nil {
		if _, err := parseNumber(match[1]); err == nil {
			return ": a negative amount in parentheses? write -" + match[1]
		} else if form := localFormAdvice(match[1]); form != "" {
			return ": a negative amount in parentheses" + strings.Replace(form, ":", ",", 1) + ", with a minus sign"
		}
	}
	if advice := localNumber(text); advice != "" {
		return advice
	}
	switch {
	case dateForm.MatchString(text):
		return ": a date? write a number, such as the days since the first"
	case clockForm.MatchString(text):
		return ": a time of day? write a number, such as the seconds since midnight"
	case fortranExponent.MatchString(text):
		return ": an exponent of Fortran? write E instead of its letter"
	case hexNumber.MatchString(text):
		return ": hexadecimal? write decimal digits"
	case underscoredNumber.MatchString(text):
		return ": underscores between digits? write " + strings.ReplaceAll(text, "_", "")
	}
	if match := unitForm.FindStringSubmatch(text); match != nil && match[1] != text {
		if _, err := parseNumber(match[1]); err == nil || localNumber(match[1]) != "" {
			return ": a unit? write the number alone"
		}
	}
	return ""
}

// localNumber is the part of localFormAdvice for decimal commas and thousands separators.
func localNumber(text string) string {
	if _, err := parseNumber(text); err == nil || len(text) > maxQuotedBytes {
		return ""
	}
	withPoint := strings.Replace(text, ",", ".", 1)
	_, err := parseNumber(withPoint)
	hasDecimalComma := err == nil && withPoint != text
	number, _ := removeSeparators(text)
	switch {
	case hasDecimalComma && number != "":
		return ": a decimal comma or a separator of thousands? write " + withPoint + " or " + number
	case hasDecimalComma:
		return ": decimal comma? write " + withPoint
	case number != "":
		return ": separators of thousands? write " + number
	}
	return ""
}
