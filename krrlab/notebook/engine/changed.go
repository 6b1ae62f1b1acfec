package engine

import (
	"reflect"
	"unsafe"
)

// changed gives values that variables hold in interfaces the types that their own have become.
type changed struct {
	types map[reflect.Type]reflect.Type // new ones by those before
	boxes map[reflect.Type]bool         // whether values of a type hold interfaces
	seen  map[seen]bool
	left  []reflect.Value // variables that others point to, to be visited
}

type seen struct {
	p unsafe.Pointer
	t reflect.Type
	n int
}

// all visits a variable and what can be reached from it, however long a chain of pointers is.
func (c *changed) all(v reflect.Value) {
	for c.left = append(c.left, v); len(c.left) > 0; {
		v := c.left[len(c.left)-1]
		c.left = c.left[:len(c.left)-1]
		c.visit(v)
	}
}

// visit looks through a variable: what it points to, its elements, and the fields of types of cells. It reports
// whether the variable itself has another value.
func (c *changed) visit(v reflect.Value) (other bool) {
	t := v.Type()
	if !c.holds(t) {
		return false
	}
	if k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Map {
		s := seen{p: v.UnsafePointer(), t: t}
		if k == reflect.Slice {
			s.n = v.Len()
		}
		if v.IsNil() || c.seen[s] {
			return false
		}
		c.seen[s] = true
	}
	switch t.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return false
		}
		was, box := v.Elem().Type(), copied(v.Elem())
		other = c.visit(box)
		if now := c.renewed(was); now.Implements(t) && (other || now != was) {
			v.Set(reflect.NewAt(now, box.Addr().UnsafePointer()).Elem())
			return true
		}
	case reflect.Pointer:
		c.left = append(c.left, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			other = c.visit(v.Index(i)) || other
		}
		return other && t.Kind() == reflect.Array
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			other = c.visit(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()) || other
		}
		return other
	case reflect.Map:
		for _, k := range v.MapKeys() {
			key, x := copied(k), copied(v.MapIndex(k))
			if c.visit(key) {
				v.SetMapIndex(k, reflect.Value{})
				c.visit(x)
				v.SetMapIndex(key, x)
			} else if c.visit(x) {
				v.SetMapIndex(k, x)
			}
		}
	}
	return false
}

// copied returns a variable with a value.
func copied(v reflect.Value) reflect.Value {
	x := reflect.New(v.Type()).Elem()
	x.Set(v)
	return x
}

// holds reports whether visit can find an interface in a value of a type.
func (c *changed) holds(t reflect.Type) bool {
	if found, known := c.boxes[t]; known {
		return found
	}
	found := boxes(t, map[reflect.Type]bool{})
	c.boxes[t] = found
	return found
}

func boxes(t reflect.Type, within map[reflect.Type]bool) (found bool) {
	if within[t] || t.PkgPath() != "" && t.PkgPath() != mainPath && t.Kind() != reflect.Interface {
		return false
	}
	within[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return boxes(t.Elem(), within)
	case reflect.Map:
		return boxes(t.Elem(), within) || boxes(t.Key(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			found = found || boxes(t.Field(i).Type, within)
		}
	}
	return found
}

// renewed returns what a type has become.
func (c *changed) renewed(t reflect.Type) reflect.Type {
	if now, ok := c.types[t]; ok {
		return now
	}
	if t.Name() != "" {
		return t
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.PointerTo(c.renewed(t.Elem()))
	case reflect.Slice:
		return reflect.SliceOf(c.renewed(t.Elem()))
	case reflect.Array:
		return reflect.ArrayOf(t.Len(), c.renewed(t.Elem()))
	case reflect.Map:
		return reflect.MapOf(c.renewed(t.Key()), c.renewed(t.Elem()))
	case reflect.Chan:
		return reflect.ChanOf(t.ChanDir(), c.renewed(t.Elem()))
	}
	return t
}
