package display

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image/png"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/plots"
)

// Limits for the text of a value without a String method.
const (
	maxBrief           = 2000 // bytes
	maxElements        = 100  // elements of a slice, array or map that are shown; see shownElements
	maxInnerElements   = 12   // elements of a slice, array or map that is long or deeply nested; see shownElements
	maxDepth           = 4    // nesting of values
	maxFieldsWithZeros = 8    // structs with more fields are shown without their zero fields
)

// briefText formats a value like %+v of package fmt, including field names, with these differences: pointers are
// followed instead of printed, long slices and maps are cut, and the text has at most about maxBrief bytes.
func briefText(v any) string {
	p := &printer{}
	p.value(reflect.ValueOf(v), 0)
	if p.Len() >= maxBrief {
		return strings.ToValidUTF8(p.String()[:maxBrief], "") + fmt.Sprintf(" … (%T; show its fields one by one)", v)
	}
	return p.String()
}

// printer writes the text of briefText.
type printer struct{ strings.Builder }

// value writes a value at a nesting depth.
func (p *printer) value(v reflect.Value, depth int) {
	if p.Len() >= maxBrief {
		return
	}
	if !v.IsValid() {
		p.WriteString("nil")
		return
	}
	if depth > 0 && p.methodText(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		if depth >= maxDepth {
			fmt.Fprintf(p, "%v{…}", v.Type())
			return
		}
	}
	switch v.Kind() {
	case reflect.Interface:
		p.value(v.Elem(), depth)
	case reflect.Pointer:
		if v.IsNil() {
			p.WriteString("nil")
			return
		}
		p.WriteByte('&')
		p.value(v.Elem(), depth)
	case reflect.Struct:
		p.fields(v, depth)
	case reflect.Slice, reflect.Array:
		p.list("[", v.Len(), depth, func(i int) { p.value(v.Index(i), depth+1) })
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, compareKeys)
		p.list("map[", len(keys), depth, func(i int) {
			p.value(keys[i], depth+1)
			p.WriteByte(':')
			p.value(v.MapIndex(keys[i]), depth+1)
		})
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		p.WriteString(typeText(v.Type()))
	default:
		fmt.Fprintf(p, "%+v", v)
	}
}

// typeText returns the name of a type. It removes what the interpreter adds to the names of generic types: the mark of
// patched packages, and the type arguments of the enclosing function, which end with a semicolon.
func typeText(t reflect.Type) string {
	name, args, isGeneric := strings.Cut(strings.ReplaceAll(t.String(), "@patch", ""), "[")
	if end := strings.LastIndex(args, ";"); t.Name() != "" && end >= 0 {
		args = args[end+1:]
	}
	if !isGeneric {
		return name
	}
	return name + "[" + args
}

// methodText writes the first line of the result of a value's method String or Error. It returns false and writes
// nothing if there is no such method, if the method panics or if the value is an unexported field.
func (p *printer) methodText(v reflect.Value) (ok bool) {
	if !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	text, hasText := methodText(v.Interface())
	if firstLine, _, isLong := strings.Cut(text, "\n"); isLong {
		text = firstLine + " …"
	}
	p.WriteString(text)
	return hasText
}

// fields writes the fields of a struct. If there are more than maxFieldsWithZeros, it omits those that are zero.
func (p *printer) fields(v reflect.Value, depth int) {
	p.WriteByte('{')
	start, zeros := p.Len(), 0
	for i := range v.NumField() {
		if v.NumField() > maxFieldsWithZeros && v.Field(i).IsZero() {
			zeros++
			continue
		}
		if p.Len() > start {
			p.WriteByte(' ')
		}
		p.WriteString(v.Type().Field(i).Name + ":")
		p.value(v.Field(i), depth+1)
	}
	if zeros > 0 {
		fmt.Fprintf(p, " … %d fields are zero", zeros)
	}
	p.WriteByte('}')
}

// shownElements returns how many of n elements to write in a list at the given nesting depth. At the top level these
// are at most maxElements. At depth 1 they are all n elements, or maxInnerElements if n exceeds maxElements. At greater
// depths they are at most maxInnerElements.
func shownElements(n, depth int) int {
	if depth > 1 || depth == 1 && n > maxElements {
		return min(n, maxInnerElements)
	}
	return min(n, maxElements)
}

