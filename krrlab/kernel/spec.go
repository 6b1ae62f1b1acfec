package kernel

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Spec is a kernel as data, for model files and reports. Name is the name of a built-in or registered kernel, or
// "precomputed". A registered or precomputed kernel has its parameters in Params, a built-in one in the other fields.
// Fields that do not belong to the kernel are zero.
type Spec struct {
	Name   string  `json:"name"`
	Sigma  float64 `json:"sigma,omitempty"`  // length scale σ of a kernel of the distance
	Gamma  float64 `json:"gamma,omitempty"`  // γ of the polynomial kernel (γxᵀz+c)^q
	Coef0  float64 `json:"coef0,omitempty"`  // c of the polynomial kernel
	Degree int     `json:"degree,omitempty"` // q of the polynomial kernel
	Params Params  `json:"params,omitempty"`
}

// precomputedName is the name of a Precomputed. It is not in the registry.
const precomputedName = "precomputed"

// FromSpec returns the kernel that s describes. It returns an error for an unknown name, a parameter out of range, and
// a parameter that the kernel does not have.
func FromSpec(s Spec) (k Kernel, err error) {
	registered := find(hasName(s.Name))
	switch {
	case s.Name == precomputedName:
		k, err = decodePrecomputed(s.Params)
	case registered == nil:
		err = unknownKernel(s.Name)
	case registered.hasOnlySpecFields():
		k = registered.fromFields(s)
	default:
		if k, err = decode(registered.goType(), s.Params); err != nil {
			err = fmt.Errorf("kernel: parameters of %q: %w", s.Name, err)
		}
	}
	if err == nil {
		err = Validate(k)
	}
	if err != nil {
		return nil, err
	}
	if roundTrip, _ := ToSpec(k); roundTrip != s {
		return nil, fmt.Errorf("kernel: %s has no such parameter: %+v", s.Name, s)
	}
	return k, nil
}

// hasOnlySpecFields reports whether k is built-in and all its parameters are fields of a Spec.
func (k *kind) hasOnlySpecFields() bool {
	if !BuiltIn(k.prototypes[0]) {
		return false
	}
	for f := range k.goType().Fields() {
		if _, ok := reflect.TypeFor[Spec]().FieldByName(f.Name); !ok {
			return false
		}
	}
	return true
}

// fromFields returns the kernel with the parameters in the fields of s.
func (k *kind) fromFields(s Spec) Kernel {
	v := reflect.New(k.goType()).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.ValueOf(s).FieldByName(v.Type().Field(i).Name))
	}
	return v.Interface().(Kernel)
}

// ToSpec returns k as data. It returns an error for a user-defined kernel that is not registered.
func ToSpec(k Kernel) (Spec, error) {
	switch k := k.(type) {
	case *Precomputed:
		return k.spec()
	case nil:
		return Spec{}, Validate(k)
	case Func:
		return Spec{},
			fmt.Errorf("kernel: %v is a Go function and cannot be stored or sent: make it a type with Eval and "+
				"String, and register that (kernel.Register)", k)
	}
	registered := find(hasType(reflect.TypeOf(k)))
	if registered == nil {
		return Spec{},
			fmt.Errorf("kernel: %v is user-defined and cannot be stored or sent before it is registered: "+
				"kernel.Register(name, %T{…})", k, k)
	}
	s := Spec{Name: registered.name}
	if registered.hasOnlySpecFields() {
		v, fields := reflect.ValueOf(k), reflect.ValueOf(&s).Elem()
		for i := range v.NumField() {
			fields.FieldByName(v.Type().Field(i).Name).Set(v.Field(i))
		}
		return s, nil
	}
	var err error
	if s.Params, err = encode(k); err != nil {
		return Spec{}, fmt.Errorf("kernel: %v, registered as %q: %w", k, registered.name, err)
	}
	return s, nil
}

// Short returns the String of the kernel with parameters rounded to four significant digits, or the name if the rounded
// kernel is invalid.
func (s Spec) Short() string {
	short := s
	for _, v := range []*float64{&short.Sigma, &short.Gamma, &short.Coef0} {
		*v = outward.Rounded(*v, 4)
	}
	k, err := FromSpec(short)
	if err != nil {
		return s.Name
	}
	if s.Params == "" {
		return k.String()
	}
	if rounded := roundParameters(k); Validate(rounded) == nil {
		return rounded.String()
	}
	return k.String()
}

// roundParameters returns a copy of k whose floating-point parameters are rounded to four significant digits. It
// returns k itself if k is not a struct, or a pointer to one.
func roundParameters(k Kernel) Kernel {
	original := reflect.Indirect(reflect.ValueOf(k))
	rounded := reflect.New(original.Type())
	rounded.Elem().Set(original)
	for f, value := range parameters(k) {
		if v := rounded.Elem().FieldByIndex(f.Index); v.CanFloat() && v.CanSet() {
			v.SetFloat(outward.Rounded(value.Float(), 4))
		}
	}
	if reflect.TypeOf(k).Kind() == reflect.Pointer {
		return rounded.Interface().(Kernel)
	}
	return rounded.Elem().Interface().(Kernel)
}

// Shorten returns text with every occurrence of the kernel's String replaced by Short. The text describes, for example,
// a feature map. Shorten returns text itself if the kernel is invalid.
func (s Spec) Shorten(text string) string {
	k, err := FromSpec(s)
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, k.String(), s.Short())
}
