package schema

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Interval is a condition on a number: it lies between Low and High.
type Interval struct {
	Low, High         float64 // infinite if there is no bound
	OpenLow, OpenHigh bool    // Low, or High, does not belong to the interval
}

// contains reports whether v is in the interval.
func (i Interval) contains(v float64) bool {
	return (v > i.Low || v == i.Low && !i.OpenLow) && (v < i.High || v == i.High && !i.OpenHigh)
}

// check is a condition on the value of an option: a numeric interval, or a list of words.
type check struct {
	Interval
	text  string   // description of the interval for errors; "" if any number is valid
	words []string // valid words; nil if any word is valid
}

// checkForms lists the forms of a check tag, for the panic of an invalid one.
const checkForms = `positive, >=1, >1, an interval such as [1,5] or (0,1], or "one of auto yes no"`

// parseCheck parses the text of a check tag. It panics if the text is not valid, or if the interval is empty.
func parseCheck(tag string) check {
	c := check{Interval: Interval{Low: math.Inf(-1), High: math.Inf(1)}}
	if tag == "" {
		return c
	}
	if words, ok := strings.CutPrefix(tag, "one of "); ok {
		c.words = strings.Fields(words)
		return c
	}
	if tag == "positive" {
		c.Low, c.OpenLow, c.OpenHigh, c.text = 0, true, true, "a positive number"
		return c
	}
	if bound, ok := strings.CutPrefix(tag, ">="); ok {
		c.Low, c.text = parseBound(tag, bound), "at least "+bound
		return c
	}
	if bound, ok := strings.CutPrefix(tag, ">"); ok {
		c.Low, c.OpenLow, c.OpenHigh, c.text = parseBound(tag, bound), true, true, "a number above "+bound
		return c
	}
	low, high, ok := strings.Cut(strings.Trim(tag, "([])"), ",")
	if !ok || !strings.ContainsAny(tag[:1], "([") || !strings.HasSuffix(tag, ")") && !strings.HasSuffix(tag, "]") {
		panic(fmt.Sprintf("schema: unknown check %q: want %s", tag, checkForms))
	}
	c.Interval = Interval{parseBound(tag, low), parseBound(tag, high), tag[0] == '(', strings.HasSuffix(tag, ")")}
	if c.Low > c.High || c.Low == c.High && (c.OpenLow || c.OpenHigh) {
		panic(fmt.Sprintf("schema: no number is in the interval of check %q", tag))
	}
	text := "a number from %s to %s"
	switch {
	case c.OpenLow && c.OpenHigh:
		text = "a number between %s and %s"
	case c.OpenLow:
		text = "a number above %s and at most %s"
	case c.OpenHigh:
		text = "a number of at least %s and below %s"
	}
	c.text = fmt.Sprintf(text, low, high)
	return c
}

// parseBound converts an end of an interval to a number.
func parseBound(tag, bound string) float64 {
	v, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		panic(fmt.Sprintf("schema: unknown check %q: want %s", tag, checkForms))
	}
	return v
}

// validNumbers describes the valid values of the option, with the default as an example.
func (f *Field) validNumbers() string {
	text := f.check.text
	if f.structField.Type == reflect.TypeFor[time.Duration]() {
		text = strings.Replace(text, "number", "time", 1)
	}
	if example := f.tag("default"); example != "" {
		text += ", such as " + example
	}
	return text
}

// toFloat64 converts a value to float64 for the check. It returns NaN if the value is not a number.
func toFloat64(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return math.NaN()
}

// Interval returns the interval in which the numeric value of the option must lie.
func (f *Field) Interval() Interval { return f.check.Interval }

// Choices returns the valid texts of an option that has a fixed list of them, and nil for any other option.
func (f *Field) Choices() []string {
	if named, ok := f.value.Addr().Interface().(enumeration); ok {
		return named.Names()
	}
	if slices.ContainsFunc(f.check.words, func(word string) bool { return strings.HasSuffix(word, ":") }) {
		return nil
	}
	return f.check.words
}

// Value returns the current value of the option.
func (f *Field) Value() any { return f.value.Interface() }
