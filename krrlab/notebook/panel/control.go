package panel

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/notebook/widget"
)

// controlFor returns the control for an option. maxInteger bounds the sliders of whole numbers, unless it is 0.
func controlFor(field *schema.Field, maxInteger int) widget.Spec {
	spec := widget.Spec{Label: field.Symbol(), Help: field.Help, Width: "26em"}
	value, bounds := reflect.ValueOf(field.Value()), field.Interval()
	_, isDuration := field.Value().(time.Duration)
	switch choices := field.Choices(); {
	case choices != nil:
		if spec.Kind, spec.Options = widget.Dropdown, choices; !slices.Contains(choices, field.String()) {
			spec.Options = append([]string{field.String()}, choices...) // the text of the default
		}
		spec.Value = field.String()
	case value.Kind() == reflect.Bool:
		spec.Kind, spec.Value = widget.Checkbox, value.Bool()
	case value.CanInt() && !isDuration && value.Int() > 0:
		spec.Kind, spec.Value = widget.IntSlider, int(value.Int())
		if spec.Min, spec.Max = math.Ceil(max(bounds.Low, 0)), math.Floor(bounds.High); math.IsInf(spec.Max, 1) {
			spec.Max = 4 * float64(value.Int())
		}
		if maxInteger > 0 {
			spec.Max = max(min(spec.Max, float64(maxInteger)), float64(value.Int()))
		}
		// The step is the largest power of ten that gives at least 50 steps.
		spec.Step = math.Max(1, math.Pow(10, math.Floor(math.Log10((spec.Max-spec.Min)/50))))
		if spec.Step > 1 && spec.Min <= spec.Step {
			spec.Min = spec.Step // the positions are multiples of the step
		}
		spec.Min = min(spec.Min, float64(value.Int()))
	case value.CanFloat() && value.Float() != 0:
		setNumberSlider(&spec, value.Float(), bounds)
	default:
		spec.Kind, spec.Value, spec.Placeholder = widget.Text, field.String(), "default"
		if field.IsZero() {
			spec.Value = ""
		}
	}
	return spec
}

// setNumberSlider completes the slider spec for a real number x ≠ 0. The slider is linear if x is negative, or if the
// interval is bounded, x is not close to its lower end in comparison with its length, and the ratio of its ends is
// below 100. Otherwise, the slider is logarithmic.
func setNumberSlider(spec *widget.Spec, x float64, bounds schema.Interval) {
	low, high := bounds.Low, bounds.High
	isBounded := !math.IsInf(low, 0) && !math.IsInf(high, 0)
	spec.Value = x
	switch {
	case x > 0 && (!isBounded || x-low < (high-low)/20 || low > 0 && high >= 100*low):
		spec.Kind, spec.Min, spec.Max = widget.FloatLogSlider, max(x/1000, low), min(x*1000, high)
		if isBounded && low > 0 {
			spec.Min, spec.Max = low, high
		}
		return
	case !isBounded:
		low, high = max(low, -4*math.Abs(x)), min(high, 4*math.Abs(x))
	}
	spec.Kind, spec.Step = widget.FloatSlider, (high-low)/100
	if bounds.OpenLow {
		low += spec.Step
	}
	if bounds.OpenHigh {
		high -= spec.Step
	}
	spec.Min, spec.Max = min(low, x), max(high, x)
}

// optionText returns the value of a control in the form that an option parses.
func optionText(value any) string {
	if x, ok := value.(float64); ok {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	return fmt.Sprint(value)
}

// controlGroup is a struct of options with its controls.
type controlGroup struct {
	initial       reflect.Value   // the struct that the controls start from
	defaults      reflect.Value   // pointer to initial with defaults, which the controls show
	controls      []*widget.Model // one for each option of the schema
	initialValues []any           // initial values of the controls
}

// openControls opens the controls for a struct. defaults is the same struct with the values that the controls show, and
// maxInteger has the same meaning as in controlFor. The subject runs again when a control moves.
func (p *Panel) openControls(initial, defaults any, maxInteger int) (*controlGroup, error) {
	group := &controlGroup{initial: reflect.ValueOf(initial), defaults: reflect.New(reflect.TypeOf(initial))}
	group.defaults.Elem().Set(reflect.ValueOf(defaults))
	for _, field := range fieldsWithControl(schema.Of(group.defaults.Interface())) {
		spec := controlFor(field, maxInteger)
		control, err := p.openModel(spec, p.requestRun)
		if err != nil {
			return nil, err
		}
		group.controls, group.initialValues = append(group.controls, control), append(group.initialValues, spec.Value)
	}
	return group, nil
}

// fieldsWithControl returns the options that have a control.
func fieldsWithControl(s *schema.Schema) []*schema.Field {
	s.Fields = slices.DeleteFunc(s.Fields, func(field *schema.Field) bool { return field.File != "" })
	return s.Fields
}

// isChanged reports whether a control was moved.
func (group *controlGroup) isChanged() bool {
	for i, control := range group.controls {
		if control.Value() != group.initialValues[i] {
			return true
		}
	}
	return false
}

// value returns the struct with the values of the controls that were moved. Other fields are as in the initial struct;
// an empty text also stands for the initial value.
func (group *controlGroup) value() (reflect.Value, error) {
	options := reflect.New(group.initial.Type())
	options.Elem().Set(group.initial)
	fields := fieldsWithControl(schema.WithoutDefaults(options.Interface()))
	for i, control := range group.controls {
		if text := optionText(control.Value()); control.Value() != group.initialValues[i] && text != "" {
			if err := fields[i].Set(text); err != nil {
				return options, err
			}
		}
	}
	return options.Elem(), nil
}

// close closes the controls.
func (group *controlGroup) close() {
	for _, control := range group.controls {
		control.Close()
	}
}
