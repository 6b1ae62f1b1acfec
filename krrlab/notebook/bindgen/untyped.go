package bindgen

import (
	"fmt"
	"go/constant"
	"go/types"
)

// exact writes an untyped constant as the interpreter reads it: the kind and the value,
// a fraction where it is not whole.
func exact(b *types.Basic, v constant.Value) string {
	switch b.Kind() {
	case types.UntypedBool:
		return fmt.Sprintf("bool:%t", constant.BoolVal(v))
	case types.UntypedInt:
		return "int:" + v.ExactString()
	case types.UntypedRune:
		return "rune:" + v.ExactString()
	case types.UntypedFloat:
		return "float:" + v.ExactString()
	case types.UntypedComplex:
		return "complex:" + constant.Real(v).ExactString() + ":" + constant.Imag(v).ExactString()
	}
	return "string:" + constant.StringVal(v)
}

// standIn is a Go expression of the default type of an untyped constant.
func standIn(b *types.Basic) string {
	switch b.Kind() {
	case types.UntypedBool:
		return "false"
	case types.UntypedRune:
		return "'0'"
	case types.UntypedFloat:
		return "0.0"
	case types.UntypedComplex:
		return "0i"
	case types.UntypedString:
		return `""`
	}
	return "0"
}

// writable reports whether the types of a method can be written in another package.
func writable(t types.Type) error {
	switch t := t.(type) {
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for i := range tuple.Len() {
				if err := writable(tuple.At(i).Type()); err != nil {
					return err
				}
			}
		}
	case interface{ Obj() *types.TypeName }: // Named, Alias
		if o := t.Obj(); o.Pkg() != nil && !o.Exported() {
			return fmt.Errorf("its type %s is not exported", o.Name())
		}
	case *types.Map:
		if err := writable(t.Key()); err != nil {
			return err
		}
		return writable(t.Elem())
	case interface{ Elem() types.Type }: // Pointer, Slice, Array, Chan
		return writable(t.Elem())
	}
	return nil
}
