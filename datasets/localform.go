package datasets

import (
	"regexp"
	"strconv"
	"strings"
)

// The forms in which numbers are written that strconv does not read: digits in groups of
// thousands, dates, times of day, and numbers with a unit.
var (
	thousands = regexp.MustCompile(`^([+-]?\d{1,3})([ ,.'’_\x{a0}\x{202f}])(\d{3})((?:[ ,.'’_\x{a0}\x{202f}]\d{3})*)(?:[.,](\d+))?$`)
	date      = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ,].*)?$`)
	clock     = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?$`)
	unit      = regexp.MustCompile(`^(?:[$€£¥] ?)?([+-]?[\d.,]+) ?(?:[%‰$€£¥°])?$`)
)

// localForm says how to write what looks like a number in a local form, or a date, and is not read
// as a number; "" for other texts.
func localForm(text string) string {
	if len(text) > maxQuoted {
		return ""
	}
	if hyphen := strings.ReplaceAll(text, "\u2212", "-"); hyphen != text {
		if _, err := strconv.ParseFloat(hyphen, 64); err == nil {
			return ": write the minus sign as a hyphen"
		}
		text = hyphen
	}
	if s := localNumber(text); s != "" {
		return s
	}
	switch {
	case date.MatchString(text):
		return ": a date? write a number, such as the days since the first"
	case clock.MatchString(text):
		return ": a time of day? write a number, such as the seconds since midnight"
	}
	if m := unit.FindStringSubmatch(text); m != nil && m[1] != text {
		if _, err := strconv.ParseFloat(m[1], 64); err == nil || localNumber(m[1]) != "" {
			return ": a unit? write the number alone"
		}
	}
	return ""
}

// localNumber is localForm of a decimal comma and separators of thousands.
func localNumber(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil || len(text) > maxQuoted {
		return ""
	}
	point := strings.Replace(text, ",", ".", 1)
	_, err := strconv.ParseFloat(point, 64)
	comma := err == nil && point != text
	m := thousands.FindStringSubmatch(text)
	if m != nil {
		if rest := strings.ReplaceAll(m[4], m[2], ""); strings.ContainsAny(rest, " ,.'’_\u00a0\u202f") {
			m = nil // more than one separator
		}
	}
	switch {
	case comma && m != nil && m[4] == "" && m[5] == "":
		return ": a decimal comma or a separator of thousands? write " + point + " or " + m[1] + m[3]
	case comma:
		return ": decimal comma? write " + point
	case m != nil:
		whole := m[1] + m[3] + strings.ReplaceAll(m[4], m[2], "")
		if m[5] != "" {
			whole += "." + m[5]
		}
		return ": separators of thousands? write " + whole
	}
	return ""
}
