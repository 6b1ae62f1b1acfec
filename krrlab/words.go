package krrlab

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
)

// kernelWords names a kernel for a reader, its parameters to four digits; JSON has all of them.
func kernelWords(s kernel.Spec) string {
	if k, err := kernel.FromSpec(fourDigits(s)); err == nil {
		return k.String()
	}
	return s.Name
}

// fourDigits returns the kernel with its parameters to four significant digits.
func fourDigits(s kernel.Spec) kernel.Spec {
	for _, v := range []*float64{&s.Sigma, &s.Gamma, &s.Coef0} {
		if r, err := strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 4, 64), 64); err == nil {
			*v = r
		}
	}
	return s
}

// withKernelWords returns a text that names the kernel, such as that of a feature map, with the
// kernel for a reader.
func withKernelWords(text string, s kernel.Spec) string {
	k, err := kernel.FromSpec(s)
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, k.String(), kernelWords(s))
}

// lap is the seconds of a part of the work.
type lap struct {
	name    string
	seconds float64
}

// timeWords gives seconds and those of the parts as a line's name, which is the unit, and its text:
// milliseconds below one second.
func timeWords(total float64, laps ...lap) (unit, text string) {
	unit, format, by := "seconds", "%.1f", 1.0
	switch {
	case total < 1:
		unit, by = "milliseconds", 1e3
		if total >= 0.1 {
			format = "%.0f"
		}
	case total < 5:
		format = "%.2f"
	}
	var parts []string
	for _, l := range laps {
		parts = append(parts, l.name+" "+fmt.Sprintf(format, by*l.seconds))
	}
	if len(laps) == 0 {
		return unit, fmt.Sprintf(format, by*total)
	}
	return unit, strings.Join(append(parts, "total "+fmt.Sprintf(format, by*total)), ", ")
}

// Bytes formats a number of bytes with a decimal unit.
func Bytes(n int64) string { return accel.Bytes(n) }

// Number is a float64 whose JSON is null where it is not finite: NaN does not apply or was not
// measured, +Inf is a bound that says nothing. Null is read as NaN.
type Number float64

// Known reports whether the number is finite.
func (v Number) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON implements json.Marshaler.
func (v Number) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}

// unknown is the Number of what does not apply or was not measured.
var unknown = Number(math.NaN())
