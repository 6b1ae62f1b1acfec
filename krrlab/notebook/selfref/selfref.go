package selfref

import (
	"reflect"
	"unsafe"

	"github.com/cosmos72/gomacro/xreflect"
)

// Settle gives all compiled types that an interpreter knows the reflect.Type that they
// are of. It is to be called after packages were imported, and before code that uses
// them is compiled.
func Settle(u *xreflect.Universe) {
	for rt, t := range u.ReflectTypes {
		if o := option(t); o != nil && *o != 0 {
			*o = 0
			t.UnsafeForceReflectType(rt)
		}
	}
}

// option returns where a type notes that it is an approximation, not 0 then; nil if it is
// not where it was found to be.
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
