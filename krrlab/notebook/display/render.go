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
	_ "github.com/krrlab/lab/plots/draw" // encodes plots as PNG
)

// methods lists the methods that return a representation, with the MIME type of the result.
var methods = []struct{ name, mime string }{
	{"HTML", MIMETypeHTML}, {"SVG", MIMETypeSVG}, {"Markdown", MIMETypeMarkdown}, {"Latex", MIMETypeLatex},
	{"PNG", MIMETypePNG},
}

// maxText is the length in bytes above which the text of a value is cut.
const maxText = 20000

// Render returns v in all its representations, which always include text. Failures are reported in the text.
func Render(v any) Data { return withFailures(render(v)) }

// Show is Render, but returns an error in two cases: if failures leave text as the only representation, or if v is a
// figure that cannot be drawn.
func Show(v any) (Data, error) {
	d, failures := render(v)
	if figure, ok := v.(*plots.Figure); len(failures) > 0 && (len(d.Data) == 1 || ok && figure.Validate() != nil) {
		return d, errors.New("it cannot be shown: " + strings.Join(failures, "; "))
	}
	return withFailures(d, failures), nil
}

// withFailures returns the data with the failures appended to the text.
func withFailures(d Data, failures []string) Data {
	if len(failures) > 0 {
		text, _ := d.Data[MIMETypeText].(string)
		d.Data[MIMETypeText] = strings.TrimSpace(text + "\n" + strings.Join(failures, "\n"))
	}
	return d
}

// render returns the representations of v, and a line for each failure.
func render(v any) (d Data, failures []string) {
	if d, ok := v.(Data); ok {
		d = ensureText(d)
		addImage(&d)
		return d, nil
	}
	d = Data{Data: MIMEMap{}}
	attempt := func(name string, add func() error) {
		defer func() {
			if recovered := recover(); recovered != nil {
				failures = append(failures, fmt.Sprintf("%s panicked: %v", name, recovered))
			}
		}()
		if err := add(); err != nil {
			failures = append(failures, fmt.Sprintf("%s: %v", name, err))
		}
	}
	if !isNil(v) {
		attempt("Render", func() error { return addRendered(v, &d) })
		for _, method := range methods {
			attempt(method.name, func() error { return addFromMethod(v, method.name, method.mime, &d) })
		}
		attempt("figure", func() error { return adaptFigure(v, &d) })
		if len(d.Data) == 0 {
			attempt("display", func() error { return addByType(v, &d) })
		}
	}
	if d.Data[MIMETypeText] == nil {
		attempt("String", func() error { d.Data[MIMETypeText] = Text(v); return nil })
	}
	addImage(&d)
	return d, failures
}

// addImage adds an HTML image to a drawing that has SVG but no HTML. Debian's nbconvert does not show SVG, and neither
// does an HTML page that is not trusted.
func addImage(d *Data) {
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

// SVGImage returns a drawing as an HTML image with an alternative text.
func SVGImage(svg, alt string) string { return imageHTML(MIMETypeSVG, []byte(svg), alt) }

// PNGImage returns a picture as an HTML image.
func PNGImage(png []byte) string { return imageHTML(MIMETypePNG, png, "picture") }

// imageHTML returns an HTML image with the content of the given MIME type and an alternative text.
func imageHTML(mime string, content []byte, alt string) string {
	return `<img style="max-width:100%;height:auto" alt="` + html.EscapeString(alt) + `" src="data:` + mime + `;base64,` +
		base64.StdEncoding.EncodeToString(content) + `">`
}

// isNil reports whether v is nil or a nil pointer, map, slice, function, interface or channel.
func isNil(v any) bool {
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Interface, reflect.Chan:
		return value.IsNil()
	}
	return false
}

// ensureText adds an empty text to data without text.
func ensureText(d Data) Data {
	if d.Data == nil {
		d.Data = MIMEMap{}
	}
	if d.Data[MIMETypeText] == nil {
		d.Data[MIMETypeText] = ""
	}
	return d
}

