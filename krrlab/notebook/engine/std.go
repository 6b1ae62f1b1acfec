package engine

import (
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/goplus/ixgo"
	// The tables of package imports are those of Go 1.18. These packages add generic functions from source.
	_ "github.com/goplus/ixgo/pkg/cmp"
	_ "github.com/goplus/ixgo/pkg/errors"
	_ "github.com/goplus/ixgo/pkg/iter"
	_ "github.com/goplus/ixgo/pkg/maps"
	_ "github.com/goplus/ixgo/pkg/math/rand/v2"
	_ "github.com/goplus/ixgo/pkg/reflect"
	_ "github.com/goplus/ixgo/pkg/slices"
	_ "github.com/goplus/ixgo/pkg/sync"
	_ "github.com/goplus/ixgo/pkg/sync/atomic"
	_ "github.com/goplus/reflectx/icall/icall4096" // limits the number of methods of types that cells declare
)

// The patches add reflect.TypeAssert and errors.AsType, which are newer than ixgo. They also replace package unique.
// With ixgo's version of it, two separately compiled pieces of cells get different handles for equal values.
func init() {
	ixgo.RegisterPatch("reflect", `package reflect

import "reflect"

func TypeAssert[T any](v reflect.Value) (T, bool) {
	x, ok := v.Interface().(T)
	return x, ok
}
`)
	ixgo.RegisterPackage(&ixgo.Package{Name: "unique", Path: "unique"})
	ixgo.RegisterPatch("unique", `package unique

type Handle[T comparable] struct{ value *T }

func (h Handle[T]) Value() T { return *h.value }

func Make[T comparable](value T) Handle[T] { return Handle[T]{intern([1]T{value}, &value).(*T)} }

func intern(key, handle any) any
`)
	ixgo.RegisterPatch("errors", `package errors

import "errors"

func AsType[E error](err error) (E, bool) {
	var e E
	ok := errors.As(err, &e)
	return e, ok
}
`)
}

// runtimeHooks returns hooks for the functions of the Go runtime that interpreted packages of the standard library use.
func runtimeHooks() map[string]any {
	return map[string]any{
		"iter@patch.pullany": func(seq func(func(any) bool)) (func() (any, bool), func()) {
			return iter.Pull(seq)
		},
		"iter@patch.pullany2": func(seq func(func(k, v any) bool)) (func() (any, any, bool), func()) {
			return iter.Pull2(seq)
		},
		"math/rand/v2@patch.globalRandUint64n": rand.Uint64N,
		"unique@patch.intern": func(key, handle any) any {
			handle, _ = uniqueHandles.LoadOrStore(key, handle)
			return handle
		},
		"runtime.Goexit": runtime.Goexit,
	}
}

// uniqueHandles maps each value of package unique, as an array of length one, to its handle.
var uniqueHandles sync.Map
