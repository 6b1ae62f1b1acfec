package testbed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/base/schema"
)

// parseLine reads a line of JSON and checks its numbers. The error wraps io.ErrUnexpectedEOF if the line is incomplete.
func parseLine(text []byte) (*Line, error) {
	const want = "want JSON lines, one object a line"
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return nil, errors.New("the file is a JSON array: " + want + "; jq -c '.[]' FILE writes an array so")
	}
	line, decoder := &Line{}, json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(line); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("the object does not end on the line (%w): %s", err, want)
	case err != nil:
		return nil, explainJSONError(err, want)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("the line goes on after its object: " + want)
	}
	return line, line.check()
}

// explainJSONError returns an error of encoding/json in words that do not require knowledge of the type Line.
func explainJSONError(err error, want string) error {
	if typeError, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typeError.Field == "" {
			return fmt.Errorf("the line is a JSON %s: %s", typeError.Value, want)
		}
		kind := map[reflect.Kind]string{reflect.String: "a text", reflect.Float64: "a number", reflect.Slice: "a list",
			reflect.Array: "a list", reflect.Struct: "an object"}[typeError.Type.Kind()]
		return fmt.Errorf("the field %q is a JSON %s: want %s", typeError.Field, typeError.Value,
			cmp.Or(kind, "a whole number"))
	}
	name, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !isUnknown {
		return fmt.Errorf("not JSON (%w): %s", err, want)
	}
	text := fmt.Sprintf("the field %s is unknown", name)
	names := append(jsonNames(reflect.TypeFor[Line]()), jsonNames(reflect.TypeFor[Exact]())...)
	if suggestion := schema.Nearest(strings.Trim(name, `"`), names); suggestion != "" {
		return fmt.Errorf("%s; did you mean %q?", text, suggestion)
	}
	return fmt.Errorf("%s: there are %s", text, strings.Join(names, ", "))
}

// jsonNames returns the JSON names of the fields of a struct.
func jsonNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// check returns an error if a required field is missing or if a number is impossible for a run.
func (l *Line) check() error {
	switch {
	case l.Schema != version || l.Problem == "" || l.Preconditioner == "" || l.N < 1 || !(l.Lambda > 0):
		return fmt.Errorf("want schema %d, problem, preconditioner, n and lambda", version)
	case l.Reached == nil && l.FailureReason == "":
		return errors.New("want iterations_to, [] if not even a residual of 1e-2 was reached, or failed with a reason")
	case !slices.IsSorted(l.Reached) || len(l.Reached) > 0 && l.Reached[0] < 0:
		return fmt.Errorf("iterations_to is %v: want numbers from 0 on that rise", l.Reached)
	case l.MaxIter > 0 && len(l.Reached) > 0 && slices.Max(l.Reached) > l.MaxIter:
		return fmt.Errorf("iterations_to is %v, and max_iter %d", l.Reached, l.MaxIter)
	case l.Kappa[1] != 0 && l.Kappa[0] > l.Kappa[1]:
		return fmt.Errorf("kappa is %v: want its lower end first, and 0 for an end that is not known", l.Kappa)
	case l.Exact != nil && l.Exact.Min > l.Exact.Max:
		return fmt.Errorf("lambda_min is %g, and lambda_max %g", l.Exact.Min, l.Exact.Max)
	}
	fields := reflect.ValueOf(l).Elem()
	for i, name := range jsonNames(fields.Type()) {
		number := math.NaN() // the value of a field that may be negative or is no number
		switch field := fields.Field(i); {
		case name == "log_det":
		case field.CanInt():
			number = float64(field.Int())
		case field.CanFloat():
			number = field.Float()
		case name == "kappa":
			number = min(l.Kappa[0], l.Kappa[1])
		}
		if number < 0 {
			return fmt.Errorf("%s is %g: want a number from 0 on", name, number)
		}
	}
	return nil
}
