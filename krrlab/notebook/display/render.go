package display

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"image"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // pictures
)

// methods are the methods that show a value, and what they return.
var methods = []struct{ name, mime string }{
	{"HTML", MIMETypeHTML}, {"SVG", MIMETypeSVG}, {"Markdown", MIMETypeMarkdown}, {"Latex", MIMETypeLatex},
	{"PNG", MIMETypePNG},
}

// maxText is the length of the text of a value; what is longer is cut.
const maxText = 20000

// Render returns v in all representations it has, and always as text. The text reports what goes wrong.
func Render(v any) Data { return noted(rendered(v)) }

// Show is Render with an error where v could only be shown as text because of what went wrong, or is a figure that
// cannot be drawn.
func Show(v any) (Data, error) {
	d, trouble := rendered(v)
	if f, ok := v.(*plots.Figure); len(trouble) > 0 && (len(d.Data) == 1 || ok && f.Validate() != nil) {
		return d, errors.New("it cannot be shown: " + strings.Join(trouble, "; "))
	}
	return noted(d, trouble), nil
}

// noted adds what went wrong to the text.
func noted(d Data, trouble []string) Data {
	if len(trouble) > 0 {
		text, _ := d.Data[MIMETypeText].(string)
		d.Data[MIMETypeText] = strings.TrimSpace(text + "\n" + strings.Join(trouble, "\n"))
	}
	return d
}

// rendered is Render, with what went wrong, a line each.
func rendered(v any) (d Data, trouble []string) {
	if d, ok := v.(Data); ok {
		d = withText(d)
		withImage(&d)
		return d, nil
	}
	d = Data{Data: MIMEMap{}}
	attempt := func(what string, f func() error) {
		defer func() {
			if r := recover(); r != nil {
				trouble = append(trouble, fmt.Sprintf("%s panicked: %v", what, r))
			}
		}()
		if err := f(); err != nil {
			trouble = append(trouble, fmt.Sprintf("%s: %v", what, err))
		}
	}
	if !isNil(v) {
		attempt("Render", func() error { return general(v, &d) })
		for _, m := range methods {
			attempt(m.name, func() error { return byMethod(v, m.name, m.mime, &d) })
		}
		attempt("figure", func() error { return settle(v, &d) })
		if len(d.Data) == 0 {
			attempt("display", func() error { return byType(v, &d) })
		}
	}
	if d.Data[MIMETypeText] == nil {
		attempt("String", func() error { d.Data[MIMETypeText] = Text(v); return nil })
	}
	withImage(&d)
	return d, trouble
}

// withImage puts an image into HTML beside a drawing in SVG that has none: Debian's nbconvert shows no SVG, and an
// HTML page that is not trusted no svg element.
func withImage(d *Data) {
	svg, ok := d.Data[MIMETypeSVG]
	if !ok || d.Data[MIMETypeHTML] != nil {
		return
	}
	if b, ok := svg.([]byte); ok {
		svg = string(b)
	}
	text, _ := d.Data[MIMETypeText].(string)
	d.Data[MIMETypeHTML] = SVGImage(fmt.Sprint(svg), cmp.Or(text, "drawing"))
}

// SVGImage returns a drawing as an image in HTML, with the text that stands for it.
func SVGImage(svg, alt string) string {
	return `<img style="max-width:100%;height:auto" alt="` + html.EscapeString(alt) +
		`" src="data:image/svg+xml;base64,` +
		base64.StdEncoding.EncodeToString([]byte(svg)) + `">`
}

func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Interface, reflect.Chan:
		return r.IsNil()
	}
	return false
}

func withText(d Data) Data {
	if d.Data == nil {
		d.Data = MIMEMap{}
	}
	if d.Data[MIMETypeText] == nil {
		d.Data[MIMETypeText] = ""
	}
	return d
}

// general calls the method that returns a whole bundle, and encodes pictures.
func general(v any, d *Data) error {
	if r, ok := v.(interface{ Render() Data }); ok {
		x := r.Render()
		maps.Copy(d.Data, x.Data)
		d.Metadata, d.Transient = x.Metadata, x.Transient
	}
	if img, ok := v.(image.Image); ok {
		b, meta, err := encodePNG(img)
		if err != nil {
			return err
		}
		d.Data[MIMETypePNG], d.Metadata = b, meta
	}
	return nil
}

var (
	errorType = reflect.TypeFor[error]()
	results   = map[reflect.Type]bool{reflect.TypeFor[string](): true, reflect.TypeFor[[]byte](): true}
)

// byMethod calls the method if v has it with a signature of the conventions.
func byMethod(v any, name, mime string, d *Data) error {
	r := reflect.ValueOf(v)
	m := r.MethodByName(name)
	if !m.IsValid() && r.Kind() != reflect.Pointer {
		p := reflect.New(r.Type())
		p.Elem().Set(r)
		m = p.MethodByName(name)
	}
	if !m.IsValid() {
		return nil
	}
	t := m.Type()
	if t.NumIn() != 0 || t.NumOut() < 1 || t.NumOut() > 2 || !results[t.Out(0)] || t.NumOut() == 2 &&
		t.Out(1) != errorType {
		return nil
	}
	out := m.Call(nil)
	if len(out) == 2 && !out[1].IsNil() {
		return out[1].Interface().(error)
	}
	d.Data[mime] = out[0].Interface()
	return nil
}

