package bindgen

import (
	"bytes"
	"fmt"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// module is the path of the module whose packages are bound.
const module = "github.com/krrlab/lab"

// writer collects the parts of one file.
type writer struct {
	pkg                                              *Package
	imports                                          map[string]string // name by path
	taken                                            map[string]bool
	binds, types, proxies, wrappers, untyped, bodies bytes.Buffer
	err                                              error
}

func newWriter(p *Package) *writer {
	w := &writer{pkg: p, imports: map[string]string{}, taken: map[string]bool{"r": true, "imports": true}}
	w.name(p.Types)
	return w
}

// name returns the name by which the file knows package p.
func (w *writer) name(p *types.Package) string {
	if n := w.imports[p.Path()]; n != "" {
		return n
	}
	if p != w.pkg.Types && internal(p.Path()) {
		w.err = fmt.Errorf("it needs the internal package %s", p.Path())
	}
	n := p.Name()
	for i := 2; w.taken[n]; i++ {
		n = fmt.Sprintf("%s%d", p.Name(), i)
	}
	w.imports[p.Path()], w.taken[n] = n, true
	return n
}

func internal(p string) bool {
	return strings.HasPrefix(p, "internal/") || strings.Contains(p, "/internal/") || strings.HasSuffix(p, "/internal")
}

// object adds one exported name.
func (w *writer) object(o types.Object) error {
	w.err = nil
	ref := w.name(w.pkg.Types) + "." + o.Name()
	switch o := o.(type) {
	case *types.Const:
		w.constant(o, ref)
	case *types.Var:
		fmt.Fprintf(&w.binds, "%q: r.ValueOf(&%s).Elem(),\n", o.Name(), ref)
	case *types.Func:
		if o.Type().(*types.Signature).TypeParams().Len() > 0 {
			return fmt.Errorf("a generic function, which the interpreter cannot call")
		}
		fmt.Fprintf(&w.binds, "%q: r.ValueOf(%s),\n", o.Name(), ref)
	case *types.TypeName:
		return w.typeName(o, ref)
	}
	return w.err
}

func (w *writer) constant(o *types.Const, ref string) {
	basic, ok := o.Type().(*types.Basic)
	if !ok || basic.Info()&types.IsUntyped == 0 {
		fmt.Fprintf(&w.binds, "%q: r.ValueOf(%s),\n", o.Name(), ref)
		return
	}
	// The value of an untyped constant is in Untypeds, exact; the bind is a stand-in.
	fmt.Fprintf(&w.binds, "%q: r.ValueOf(%s),\n", o.Name(), standIn(basic))
	fmt.Fprintf(&w.untyped, "%q: %q,\n", o.Name(), exact(basic, o.Val()))
}

// typeName adds a type, its proxy if it is an interface, and its promoted methods if it
// is a struct.
func (w *writer) typeName(o *types.TypeName, ref string) error {
	if named, ok := types.Unalias(o.Type()).(*types.Named); ok && named.TypeParams().Len() > named.TypeArgs().Len() {
		return fmt.Errorf("a generic type, which the interpreter cannot instantiate")
	}
	if iface, ok := o.Type().Underlying().(*types.Interface); ok {
		if !iface.IsMethodSet() {
			return fmt.Errorf("a constraint, which has no values")
		}
		if err := w.proxy(o, iface); err != nil {
			return err
		}
	}
	fmt.Fprintf(&w.types, "%q: r.TypeOf((*%s)(nil)).Elem(),\n", o.Name(), ref)
	if promoted := promotedMethods(o); len(promoted) > 0 {
		fmt.Fprintf(&w.wrappers, "%q: %#v,\n", o.Name(), promoted)
	}
	return nil
}

// promotedMethods returns the exported methods that a struct has from embedded fields.
func promotedMethods(o *types.TypeName) []string {
	named, ok := o.Type().(*types.Named)
	if !ok {
		return nil
	}
	if _, ok := named.Underlying().(*types.Struct); !ok {
		return nil
	}
	var out []string
	set := types.NewMethodSet(types.NewPointer(named))
	for i := range set.Len() {
		if s := set.At(i); len(s.Index()) > 1 && s.Obj().Exported() {
			out = append(out, s.Obj().Name())
		}
	}
	slices.Sort(out)
	return out
}

// proxy writes the struct that implements the interface o by functions of the
// interpreter. An interface with unexported methods has none: no cell can implement it.
func (w *writer) proxy(o *types.TypeName, iface *types.Interface) error {
	if iface.NumMethods() == 0 {
		return nil
	}
	for i := range iface.NumMethods() {
		if !iface.Method(i).Exported() {
			return nil
		}
	}
	var fields, methods bytes.Buffer
	name := "proxy_" + Stem(w.pkg.Path) + "_" + o.Name()
	for i := range iface.NumMethods() {
		m := iface.Method(i)
		sig := m.Type().(*types.Signature)
		if err := writable(sig); err != nil {
			return fmt.Errorf("method %s: %w", m.Name(), err)
		}
		params, args := w.params(sig)
		results := w.results(sig)
		fmt.Fprintf(&fields, "%s_ func(_ any%s) %s\n", m.Name(), comma(params), results)
		ret := ""
		if sig.Results().Len() > 0 {
			ret = "return "
		}
		fmt.Fprintf(&methods, "func (p *%s) %s(%s) %s { %sp.%s_(p.Object%s) }\n", name, m.Name(), params, results, ret,
			m.Name(), comma(args))
	}
	if w.err != nil {
		return w.err
	}
	fmt.Fprintf(&w.bodies,
		"\n// %s implements %s.%s by functions of the interpreter.\ntype %s struct {\nObject any\n%s}\n\n%s",
		name, path.Base(w.pkg.Path), o.Name(), name, fields.String(), methods.String())
	fmt.Fprintf(&w.proxies, "%q: r.TypeOf((*%s)(nil)).Elem(),\n", o.Name(), name)
	return nil
}

// params returns the parameters of sig with names of our own, and the names alone.
func (w *writer) params(sig *types.Signature) (params, args string) {
	var ps, as []string
	for i := range sig.Params().Len() {
		t, dots := sig.Params().At(i).Type(), ""
		arg := fmt.Sprintf("a%d", i)
		if sig.Variadic() && i == sig.Params().Len()-1 {
			t, dots = t.(*types.Slice).Elem(), "..."
		}
		ps = append(ps, arg+" "+dots+types.TypeString(t, w.name))
		as = append(as, arg+dots)
	}
	return strings.Join(ps, ", "), strings.Join(as, ", ")
}

func (w *writer) results(sig *types.Signature) string {
	var rs []string
	for i := range sig.Results().Len() {
		rs = append(rs, types.TypeString(sig.Results().At(i).Type(), w.name))
	}
	if len(rs) == 1 {
		return rs[0]
	}
	if len(rs) == 0 {
		return ""
	}
	return "(" + strings.Join(rs, ", ") + ")"
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

// file puts the parts together.
func (w *writer) file(pkg string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b,
		"// Code generated by krrlab/notebook/bindgen; DO NOT EDIT.\n\npackage %s\n\nimport (\n\tr \"reflect\"\n\n",
		pkg)
	fmt.Fprintf(&b, "\t\"github.com/gopherdata/gophernotes/imports\"\n\n")
	parts := w.binds.String() + w.types.String() + w.bodies.String()
	for _, p := range slices.Sorted(maps.Keys(w.imports)) {
		if strings.Contains(parts, w.imports[p]+".") {
			fmt.Fprintf(&b, "\t%s %q\n", w.imports[p], p)
		}
	}
	fmt.Fprintf(&b, ")\n\nfunc init() {\n\timports.Packages[%q] = imports.Package{\n\t\tName: %q,\n", w.pkg.name(),
		w.pkg.Types.Name())
	for _, m := range []struct {
		name, typ string
		body      *bytes.Buffer
	}{
		{"Binds", "map[string]r.Value", &w.binds}, {"Types", "map[string]r.Type", &w.types},
		{"Proxies", "map[string]r.Type", &w.proxies}, {"Wrappers", "map[string][]string", &w.wrappers},
		{"Untypeds", "map[string]string", &w.untyped},
	} {
		fmt.Fprintf(&b, "%s: %s{\n%s},\n", m.name, m.typ, m.body)
	}
	b.WriteString("}\n}\n")
	b.Write(w.bodies.Bytes())
	return b.Bytes()
}

// Stem turns an import path into a name for a file.
func Stem(p string) string {
	return strings.NewReplacer("github.com/krrlab/lab/", "", "/", "_", ".", "_", "-", "_").Replace(p)
}