// list writes n elements, up to the limit.
func (p *printer) list(open string, n, depth int, element func(i int)) {
	shownCount := shownElements(n, depth)
	p.WriteString(open) // "[" or "map["
	for i := range shownCount {
		if i > 0 {
			p.WriteByte(' ')
		}
		element(i)
	}
	if shownCount < n {
		fmt.Fprintf(p, " … %d elements in all", n)
	}
	p.WriteByte(']')
}

// compareKeys orders the keys of a map: numbers by value, other keys by their text.
func compareKeys(a, b reflect.Value) int {
	switch {
	case a.CanInt() && b.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint() && b.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case a.CanFloat() && b.CanFloat():
		return cmp.Compare(a.Float(), b.Float())
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// Numbers of points and of features in the table of a data set.
const (
	shownRows    = 5
	shownColumns = 8
)

// setDatasetData sets the representations of a data set: a text, and a table of the first points of sample if sample is
// not nil.
func setDatasetData(text string, sample *datasets.Dataset, d *Data) {
	d.Data[MIMETypeText] = text
	table := ""
	if sample != nil && sample.X != nil {
		table = firstPoints(sample).HTML()
	}
	d.Data[MIMETypeHTML] = plots.PreformattedHTML(text) + table
}

// firstPoints returns a table of the first points and their targets.
func firstPoints(dataset *datasets.Dataset) *plots.Table {
	table := &plots.Table{}
	n, features := dataset.X.Dims()
	rowCount, columnCount := min(n, shownRows), min(features, shownColumns)
	for j := range columnCount {
		name := fmt.Sprintf("x%d", j)
		if j < len(dataset.Columns) {
			name = dataset.Columns[j]
		}
		table.Columns = append(table.Columns, plots.Column{Name: name})
	}
	if columnCount < features {
		table.Columns = append(table.Columns, plots.Column{Name: "…"})
	}
	if dataset.HasAnswers() {
		table.Columns = append(table.Columns, plots.Column{Name: "y"})
	}
	row := make([]float64, features)
	for i := range rowCount {
		dataset.X.RowTo(row, i)
		var cells []any
		for _, v := range row[:columnCount] {
			cells = append(cells, v)
		}
		if columnCount < features {
			cells = append(cells, "…")
		}
		switch {
		case dataset.Target != nil:
			cells = append(cells, dataset.Target[i])
		case dataset.Class != nil:
			cells = append(cells, dataset.Labels[dataset.Class[i]])
		}
		table.Add(cells...)
	}
	if rowCount < n || columnCount < features {
		table.Caption = fmt.Sprintf("The first %d of %d points, %d of %d features.", rowCount, n, columnCount, features)
	}
	return table
}

// inlineFigure matches a drawing of package plots within HTML.
var inlineFigure = regexp.MustCompile(`(?s)<svg style="max-width:100%;height:auto" role="img".*?</svg>`)

// figureTitle matches the title of a drawing.
var figureTitle = regexp.MustCompile(`<title>([^<]*)</title>`)

// replaceDrawings replaces the drawings in HTML by equivalent images, because notebooks that are not trusted omit svg
// elements but show images.
func replaceDrawings(page string) string {
	return inlineFigure.ReplaceAllStringFunc(page, func(svg string) string {
		alt := "figure"
		if title := figureTitle.FindStringSubmatch(svg); title != nil {
			alt = html.UnescapeString(title[1])
		}
		return SVGImage(svg, alt)
	})
}

// adaptFigure replaces the SVG drawings in the HTML of any value by images. If v is a figure, adaptFigure also sets the
// displayed size of its PNG image, and returns an error if the figure cannot be drawn.
func adaptFigure(v any, d *Data) error {
	if html, ok := d.Data[MIMETypeHTML].(string); ok {
		d.Data[MIMETypeHTML] = replaceDrawings(html)
	}
	figure, ok := v.(*plots.Figure)
	if figureValue, isValue := v.(plots.Figure); isValue {
		figure, ok = &figureValue, true
	}
	if !ok {
		return nil
	}
	if picture, ok := d.Data[MIMETypePNG].([]byte); ok {
		if config, err := png.DecodeConfig(bytes.NewReader(picture)); err == nil {
			const cssPixels = 96 // per inch
			d.Metadata = MIMEMap{MIMETypePNG: MIMEMap{"width": config.Width * cssPixels / plots.DotsPerInch,
				"height": config.Height * cssPixels / plots.DotsPerInch}}
		}
	}
	return figure.Validate()
}
