package datasets

import (
	"regexp"
	"strings"
)

// The forms in which numbers are written that are not read: digits in groups of thousands, dates, times of day,
// exponents of Fortran, hexadecimal digits, underscores, and numbers with a unit.
var (
	thousands = regexp.MustCompile(`^([+-]?\d{1,3})([ ,.'’_\x{a0}\x{202f}])(\d{3})` +
		`((?:[ ,.'’_\x{a0}\x{202f}]\d{3})*)(?:[.,](\d+))?$`)
	date     = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ,].*)?$`)
	clock    = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$`)
	exponent = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)[dDqQ][+-]?\d+$`)
	sixteen  = regexp.MustCompile(`^[+-]?0[xX][0-9a-fA-F]`)
	under    = regexp.MustCompile(`^[+-]?\d+(?:_\d+)+(?:\.\d*)?$`)
	unit     = regexp.MustCompile(`^(?:[$€£¥] ?)?([+-]?[\d.,]+) ?(?:[%‰$€£¥°])?$`)
)

// localForm says how to write what looks like a number in a local form, or a date, and is not read
// as a number; "" for other texts.
func localForm(text string) string {
	if len(text) > maxQuoted {
		return ""
	}
	if hyphen := strings.ReplaceAll(text, "\u2212", "-"); hyphen != text {
		if _, err := parse(hyphen); err == nil {
			return ": write the minus sign as a hyphen"
		}
		text = hyphen
	}
	if m := inParentheses.FindStringSubmatch(text); m != nil {
		if _, err := parse(m[1]); err == nil {
			return ": a negative amount in parentheses? write -" + m[1]
		} else if form := localForm(m[1]); form != "" {
			return ": a negative amount in parentheses" + strings.Replace(form, ":", ",", 1) + ", with a minus sign"
		}
	}
	if s := localNumber(text); s != "" {
		return s
	}
	switch {
	case date.MatchString(text):
		return ": a date? write a number, such as the days since the first"
	case clock.MatchString(text):
		return ": a time of day? write a number, such as the seconds since midnight"
	case exponent.MatchString(text):
		return ": an exponent of Fortran? write E instead of its letter"
	case sixteen.MatchString(text):
		return ": hexadecimal? write decimal digits"
	case under.MatchString(text):
		return ": underscores between digits? write " + strings.ReplaceAll(text, "_", "")
	}
	if m := unit.FindStringSubmatch(text); m != nil && m[1] != text {
		if _, err := parse(m[1]); err == nil || localNumber(m[1]) != "" {
			return ": a unit? write the number alone"
		}
	}
	return ""
}

// localNumber is localForm of a decimal comma and separators of thousands.
func localNumber(text string) string {
	if _, err := parse(text); err == nil || len(text) > maxQuoted {
		return ""
	}
	point := strings.Replace(text, ",", ".", 1)
	_, err := parse(point)
	comma := err == nil && point != text
	number, _ := ungrouped(text)
	switch {
	case comma && number != "":
		return ": a decimal comma or a separator of thousands? write " + point + " or " + number
	case comma:
		return ": decimal comma? write " + point
	case number != "":
		return ": separators of thousands? write " + number
	}
	return ""
}
