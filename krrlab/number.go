package krrlab

import (
	"encoding/json"
	"math"
)

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
