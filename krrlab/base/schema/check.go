package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// check is what a value must be: a number from low to high, which are none themselves where they are open.
type check struct {
	low, high         float64
	openLow, openHigh bool
	text              string   // what is wanted; "": any number
	words             []string // nil: any word
}

func (c *check) right(v float64) bool {
	return (v > c.low || v == c.low && !c.openLow) && (v < c.high || v == c.high && !c.openHigh)
}

// parseCheck reads a check from its tag.
func parseCheck(tag string) check {
	if tag == "" {
		return check{}
	}
	if words, ok := strings.CutPrefix(tag, "one of "); ok {
		return check{words: strings.Fields(words)}
	}
	if tag == "positive" {
		return check{0, math.Inf(1), true, true, "a positive number", nil}
	}
	if bound, ok := strings.CutPrefix(tag, ">="); ok {
		return check{low: parse(tag, bound), high: math.Inf(1), text: "at least " + bound}
	}
	if bound, ok := strings.CutPrefix(tag, ">"); ok {
		return check{parse(tag, bound), math.Inf(1), true, true, "a number above " + bound, nil}
	}
	low, high, ok := strings.Cut(strings.Trim(tag, "([])"), ",")
	if !ok || !strings.ContainsAny(tag[:1], "([") || !strings.HasSuffix(tag, ")") && !strings.HasSuffix(tag, "]") {
		panic("schema: unknown check " + tag)
	}
	c := check{low: parse(tag, low), high: parse(tag, high), openLow: tag[0] == '(', openHigh: strings.HasSuffix(tag, ")")}
	text := "a number from %s to %s"
	switch {
	case c.openLow && c.openHigh:
		text = "a number between %s and %s"
	case c.openLow:
		text = "a number above %s and at most %s"
	case c.openHigh:
		text = "a number of at least %s and below %s"
	}
	c.text = fmt.Sprintf(text, low, high)
	return c
}

func parse(tag, bound string) float64 {
	v, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		panic("schema: unknown check " + tag)
	}
	return v
}

// want says what a value of the option must be, with the default as an example.
func (f *Field) want() string {
	text := f.check.text
	if f.of.Type == reflect.TypeFor[time.Duration]() {
		text = strings.Replace(text, "number", "time", 1)
	}
	if such := f.tag("default"); such != "" {
		text += ", such as " + such
	}
	return text
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