// addRendered adds the data that the Render method of the value returns, and the PNG of an image.Image.
func addRendered(v any, d *Data) error {
	if renderer, ok := v.(interface{ Render() Data }); ok {
		rendered := renderer.Render()
		maps.Copy(d.Data, rendered.Data)
		d.Metadata, d.Transient = rendered.Metadata, rendered.Transient
	}
	if img, ok := v.(image.Image); ok {
		encoded, metadata, err := encodePNG(img)
		if err != nil {
			return err
		}
		d.Data[MIMETypePNG], d.Metadata = encoded, metadata
	}
	return nil
}

// errorType is the type of the optional second result of a method for a representation, and supportedResults has the
// types of the first.
var (
	errorType        = reflect.TypeFor[error]()
	supportedResults = map[reflect.Type]bool{reflect.TypeFor[string](): true, reflect.TypeFor[[]byte](): true}
)

// addFromMethod adds the representation that the method with the given name returns, if v has this method with a
// supported signature.
func addFromMethod(v any, name, mime string, d *Data) error {
	value := reflect.ValueOf(v)
	method := value.MethodByName(name)
	if !method.IsValid() && value.Kind() != reflect.Pointer {
		pointer := reflect.New(value.Type()) // the method may have a pointer receiver
		pointer.Elem().Set(value)
		method = pointer.MethodByName(name)
	}
	if !method.IsValid() {
		return nil
	}
	methodType := method.Type()
	resultCount := methodType.NumOut()
	if methodType.NumIn() != 0 || resultCount < 1 || resultCount > 2 || !supportedResults[methodType.Out(0)] ||
		resultCount == 2 && methodType.Out(1) != errorType {
		return nil
	}
	results := method.Call(nil)
	if len(results) == 2 && !results[1].IsNil() {
		return results[1].Interface().(error)
	}
	d.Data[mime] = results[0].Interface()
	return nil
}

// Text returns v as text: the result of its method String or Error, or the output of package fmt with field names. Long
// texts, long slices and large structs are cut, with a note.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return truncate(s)
	}
	if isNil(v) {
		return "nil"
	}
	if text, ok := methodText(v); ok {
		return truncate(text)
	}
	return briefText(v)
}

// methodText returns the result of the method Error or String of a value, if it has one.
func methodText(v any) (string, bool) {
	switch x := v.(type) {
	case error:
		return x.Error(), true
	case fmt.Stringer:
		return x.String(), true
	}
	return "", false
}

// truncate returns s, or if it is longer than maxText bytes its beginning and a note.
func truncate(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf(" … (%d bytes in all)", len(s))
}

const (
	maxRows       = 200 // rows of a data frame that are shown
	maxColumns    = 60  // columns of a data frame that are shown
	maxMatrixSide = 12  // rows and columns of a matrix that are shown
)

// addByType adds the representations of values whose types have no methods for them.
func addByType(v any, d *Data) error {
	switch x := v.(type) {
	case *plot.Plot:
		d.Data[MIMETypeText] = fmt.Sprintf("plot %q", x.Title.Text)
		var drawings [2]bytes.Buffer
		for i, format := range []string{"svg", "png"} {
			writer, err := x.WriterTo(6.5*vg.Inch, 4*vg.Inch, format)
			if err != nil {
				return err
			}
			if _, err := writer.WriteTo(&drawings[i]); err != nil {
				return err
			}
		}
		d.Data[MIMETypeSVG], d.Data[MIMETypePNG] = drawings[0].String(), drawings[1].Bytes()
	case dataframe.DataFrame:
		return addFrame(&x, d)
	case *dataframe.DataFrame:
		return addFrame(x, d)
	case series.Series:
		frame := dataframe.New(x)
		return addFrame(&frame, d)
	case mat.Matrix:
		addMatrix(x, d)
	case *datasets.Dataset:
		setDatasetData(x.String(), x, d)
	case *datasets.TrainTest:
		setDatasetData(x.String(), x.Train, d)
	case *gram.Matrix:
		storage, _, _ := strings.Cut(x.Choice().String(), "\n") // the first line says how the matrix is stored
		d.Data[MIMETypeText] = fmt.Sprintf("K+λI, kernel %v, λ = %g; %s", x.Kernel(), x.Lambda(), storage)
	case points.Points:
		n, s := x.Dims()
		d.Data[MIMETypeText] = fmt.Sprintf("%d × %d %T", n, s, x)
	default:
		// The methods may have a pointer receiver, as for a mat.Dense instead of a *mat.Dense.
		if value := reflect.ValueOf(v); value.Kind() == reflect.Struct {
			pointer := reflect.New(value.Type())
			pointer.Elem().Set(value)
			return addByType(pointer.Interface(), d)
		}
	}
	return nil
}

