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

// Stage is what every step of the laboratory returns: exported numbers, and ways to look
// at them. Its JSON, by encoding/json, round-trips.
type Stage interface {
	String() string      // a few aligned lines, with units and the paper's symbols
	Table() *plots.Table // the numbers
	Plot() *plots.Figure // the picture
	HTML() string        // table and picture, for a notebook
}

// Choice is a Stage that chooses what a fit takes.
type Choice interface {
	Stage
	Chosen() (k kernel.Spec, lambda float64, lengths []float64) // lengths divide the features; nil: they do not
	Short() string                                              // a line or more, for the report of the fit
}

// WriteJSON writes a value to the named file, whole or not at all.
func WriteJSON(name string, s any) error {
	js, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("krrlab: %w", err)
	}
	return WriteFile(name, append(js, '\n'))
}

// WriteFile writes the named file, whole or not at all.
func WriteFile(name string, content []byte) error { return atomicfile.Put(name, content) }

// HTML is the HTML of a stage: its lines, its picture, its table folded away.
func HTML(s Stage) string {
	return plots.PreHTML(s.String()) + s.Plot().HTML() + plots.FoldedHTML("the numbers", s.Table().HTML())
}

// Header says which problem a stage is about: the first fields of its JSON, whose keys a result does not use again.
type Header struct {
	Dataset  string              `json:"dataset"`
	Source   string              `json:"source,omitempty"` // files or generator the points came from
	Note     string              `json:"note,omitempty"`   // what is special about the data: a subset, a stand-in
	Task     string              `json:"task"`
	Scaling  string              `json:"scaling,omitempty"`  // of the points: none, unit, standard or pixel
	Mean     []float64           `json:"mean,omitempty"`     // of the targets, taken off them: y below is less it
	Weighted bool                `json:"weighted,omitempty"` // the rows have weights: K below is W^½KW^½, y is W^½y
	N        int                 `json:"n"`
	D        int                 `json:"d"`
	T        int                 `json:"t"`              // right-hand sides
	Read     []*datasets.Reading `json:"read,omitempty"` // what was decided of the files, the training file first
	Kernel   kernel.Spec         `json:"kernel"`
	Lambda   float64             `json:"lambda"`
	Tol      float64             `json:"tol"` // τ
	Seed     uint64              `json:"seed"`
}

// Number is a float64 whose JSON is null where it is not finite: NaN does not apply or was not
// measured, +Inf is a bound that says nothing. Null is read as NaN.
type Number float64

// Unknown is the Number of what does not apply or was not measured.
var Unknown = Number(math.NaN())

// SetUnknown sets all Numbers among the fields of the struct that v points to, not those of structs in it, to Unknown.
func SetUnknown(v any) {
	for _, f := range reflect.ValueOf(v).Elem().Fields() {
		if f.Type() == reflect.TypeFor[Number]() {
			f.SetFloat(math.NaN())
		}
	}
}

// Known reports whether the number is finite.
func (v Number) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// RoundDigits returns v to so many significant digits, as a report, a page or a file has it without loss.
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
