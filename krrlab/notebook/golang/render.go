package golang

import (
	"fmt"
	"reflect"

	basereflect "github.com/cosmos72/gomacro/base/reflect"
	"github.com/cosmos72/gomacro/xreflect"

	"github.com/krrlab/lab/krrlab/notebook/display"
)

// rendererType is an interface by which a value shows itself.
type rendererType struct {
	typ  xreflect.Type
	name string
}

// displayTypes notes the interfaces of package display: the methods of types declared in
// cells are known to the interpreter only, which must convert to each.
func (s *Session) displayTypes() {
	s.types = nil
	imp := s.ir.Comp.KnownImports["display"]
	for name, t := range imp.Types {
		if t.Kind() == reflect.Interface {
			s.types = append(s.types, rendererType{t, name})
		}
	}
}

// render shows a value of which the interpreter knows the type.
func (s *Session) render(x any, t xreflect.Type) (d display.Data) {
	if !interpretedMethods(t) {
		return display.Render(x)
	}
	defer func() {
		if r := recover(); r != nil {
			d = display.Data{Data: display.MIMEMap{display.MIMETypeText: fmt.Sprintf("%s\na display method panicked: %v", display.Text(x), r)}}
		}
	}()
	d = display.Data{Data: display.MIMEMap{}}
	for _, r := range s.types {
		if !t.Implements(r.typ) {
			continue
		}
		y := x
		if conv := s.ir.Comp.Converter(t, r.typ); conv != nil {
			y = basereflect.ValueInterface(conv(xreflect.ValueOf(x)))
		}
		if r.name == "Stringer" {
			d.Data[display.MIMETypeText] = display.Text(y)
			continue
		}
		for mime, data := range display.Render(y).Data {
			if mime != display.MIMETypeText || r.name == "Renderer" || r.name == "SimpleRenderer" {
				d.Data[mime] = data
			}
		}
	}
	if d.Data[display.MIMETypeText] == nil {
		d.Data[display.MIMETypeText] = display.Text(x)
	}
	return d
}

// interpretedMethods reports whether a type has methods that were declared in a cell.
func interpretedMethods(t xreflect.Type) bool {
	if t == nil {
		return false
	}
	if t.Kind() == reflect.Pointer {
		return t.Elem() != nil && interpretedMethods(t.Elem())
	}
	return t.Named() && t.Kind() != reflect.Interface && t.NumMethod() > 0 && t.ReflectType().Name() != t.Name()
}
