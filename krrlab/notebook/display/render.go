package display

import (
	"fmt"
	"image"
	"reflect"
	"strings"
)

// methods are the methods that show a value, and what they return.
var methods = []struct{ name, mime string }{
	{"HTML", MIMETypeHTML}, {"SVG", MIMETypeSVG}, {"Markdown", MIMETypeMarkdown}, {"Latex", MIMETypeLatex},
	{"JavaScript", MIMETypeJavaScript}, {"JSON", MIMETypeJSON}, {"PNG", MIMETypePNG}, {"JPEG", MIMETypeJPEG}, {"PDF", MIMETypePDF},
}

// superfluous are the representations that a drawing in SVG makes so. An image in PNG is kept: a
// notebook that is not trusted shows no SVG.
var superfluous = map[string]bool{MIMETypeJPEG: true, MIMETypePDF: true}

// maxText is the length of the text of a value; what is longer is cut.
const maxText = 20000

// Render returns v in all representations it has, and always as text.
func Render(v any) Data {
	if d, ok := v.(Data); ok {
		return withText(d, v)
	}
	d := Data{Data: MIMEMap{}}
	var trouble []string
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
			if d.Data[MIMETypeSVG] != nil && superfluous[m.mime] {
				continue
			}
			attempt(m.name, func() error { return byMethod(v, m.name, m.mime, &d) })
		}
		settle(v, &d)
		if len(d.Data) == 0 {
			attempt("display", func() error { return byType(v, &d) })
		}
	}
	if d.Data[MIMETypeText] == nil {
		attempt("String", func() error { d.Data[MIMETypeText] = Text(v); return nil })
	}
	if len(trouble) > 0 {
		text, _ := d.Data[MIMETypeText].(string)
		d.Data[MIMETypeText] = strings.TrimSpace(text + "\n" + strings.Join(trouble, "\n"))
	}
	return d
}

// Rich reports whether v has a representation beside text.
func Rich(v any) bool {
	d := Render(v)
	_, text := d.Data[MIMETypeText]
	return len(d.Data) > 1 || !text
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

func withText(d Data, v any) Data {
	if d.Data == nil {
		d.Data = MIMEMap{}
	}
	if d.Data[MIMETypeText] == nil {
		d.Data[MIMETypeText] = ""
	}
	return d
}

// general calls the methods that return whole bundles, and encodes pictures.
func general(v any, d *Data) error {
	merge := func(dst *MIMEMap, src MIMEMap) {
		for k, x := range src {
			if *dst == nil {
				*dst = MIMEMap{}
			}
			(*dst)[k] = x
		}
	}
	if r, ok := v.(interface{ Render() Data }); ok {
		x := r.Render()
		merge(&d.Data, x.Data)
		merge(&d.Metadata, x.Metadata)
		merge(&d.Transient, x.Transient)
	}
	if r, ok := v.(interface{ SimpleRender() map[string]any }); ok {
		merge(&d.Data, r.SimpleRender())
	}
	if img, ok := v.(image.Image); ok {
		b, meta, err := encodePNG(img)
		if err != nil {
			return err
		}
		d.Data[MIMETypePNG] = b
		merge(&d.Metadata, meta)
	}
	return nil
}

var (
	errorType = reflect.TypeFor[error]()
	results   = map[reflect.Type]bool{reflect.TypeFor[string](): true, reflect.TypeFor[[]byte](): true, reflect.TypeFor[map[string]any](): true}
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
	if t.NumIn() != 0 || t.NumOut() < 1 || t.NumOut() > 2 || !results[t.Out(0)] || t.NumOut() == 2 && t.Out(1) != errorType {
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
	switch x := v.(type) {
	case nil:
		return "nil"
	case string:
		return cut(x)
	case error:
		return cut(x.Error())
	case fmt.Stringer:
		if !isNil(v) {
			return cut(x.String())
		}
	}
	if isNil(v) {
		return "nil"
	}
	return brief(v)
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf(" … (%d bytes in all)", len(s))
}
