package panel

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// literal returns a struct as Go code, with the exported fields that are not zero and can be written.
func literal(v reflect.Value) string {
	var fields []string
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() && !v.Field(i).IsZero() {
			if code, ok := expression(v.Field(i)); ok {
				fields = append(fields, field.Name+": "+code)
			}
		}
	}
	name := typeName(v.Type())
	if v.Type().Name() == "" {
		name = "" // the fields of a struct without a name are clear enough
	}
	return name + "{" + strings.Join(fields, ", ") + "}"
}

// expression returns a value as Go code that can be assigned to its type. ok is false for values that have no such
// code, such as functions and interfaces.
func expression(v reflect.Value) (code string, ok bool) {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()), true
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.String:
		return strconv.Quote(v.String()), true
	case reflect.Pointer:
		code, ok := expression(v.Elem())
		return "new(" + typeName(v.Type().Elem()) + "(" + code + "))", ok
	case reflect.Struct:
		return literal(v), true
	case reflect.Slice:
		var items []string
		for i := range v.Len() {
			item, ok := expression(v.Index(i))
			if !ok {
				return "", false
			}
			items = append(items, item)
		}
		return typeName(v.Type()) + "{" + strings.Join(items, ", ") + "}", true
	}
	return "", false
}

// typeName returns the name of a type as a cell writes it. Types that a cell declares belong to package main.
func typeName(t reflect.Type) string { return strings.ReplaceAll(fmt.Sprint(t), "main.", "") }
