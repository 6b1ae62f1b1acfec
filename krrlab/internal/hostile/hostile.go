// Package hostile changes a value read from a file in all the small ways in which a file that
// someone has edited and signed anew may differ from one that the program wrote: each number in
// turn negative, too large, not finite, each list longer, shorter, empty. It is for tests of the
// code that reads such values, which is to refuse them or to come to a right end.
package hostile

import (
	"fmt"
	"math"
	"reflect"
)

// longest is how many elements of a list are changed: the first ones and the last.
const longest = 4

// Each calls f again and again while one thing in what p points to is changed, which name says,
// and puts everything back.
func Each(p any, f func(name string)) { walk(reflect.ValueOf(p).Elem(), "", f) }

// walk changes v and what is in it.
func walk(v reflect.Value, path string, f func(name string)) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	try := func(what string, set func()) {
		set()
		f(fmt.Sprintf("%s = %s", path, what))
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.Bool:
		try("the other", func() { v.SetBool(!old.Bool()) })
	case reflect.Int, reflect.Int32, reflect.Int64:
		for _, k := range []int64{-1, 0, 1, old.Int() + 1, old.Int() - 1, 1 << 20, math.MaxInt32, math.MinInt32} {
			try(fmt.Sprint(k), func() { v.SetInt(k) })
		}
	case reflect.Float64:
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300, -1e300, 1e-300, -old.Float()} {
			try(fmt.Sprint(x), func() { v.SetFloat(x) })
		}
	case reflect.String:
		for _, s := range []string{"", "x", "..", old.String() + "\n", "\x00"} {
			try(fmt.Sprintf("%q", s), func() { v.SetString(s) })
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if t := v.Type().Field(i); t.IsExported() {
				walk(v.Field(i), path+"."+t.Name, f)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			try("nil", func() { v.SetZero() })
			walk(v.Elem(), path, f)
		}
	case reflect.Slice, reflect.Array:
		list(v, path, try, f)
	}
}

// list changes a list and some of its elements.
func list(v reflect.Value, path string, try func(what string, set func()), f func(name string)) {
	n := v.Len()
	if v.Kind() == reflect.Slice {
		try("nothing", func() { v.SetZero() })
		if n > 0 {
			try("one less", func() { v.SetLen(n - 1) })
			try("one more", func() { v.Set(reflect.Append(v.Slice3(0, n, n), v.Index(0))) })
			try("twice", func() { v.Set(reflect.AppendSlice(v.Slice3(0, n, n), v)) })
		} else {
			try("one", func() { v.Set(reflect.MakeSlice(v.Type(), 1, 1)) })
		}
	}
	for i := range n {
		if i < longest/2 || i >= n-longest/2 {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	}
}
