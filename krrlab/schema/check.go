package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// check is what a value must be.
type check struct {
	right func(v float64) bool  // nil: any number
	text  func(f *Field) string // what is wanted
	words []string              // nil: any word
}

// parseCheck reads a check from its tag.
func parseCheck(tag string) check {
	if tag == "" {
		return check{}
	}
	if tag == "positive" {
		return check{
			right: func(v float64) bool { return v > 0 && !math.IsInf(v, 1) },
			text:  func(f *Field) string { return f.positive() },
		}
	}
	if words, ok := strings.CutPrefix(tag, "one of "); ok {
		return check{words: strings.Fields(words)}
	}
	if bound, ok := strings.CutPrefix(tag, ">="); ok {
		low := parse(tag, bound)
		return check{
			right: func(v float64) bool { return v >= low },
			text:  func(*Field) string { return "at least " + bound },
		}
	}
	if bound, ok := strings.CutPrefix(tag, ">"); ok {
		low := parse(tag, bound)
		return check{
			right: func(v float64) bool { return v > low && !math.IsInf(v, 1) },
			text:  func(*Field) string { return "a number above " + bound },
		}
	}
	return interval(tag)
}

// interval reads one such as (0,1), [1,40] or (0,1].
func interval(tag string) check {
	low, high, ok := strings.Cut(strings.Trim(tag, "([])"), ",")
	if !ok || !strings.ContainsAny(tag[:1], "([") || !strings.HasSuffix(tag, ")") && !strings.HasSuffix(tag, "]") {
		panic("schema: unknown check " + tag)
	}
	a, b := parse(tag, low), parse(tag, high)
	openLow, openHigh := tag[0] == '(', strings.HasSuffix(tag, ")")
	text := fmt.Sprintf("a number from %s to %s", low, high)
	switch {
	case openLow && openHigh:
		text = fmt.Sprintf("a number between %s and %s", low, high)
	case openLow:
		text = fmt.Sprintf("a number above %s and at most %s", low, high)
	case openHigh:
		text = fmt.Sprintf("a number of at least %s and below %s", low, high)
	}
	return check{
		right: func(v float64) bool { return (v > a || !openLow && v == a) && (v < b || !openHigh && v == b) },
		text:  func(f *Field) string { return text + f.suchAs() },
	}
}

func parse(tag, bound string) float64 {
	v, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		panic("schema: unknown check " + tag)
	}
	return v
}

// positive says what is wanted of a positive number or time.
func (f *Field) positive() string {
	if f.of.Type == reflect.TypeFor[time.Duration]() {
		return "a positive time"
	}
	return "a positive number" + f.suchAs()
}

// suchAs gives the default as an example.
func (f *Field) suchAs() string {
	if text := f.tag("default"); text != "" {
		return ", such as " + text
	}
	return ""
}

// number returns a value as the number that is checked.
func number(v reflect.Value) float64 {
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