// Text returns v as text: by its method String or Error, or as fmt prints it, with
// names of fields. Long texts, long slices and large structs are cut, and say so.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return cut(s)
	}
	if isNil(v) {
		return "nil"
	}
	if text, ok := own(v); ok {
		return cut(text)
	}
	return brief(v)
}

// own returns what a value says by its method Error or String, if it has one.
func own(v any) (string, bool) {
	switch x := v.(type) {
	case error:
		return x.Error(), true
	case fmt.Stringer:
		return x.String(), true
	}
	return "", false
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf(" … (%d bytes in all)", len(s))
}

const (
	maxRows    = 200 // of a table
	maxColumns = 60
	matrixSide = 12 // rows and columns of a matrix shown
)

// byType shows values of types that have no method for it.
func byType(v any, d *Data) error {
	switch x := v.(type) {
	case *plot.Plot:
		d.Data[MIMETypeText] = fmt.Sprintf("plot %q", x.Title.Text)
		var drawn [2]bytes.Buffer
		for i, format := range []string{"svg", "png"} {
			w, err := x.WriterTo(6.5*vg.Inch, 4*vg.Inch, format)
			if err != nil {
				return err
			}
			if _, err := w.WriteTo(&drawn[i]); err != nil {
				return err
			}
		}
		d.Data[MIMETypeSVG], d.Data[MIMETypePNG] = drawn[0].String(), drawn[1].Bytes()
	case dataframe.DataFrame:
		return frame(&x, d)
	case *dataframe.DataFrame:
		return frame(x, d)
	case series.Series:
		f := dataframe.New(x)
		return frame(&f, d)
	case mat.Matrix:
		matrix(x, d)
	case *datasets.Dataset:
		dataset(x.String(), x, d)
	case *datasets.Pair:
		dataset(x.String(), x.Train, d)
	case *gram.Matrix:
		stored, _, _ := strings.Cut(x.Choice().String(), "\n")
		d.Data[MIMETypeText] = fmt.Sprintf("K+λI, kernel %v, λ = %g; %s", x.Kernel(), x.Lambda(), stored)
	case points.Points:
		n, s := x.Dims()
		d.Data[MIMETypeText] = fmt.Sprintf("%d × %d %T", n, s, x)
	default:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Struct { // a mat.Dense that is not a pointer
			p := reflect.New(r.Type())
			p.Elem().Set(r)
			return byType(p.Interface(), d)
		}
	}
	return nil
}

// tabled shows a table, which scrolls within the cell in a box of the page's width and half its height.
func tabled(t *plots.Table, d *Data) {
	d.Data[MIMETypeText] = strings.TrimSuffix(t.String(), "\n")
	d.Data[MIMETypeHTML] = `<div style="max-height:40em;overflow:auto">` + t.HTML() + "</div>"
}

// frame shows a data frame, with the types beside the names.
func frame(f *dataframe.DataFrame, d *Data) error {
	if f.Err != nil {
		return f.Err
	}
	rows, columns := f.Dims()
	showRows, showColumns := min(rows, maxRows), min(columns, maxColumns)
	t := &plots.Table{Caption: fmt.Sprintf("%d rows × %d columns", rows, columns), Columns: make([]plots.Column, 1)}
	if showRows < rows || showColumns < columns {
		t.Caption += fmt.Sprintf(", the first %d × %d shown", showRows, showColumns)
	}
	names, types := f.Names(), f.Types()
	for j := range showColumns {
		t.Columns = append(t.Columns, plots.Column{Name: names[j], Unit: string(types[j]), Format: "%.6g"})
	}
	for i := range showRows {
		cells := []any{i}
		for j := range showColumns {
			if e := f.Elem(i, j); types[j] == series.Float && !e.IsNA() {
				cells = append(cells, e.Float())
			} else {
				cells = append(cells, e.String())
			}
		}
		t.Add(cells...)
	}
	tabled(t, d)
	return nil
}

// matrix shows a matrix: its corners where it is large.
func matrix(m mat.Matrix, d *Data) {
	r, c := m.Dims()
	at := corners(c)
	t := &plots.Table{Title: fmt.Sprintf("%d × %d %T", r, c, m), Columns: make([]plots.Column, 1)}
	for _, j := range at {
		name := "⋯"
		if j >= 0 {
			name = strconv.Itoa(j)
		}
		t.Columns = append(t.Columns, plots.Column{Name: name, Format: "%.6g", Right: true})
	}
	for _, i := range corners(r) {
		cells := []any{i}
		for _, j := range at {
			if i < 0 || j < 0 {
				cells = append(cells, "⋯")
			} else {
				cells = append(cells, m.At(i, j))
			}
		}
		if i < 0 {
			cells[0] = "⋮"
		}
		t.Add(cells...)
	}
	tabled(t, d)
}

// corners returns the indices shown of n, −1 for those left out between.
func corners(n int) []int {
	var out []int
	for i := range n {
		switch {
		case n <= matrixSide || i < matrixSide/2 || i >= n-matrixSide/2:
			out = append(out, i)
		case i == matrixSide/2:
			out = append(out, -1)
		}
	}
	return out
}
