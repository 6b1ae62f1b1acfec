package golang

import (
	"fmt"
	"go/ast"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
	"github.com/gopherdata/gophernotes/imports"
)

// imports makes the packages that a cell imports known before it is compiled, and puts
// their types right.
func (s *Session) imports(nodes []ast.Node) error {
	paths := map[string]fast.PackageName{}
	for _, n := range nodes {
		ast.Inspect(n, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ImportSpec); ok {
				if path, err := strconv.Unquote(spec.Path.Value); err == nil {
					paths[path] = ""
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	if len(paths) == 0 {
		return nil
	}
	if _, err := s.ir.Comp.ImportPackagesOrError(paths); err != nil {
		return err
	}
	s.settle()
	return nil
}

// settle puts right the compiled types that refer to themselves, such as
// plots.Figure with its Panels []Figure. The interpreter, which meets such a type in the
// midst of making it, takes it for one of its own that reflection does not know, and goes on
// to approximate *Figure and []Figure by an empty interface, so that no function can
// return one. But of a compiled type reflection knows all.
func (s *Session) settle() {
	u := s.ir.Comp.Universe
	if len(u.ReflectTypes) == s.settled {
		return
	}
	s.settled = len(u.ReflectTypes)
	for rt, t := range u.ReflectTypes {
		if o := option(t); o != nil && *o != 0 {
			*o = 0
			t.UnsafeForceReflectType(rt)
		}
	}
}

// option returns where a type of the interpreter notes that it is an approximation, not
// 0 then; nil if it is not where it was found to be.
func option(t xreflect.Type) *uint8 {
	v := reflect.ValueOf(t) // a function of an empty struct that returns the type's data
	if v.Kind() != reflect.Func || v.IsNil() || v.Type().NumIn() != 1 || v.Type().NumOut() != 1 || v.Type().Out(0).Kind() != reflect.Pointer {
		return nil
	}
	data := v.Call([]reflect.Value{reflect.Zero(v.Type().In(0))})[0]
	f, ok := data.Type().Elem().FieldByName("option")
	if !ok || f.Type.Kind() != reflect.Uint8 || data.IsNil() {
		return nil
	}
	return (*uint8)(unsafe.Add(data.UnsafePointer(), f.Offset))
}

// imported refuses packages that are not linked in.
func (k *checker) imported(n *ast.ImportSpec) *trap {
	path, err := strconv.Unquote(n.Path.Value)
	if err != nil {
		return nil
	}
	if _, ok := imports.Packages[path]; ok || k.s.ir.Comp.KnownImports[path] != nil {
		return nil
	}
	text := fmt.Sprintf("package %s is not in this kernel", path)
	if near := similar(path); len(near) > 0 {
		text += "; there is " + strings.Join(near, ", ")
	}
	return k.at(n, "%s (%%doc lists the packages)", text)
}

// similar returns packages with the same last element, or one that begins so.
func similar(path string) []string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	var out []string
	for p := range imports.Packages {
		if q := p[strings.LastIndexByte(p, '/')+1:]; q == last || len(last) > 2 && (strings.HasPrefix(q, last) || strings.HasPrefix(last, q) && len(q) > 3) {
			out = append(out, p)
		}
	}
	sort.Strings(out)
	return out[:min(len(out), 3)]
}
