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

// How much of a value without a String method is written.
const (
	maxBrief    = 2000 // bytes
	maxElements = 100  // of a slice, an array or a map that is shown by itself
	maxInside   = 12   // of one within another value
	maxDepth    = 4    // of values within values
	manyFields  = 8    // of a struct of which zeros are not written
)

// brief writes a value as fmt's %+v does, names of fields included, but of long slices and maps the first
// elements only, what pointers point to instead of addresses, and no more than a screen of it.
func brief(v any) string {
	p := &printer{}
	p.value(reflect.ValueOf(v), 0)
	if p.Len() >= maxBrief {
		return strings.ToValidUTF8(p.String()[:maxBrief], "") + fmt.Sprintf(" … (%T; show its fields one by one)", v)
	}
	return p.String()
}

type printer struct{ strings.Builder }

func (p *printer) value(v reflect.Value, depth int) {
	if p.Len() >= maxBrief {
		return
	}
	if !v.IsValid() {
		p.WriteString("nil")
		return
	}
	if depth > 0 && p.ownText(v) {
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
		slices.SortFunc(keys, compare)
		p.list("map[", len(keys), depth, func(i int) {
			p.value(keys[i], depth+1)
			p.WriteByte(':')
			p.value(v.MapIndex(keys[i]), depth+1)
		})
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		p.WriteString(v.Type().String())
	default:
		fmt.Fprintf(p, "%+v", v)
	}
}

// ownText writes a value within another by its method String or Error, if it has one that works.
func (p *printer) ownText(v reflect.Value) (done bool) {
	if !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	defer func() {
		if recover() != nil {
			done = false
		}
	}()
	text, ok := own(v.Interface())
	if first, _, more := strings.Cut(text, "\n"); more {
		text = first + " …"
	}
	p.WriteString(text)
	return ok
}

// fields writes a struct, one of many fields without those that are zero.
func (p *printer) fields(v reflect.Value, depth int) {
	p.WriteByte('{')
	begin, zero := p.Len(), 0
	for i := range v.NumField() {
		if v.NumField() > manyFields && v.Field(i).IsZero() {
			zero++
			continue
		}
		if p.Len() > begin {
			p.WriteByte(' ')
		}
		p.WriteString(v.Type().Field(i).Name + ":")
		p.value(v.Field(i), depth+1)
	}
	if zero > 0 {
		fmt.Fprintf(p, " … %d fields are zero", zero)
	}
	p.WriteByte('}')
}

// limit returns how many of n elements are written.
func limit(n, depth int) int {
	if depth > 1 || depth == 1 && n > maxElements {
		return min(n, maxInside)
	}
	return min(n, maxElements)
}

// list writes n elements, or as many as are shown.
func (p *printer) list(open string, n, depth int, element func(i int)) {
	show := limit(n, depth)
	p.WriteString(open)
	for i := range show {
		if i > 0 {
			p.WriteByte(' ')
		}
		element(i)
	}
	if show < n {
		fmt.Fprintf(p, " … %d elements in all", n)
	}
	p.WriteByte(']')
}

// compare orders keys: numbers by value, others by their text.
func compare(a, b reflect.Value) int {
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

// How much of a data set its table shows.
const (
	shownRows    = 5
	shownColumns = 8
)

// dataset shows what a data set is, and its first points.
func dataset(text string, first *datasets.Dataset, d *Data) {
	d.Data[MIMETypeText] = text
	d.Data[MIMETypeHTML] = plots.PreHTML(text)
	if first != nil && first.X != nil {
		d.Data[MIMETypeHTML] = plots.PreHTML(text) + firstPoints(first).HTML()
	}
}

// firstPoints is a table of the first points and their answers.
func firstPoints(d *datasets.Dataset) *plots.Table {
	t := &plots.Table{}
	if d.X == nil {
		return t
	}
	n, dim := d.X.Dims()
	rows, columns := min(n, shownRows), min(dim, shownColumns)
	for j := range columns {
		name := fmt.Sprintf("x%d", j)
		if j < len(d.Columns) {
			name = d.Columns[j]
		}
		t.Columns = append(t.Columns, plots.Column{Name: name})
	}
	if columns < dim {
		t.Columns = append(t.Columns, plots.Column{Name: "…"})
	}
	if d.HasAnswers() {
		t.Columns = append(t.Columns, plots.Column{Name: "y"})
	}
	row := make([]float64, dim)
	for i := range rows {
		d.X.RowTo(row, i)
		var cells []any
		for _, v := range row[:columns] {
			cells = append(cells, v)
		}
		if columns < dim {
			cells = append(cells, "…")
		}
		switch {
		case d.Target != nil:
			cells = append(cells, d.Target[i])
		case d.Class != nil:
			cells = append(cells, d.Labels[d.Class[i]])
		}
		t.Add(cells...)
	}
	if rows < n || columns < dim {
		t.Caption = fmt.Sprintf("The first %d of %d points, %d of %d features.", rows, n, columns, dim)
	}
	return t
}

// inlineFigure is a drawing of package plots within HTML.
var inlineFigure = regexp.MustCompile(`(?s)<svg style="max-width:100%;height:auto" role="img".*?</svg>`)

var figureTitle = regexp.MustCompile(`<title>([^<]*)</title>`)

// asImages replaces the drawings within HTML by images of the same: a notebook that is not trusted
// drops svg elements, and keeps images.
func asImages(s string) string {
	return inlineFigure.ReplaceAllStringFunc(s, func(svg string) string {
		alt := "figure"
		if m := figureTitle.FindStringSubmatch(svg); m != nil {
			alt = html.UnescapeString(m[1])
		}
		return SVGImage(svg, alt)
	})
}

// settle puts a figure's representations right: how large the image is to be seen, and images for the drawings
// in HTML. It returns why a figure cannot be drawn.
func settle(v any, d *Data) error {
	if s, ok := d.Data[MIMETypeHTML].(string); ok {
		d.Data[MIMETypeHTML] = asImages(s)
	}
	f, ok := v.(*plots.Figure)
	if x, value := v.(plots.Figure); value {
		f, ok = &x, true
	}
	if !ok {
		return nil
	}
	if b, ok := d.Data[MIMETypePNG].([]byte); ok {
		if c, err := png.DecodeConfig(bytes.NewReader(b)); err == nil {
			d.Metadata = MIMEMap{MIMETypePNG: MIMEMap{"width": c.Width * 96 / plots.DotsPerInch,
				"height": c.Height * 96 / plots.DotsPerInch}}
		}
	}
	return f.Validate()
}
