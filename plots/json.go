package plots

import (
	"encoding/json"
	"fmt"
	"math"
)

// number is a float64 whose JSON holds every value: null is NaN, "+Inf" and "-Inf"
// are the infinities.
type number float64

// MarshalJSON implements json.Marshaler.
func (v number) MarshalJSON() ([]byte, error) {
	switch x := float64(v); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 1):
		return []byte(`"+Inf"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Inf"`), nil
	default:
		return json.Marshal(x)
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
		*v = number(math.NaN())
	case `"+Inf"`:
		*v = number(math.Inf(1))
	case `"-Inf"`:
		*v = number(math.Inf(-1))
	default:
		var x float64
		if err := json.Unmarshal(b, &x); err != nil {
			return fmt.Errorf("plots: %s is not a number", b)
		}
		*v = number(x)
	}
	return nil
}

// numbers is a []float64 of which every element is written as a number.
type numbers []float64

// MarshalJSON implements json.Marshaler.
func (v numbers) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	w := make([]number, len(v))
	for i, x := range v {
		w[i] = number(x)
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *numbers) UnmarshalJSON(b []byte) error {
	// Pointers, because encoding/json skips UnmarshalJSON for a null element.
	var w []*number
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w == nil {
		*v = nil
		return nil
	}
	*v = make(numbers, len(w))
	for i, x := range w {
		(*v)[i] = math.NaN()
		if x != nil {
			(*v)[i] = float64(*x)
		}
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler with the words of String.
func (s Style) MarshalText() ([]byte, error) {
	if s < Line || s > Steps {
		return nil, fmt.Errorf("plots: unknown style %d", int(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Style) UnmarshalText(b []byte) error {
	for t := Line; t <= Steps; t++ {
		if t.String() == string(b) {
			*s = t
			return nil
		}
	}
	return fmt.Errorf("plots: unknown style %q; want line, points or steps", b)
}

type seriesJSON struct {
	Name  string  `json:"name"`
	Style Style   `json:"style"`
	X     numbers `json:"x,omitempty"`
	Y     numbers `json:"y"`
	Lo    numbers `json:"lo,omitempty"`
	Hi    numbers `json:"hi,omitempty"`
}

// MarshalJSON implements json.Marshaler. A NaN is null, an infinity "+Inf" or "-Inf".
func (s Series) MarshalJSON() ([]byte, error) {
	return json.Marshal(seriesJSON{s.Name, s.Style, s.X, s.Y, s.Lo, s.Hi})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Series) UnmarshalJSON(b []byte) error {
	var j seriesJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Series{Name: j.Name, Style: j.Style, X: j.X, Y: j.Y, Lo: j.Lo, Hi: j.Hi}
	return nil
}

type axisJSON struct {
	Label string  `json:"label"`
	Log   bool    `json:"log,omitempty"`
	Min   *number `json:"min,omitempty"` // absent: that end follows the data
	Max   *number `json:"max,omitempty"`
	Ticks numbers `json:"ticks,omitempty"`
}

// MarshalJSON implements json.Marshaler. Ends that follow the data are absent.
func (a Axis) MarshalJSON() ([]byte, error) {
	j := axisJSON{Label: a.Label, Log: a.Log, Ticks: a.Ticks}
	lo, hi := a.ends()
	if !math.IsNaN(lo) {
		j.Min = (*number)(&lo)
	}
	if !math.IsNaN(hi) {
		j.Max = (*number)(&hi)
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Axis) UnmarshalJSON(b []byte) error {
	var j axisJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*a = Axis{Label: j.Label, Log: j.Log, Ticks: j.Ticks}
	if j.Min == nil && j.Max == nil {
		return nil
	}
	a.Min, a.Max = math.NaN(), math.NaN()
	if j.Min != nil {
		a.Min = float64(*j.Min)
	}
	if j.Max != nil {
		a.Max = float64(*j.Max)
	}
	return nil
}

type heatMapJSON struct {
	X      numbers   `json:"x"`
	Y      numbers   `json:"y"`
	Z      []numbers `json:"z"`
	Color  Axis      `json:"color"`
	Format string    `json:"format,omitempty"`
	Bare   bool      `json:"bare,omitempty"`
}

// MarshalJSON implements json.Marshaler. A NaN is null, an infinity "+Inf" or "-Inf".
func (m HeatMap) MarshalJSON() ([]byte, error) {
	j := heatMapJSON{X: m.X, Y: m.Y, Color: m.Color, Format: m.Format, Bare: m.Bare}
	for _, row := range m.Z {
		j.Z = append(j.Z, row)
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *HeatMap) UnmarshalJSON(b []byte) error {
	var j heatMapJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*m = HeatMap{X: j.X, Y: j.Y, Color: j.Color, Format: j.Format, Bare: j.Bare}
	for _, row := range j.Z {
		m.Z = append(m.Z, row)
	}
	return nil
}

type figureJSON struct {
	Title   string    `json:"title"`
	Caption string    `json:"caption,omitempty"`
	X       Axis      `json:"x"`
	Y       Axis      `json:"y"`
	Series  []Series  `json:"series"`
	Map     *HeatMap  `json:"map,omitempty"`
	HLines  []RefLine `json:"hlines,omitempty"`
	VLines  []RefLine `json:"vlines,omitempty"`
	Marks   []Mark    `json:"marks,omitempty"`
	Panels  []Figure  `json:"panels,omitempty"`
	Columns int       `json:"columns,omitempty"`
	ShareX  bool      `json:"share_x,omitempty"`
	ShareY  bool      `json:"share_y,omitempty"`
	Width   float64   `json:"width_in,omitempty"`
	Height  float64   `json:"height_in,omitempty"`
}

// MarshalJSON implements json.Marshaler; the figure comes back from UnmarshalJSON as
// it was, values that are not finite included.
func (f Figure) MarshalJSON() ([]byte, error) { return json.Marshal(figureJSON(f)) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var j figureJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*f = Figure(j)
	return nil
}

type refLineJSON struct {
	At    number `json:"at"`
	Label string `json:"label,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (l RefLine) MarshalJSON() ([]byte, error) {
	return json.Marshal(refLineJSON{number(l.At), l.Label})
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *RefLine) UnmarshalJSON(b []byte) error {
	j := refLineJSON{At: number(math.NaN())}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*l = RefLine{float64(j.At), j.Label}
	return nil
}

type markJSON struct {
	X     number `json:"x"`
	Y     number `json:"y"`
	Label string `json:"label,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (m Mark) MarshalJSON() ([]byte, error) {
	return json.Marshal(markJSON{number(m.X), number(m.Y), m.Label})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mark) UnmarshalJSON(b []byte) error {
	j := markJSON{X: number(math.NaN()), Y: number(math.NaN())}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*m = Mark{float64(j.X), float64(j.Y), j.Label}
	return nil
}
