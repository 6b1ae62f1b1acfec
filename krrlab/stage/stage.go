package stage

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

// Stage is the result of a step of the laboratory: exported numbers, and methods that show them. It can be encoded as
// JSON and decoded again by encoding/json.
type Stage interface {
	String() string      // a few aligned lines, with units and the symbols of docs/notation.md
	Table() *plots.Table // table of the numbers
	Plot() *plots.Figure // figure
	HTML() string        // table and figure, for a notebook
}

// Choice is a Stage that chooses the kernel and λ of a fit.
type Choice interface {
	Stage
	// Chosen returns the kernel, λ, and a distance as for datasets.ChangeDistance, nil if there is none.
	Chosen() (k kernel.Spec, lambda float64, distance []float64)
	Short() string // one or more lines for the report of the fit
}

// WriteJSON writes a value as JSON to the named file. A file is written completely or not at all.
func WriteJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: %w", err)
	}
	return atomicfile.WriteFile(name, append(text, '\n'))
}

// HTML returns the HTML of a stage: its lines, its figure, and its table in a section that is initially closed.
func HTML(s Stage) string {
	return plots.PreformattedHTML(s.String()) + s.Plot().HTML() + plots.FoldedHTML("the numbers", s.Table().HTML())
}

// Header describes the problem of a stage. Its fields come first in the JSON of a result, and the result must not use
// their keys again.
type Header struct {
	Dataset string `json:"dataset"`          // name of the data set
	Source  string `json:"source,omitempty"` // files or generator of the points
	// Note is a remark on the data, for example that they are a subset or a stand-in.
	Note    string `json:"note,omitempty"`
	Task    string `json:"task"`              // regression or classification
	Scaling string `json:"scaling,omitempty"` // scaling of the points: none, unit, standard or pixel
	// Mean is the mean of each target that was subtracted from it; y in the result is centered.
	Mean []float64 `json:"mean,omitempty"`
	// Weighted states that the rows have weights W. K in the result is then W^½KW^½, and y is W^½y.
	Weighted bool                   `json:"weighted,omitempty"`
	N        int                    `json:"n"`              // number of points
	D        int                    `json:"d"`              // number of features of a point
	T        int                    `json:"t"`              // number of right-hand sides
	Read     []*datasets.ReadReport `json:"read,omitempty"` // how the files were read, the training file first
	Kernel   kernel.Spec            `json:"kernel"`
	Lambda   float64                `json:"lambda"` // ridge λ
	Tol      float64                `json:"tol"`    // tolerance τ of the relative residual
	Seed     uint64                 `json:"seed"`
}

// Number is a float64 that is null in JSON if it is not finite. NaN means not applicable or not measured, and +Inf is a
// bound without information. Null is decoded as NaN.
type Number float64

// Unknown is the Number for values that do not apply or were not measured.
var Unknown = Number(math.NaN())

// SetUnknown sets all Number fields of the struct *v to Unknown, including the fields of embedded exported structs, but
// not the fields of other nested structs.
func SetUnknown(v any) {
	for field, value := range reflect.ValueOf(v).Elem().Fields() {
		switch {
		case value.Type() == reflect.TypeFor[Number]():
			value.SetFloat(math.NaN())
		case field.Anonymous && field.IsExported() && value.Kind() == reflect.Struct:
			SetUnknown(value.Addr().Interface())
		}
	}
}

// Known reports whether the number is finite.
func (v Number) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// RoundDigits returns v rounded to so many significant digits, for a report, a page or a file.
func RoundDigits(v float64, digits int) float64 { return outward.Rounded(v, digits) }

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
		*v = Unknown
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}