// addTable adds a table as text and as HTML. In HTML, it scrolls within a box that has the width of the page and a
// limited height.
func addTable(table *plots.Table, d *Data) {
	d.Data[MIMETypeText] = strings.TrimSuffix(table.String(), "\n")
	d.Data[MIMETypeHTML] = `<div style="max-height:40em;overflow:auto">` + table.HTML() + "</div>"
}

// addFrame adds a data frame as a table that shows the types next to the names.
func addFrame(frame *dataframe.DataFrame, d *Data) error {
	if frame.Err != nil {
		return frame.Err
	}
	rows, columns := frame.Dims()
	showRows, showColumns := min(rows, maxRows), min(columns, maxColumns)
	table := &plots.Table{Caption: fmt.Sprintf("%d rows × %d columns", rows, columns), Columns: make([]plots.Column, 1)}
	if showRows < rows || showColumns < columns {
		table.Caption += fmt.Sprintf(", the first %d × %d shown", showRows, showColumns)
	}
	names, types := frame.Names(), frame.Types()
	for j := range showColumns {
		table.Columns = append(table.Columns, plots.Column{Name: names[j], Unit: string(types[j]), Format: "%.6g"})
	}
	for i := range showRows {
		cells := []any{i}
		for j := range showColumns {
			if element := frame.Elem(i, j); types[j] == series.Float && !element.IsNA() {
				cells = append(cells, element.Float())
			} else {
				cells = append(cells, element.String())
			}
		}
		table.Add(cells...)
	}
	addTable(table, d)
	return nil
}

// addMatrix adds a matrix as a table. Only the corners of a large matrix are shown.
func addMatrix(m mat.Matrix, d *Data) {
	rows, columns := m.Dims()
	shownColumns := shownIndices(columns)
	table := &plots.Table{Title: fmt.Sprintf("%d × %d %T", rows, columns, m), Columns: make([]plots.Column, 1)}
	for _, j := range shownColumns {
		name := "⋯"
		if j >= 0 {
			name = strconv.Itoa(j)
		}
		table.Columns = append(table.Columns, plots.Column{Name: name, Format: "%.6g", Right: true})
	}
	for _, i := range shownIndices(rows) {
		cells := []any{i}
		for _, j := range shownColumns {
			if i < 0 || j < 0 {
				cells = append(cells, "⋯")
			} else {
				cells = append(cells, m.At(i, j))
			}
		}
		if i < 0 {
			cells[0] = "⋮"
		}
		table.Add(cells...)
	}
	addTable(table, d)
}

// shownIndices returns the indices to show out of n, with one −1 for all that are omitted.
func shownIndices(n int) []int {
	var indices []int
	for i := range n {
		switch {
		case n <= maxMatrixSide || i < maxMatrixSide/2 || i >= n-maxMatrixSide/2:
			indices = append(indices, i)
		case i == maxMatrixSide/2:
			indices = append(indices, -1)
		}
	}
	return indices
}
