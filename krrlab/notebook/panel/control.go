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

// controlFor returns the control for an option. maxWhole, unless 0, bounds the sliders of whole numbers.
func controlFor(f *schema.Field, maxWhole int) widget.Spec {
	s := widget.Spec{Label: f.Symbol(), Help: f.Help, Width: "26em"}
	v, bounds := reflect.ValueOf(f.Value()), f.Interval()
	_, isDuration := f.Value().(time.Duration)
	switch choices := f.Choices(); {
	case choices != nil:
		if s.Kind, s.Options = widget.Dropdown, choices; !slices.Contains(choices, f.String()) {
			s.Options = append([]string{f.String()}, choices...) // the text of the default
		}
		s.Value = f.String()
	case v.Kind() == reflect.Bool:
		s.Kind, s.Value = widget.Checkbox, v.Bool()
	case v.CanInt() && !isDuration && v.Int() > 0:
		s.Kind, s.Value = widget.IntSlider, int(v.Int())
		if s.Min, s.Max = math.Ceil(max(bounds.Low, 0)), math.Floor(bounds.High); math.IsInf(s.Max, 1) {
			s.Max = 4 * float64(v.Int())
		}
		if maxWhole > 0 {
			s.Max = max(min(s.Max, float64(maxWhole)), float64(v.Int()))
		}
		if s.Step = math.Max(1, math.Pow(10, math.Floor(math.Log10((s.Max-s.Min)/50)))); s.Step > 1 && s.Min <= s.Step {
			s.Min = s.Step // the positions are multiples of the step
		}
		s.Min = min(s.Min, float64(v.Int()))
	case v.CanFloat() && v.Float() != 0:
		setNumberSlider(&s, v.Float(), bounds)
	default:
		s.Kind, s.Value, s.Placeholder = widget.Text, f.String(), "default"
		if f.IsZero() {
			s.Value = ""
		}
	}
	return s
}

// setNumberSlider completes the slider s for a real number x ≠ 0. It is linear if x is negative, or if the interval is
// bounded, x is not close to its lower end in comparison with its length, and the ratio of its ends is below 100. Else
// it is logarithmic.
func setNumberSlider(s *widget.Spec, x float64, bounds schema.Interval) {
	low, high := bounds.Low, bounds.High
	isBounded := !math.IsInf(low, 0) && !math.IsInf(high, 0)
	s.Value = x
	switch {
	case x > 0 && (!isBounded || x-low < (high-low)/20 || low > 0 && high >= 100*low):
		s.Kind, s.Min, s.Max = widget.FloatLogSlider, max(x/1000, low), min(x*1000, high)
		if isBounded && low > 0 {
			s.Min, s.Max = low, high
		}
		return
	case !isBounded:
		low, high = max(low, -4*math.Abs(x)), min(high, 4*math.Abs(x))
	}
	s.Kind, s.Step = widget.FloatSlider, (high-low)/100
	if bounds.OpenLow {
		low += s.Step
	}
	if bounds.OpenHigh {
		high -= s.Step
	}
	s.Min, s.Max = min(low, x), max(high, x)
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
// maxWhole is that of controlFor. The subject runs again when a control moves.
func (p *Panel) openControls(initial, defaults any, maxWhole int) (*controlGroup, error) {
	g := &controlGroup{initial: reflect.ValueOf(initial), defaults: reflect.New(reflect.TypeOf(initial))}
	g.defaults.Elem().Set(reflect.ValueOf(defaults))
	for _, f := range fieldsWithControl(schema.Of(g.defaults.Interface())) {
		spec := controlFor(f, maxWhole)
		m, err := p.openModel(spec, p.requestRun)
		if err != nil {
			return nil, err
		}
		g.controls, g.initialValues = append(g.controls, m), append(g.initialValues, spec.Value)
	}
	return g, nil
}

// fieldsWithControl returns the options that have a control.
func fieldsWithControl(s *schema.Schema) []*schema.Field {
	s.Fields = slices.DeleteFunc(s.Fields, func(f *schema.Field) bool { return f.File != "" })
	return s.Fields
}

// isChanged reports whether a control was moved.
func (g *controlGroup) isChanged() bool {
	for i, c := range g.controls {
		if c.Value() != g.initialValues[i] {
			return true
		}
	}
	return false
}

// value returns the struct with the values of the controls that were moved. Other fields are as in the initial struct;
// an empty text also stands for the initial value.
func (g *controlGroup) value() (reflect.Value, error) {
	v := reflect.New(g.initial.Type())
	v.Elem().Set(g.initial)
	fields := fieldsWithControl(schema.WithoutDefaults(v.Interface()))
	for i, c := range g.controls {
		if text := optionText(c.Value()); c.Value() != g.initialValues[i] && text != "" {
			if err := fields[i].Set(text); err != nil {
				return v, err
			}
		}
	}
	return v.Elem(), nil
}

// close closes the controls.
func (g *controlGroup) close() {
	for _, c := range g.controls {
		c.Close()
	}
}
