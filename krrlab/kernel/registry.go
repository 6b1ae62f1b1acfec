package kernel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Params holds the parameters of a registered kernel: its exported fields as a JSON object without spaces.
type Params string

// MarshalJSON implements json.Marshaler.
func (p Params) MarshalJSON() ([]byte, error) { return []byte(p), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Params) UnmarshalJSON(b []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return err
	}
	*p = Params(compact.String())
	return nil
}

// kind is a kernel type with a name: built-in, or registered by a program.
type kind struct {
	name string
	// prototypes[0] has the default parameters. A built-in kind may have further prototypes, which a search tries.
	prototypes []Kernel
}

// goType returns the Go type of the kernels of a kind.
func (k *kind) goType() reflect.Type { return reflect.TypeOf(k.prototypes[0]) }

// registry holds the kinds in the order of their registration. Those of this package come first.
var registry struct {
	sync.RWMutex
	kinds []*kind
}

// find returns the first kind for which the condition matches holds, or nil.
func find(matches func(*kind) bool) *kind {
	registry.RLock()
	defer registry.RUnlock()
	if i := slices.IndexFunc(registry.kinds, matches); i >= 0 {
		return registry.kinds[i]
	}
	return nil
}

// hasName returns the condition that a kind has the given name, for find.
func hasName(name string) func(*kind) bool { return func(k *kind) bool { return k.name == name } }

// hasType returns the condition that a kind has the given Go type, for find.
func hasType(t reflect.Type) func(*kind) bool { return func(k *kind) bool { return k.goType() == t } }

// register adds a kernel of this package. The first prototype has the default parameters. A search tries the other
// prototypes, or the first one if there is only one.
//
// The package relies on properties of its kernels. A function of a distance has values in [0, 1] and k(x, x) = 1
// (Bounded01), and the derivatives and roundings that EntryError states for its Profile.
func register(name string, prototypes ...Kernel) {
	k := &kind{name, prototypes}
	registry.kinds = append(registry.kinds, k)
	builtIn[k.goType()] = true
}

// builtIn holds the types of the kernels of this package. It does not change after the package is initialized.
var builtIn = map[reflect.Type]bool{}

// Register gives a user-defined kernel a name in files and on command lines. Models with the kernel can then be saved,
// loaded and verified, checkpoints can be resumed, ranks of a program that also registers the kernel can use it, and
// --kernel and --kernels accept the name. Call Register in main or init, before the name is needed.
//
// The name must contain a dot, such as "mylab.rational". Names without a dot are reserved for the kernels of this
// package, so that a new one cannot collide with yours. The value k determines the type and the default parameters,
// which are its exported fields; JSON must be able to represent all of them. A file can set these fields, and a method
// Validate() error, if there is one, checks them. Registering the same type under the same name again replaces the
// default parameters.
//
// Register returns an error and changes nothing if the name has no dot or belongs to another type, if the type has
// another name, or if k is nil, built-in, a Func, or has fields that are not exported.
func Register(name string, k Kernel) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("kernel: Register(%q, %T): "+format, append([]any{name, k}, args...)...)
	}
	switch _, function := k.(Func); {
	case k == nil || BuiltIn(k) || function || AsPrecomputed(k) != nil:
		return fail("want a user-defined type with Eval and String")
	case !strings.Contains(strings.Trim(name, "."), "."):
		return fail("want a name with a dot, such as %q: names without a dot are for built-in kernels", "mylab."+
			cmp.Or(strings.Trim(name, "."), "kernel"))
	}
	if _, err := encode(k); err != nil {
		return fail("%w", err)
	}
	registry.Lock()
	defer registry.Unlock()
	t := reflect.TypeOf(k)
	for _, entry := range registry.kinds {
		// The name belongs to another type, or the type has another name.
		if (entry.name == name) != (entry.goType() == t) {
			return fail("%q is registered for %v", entry.name, entry.goType())
		}
		if entry.name == name {
			entry.prototypes = []Kernel{k}
			return nil
		}
	}
	registry.kinds = append(registry.kinds, &kind{name, []Kernel{k}})
	return nil
}

// Names returns the names of the kernels of this package, followed by those that the program has registered.
func Names() (names []string) {
	registry.RLock()
	defer registry.RUnlock()
	for _, k := range registry.kinds {
		names = append(names, k.name)
	}
	return names
}

// Variants returns the kernels that a search tries for a text that Parse accepts, or the error of Parse. For a bare
// name these are the prototypes of the kernel, and the search varies their length scale. For a text with parameters it
// is the one kernel that the text describes; scaled is then the result of Parse, and true means that the length scale
// must not be varied.
func Variants(text string) (kernels []Kernel, scaled bool, err error) {
	k, scaled, err := Parse(text)
	if registered := find(hasName(text)); registered != nil {
		return slices.Clone(registered.prototypes[min(1, len(registered.prototypes)-1):]), false, nil
	}
	return []Kernel{k}, scaled, err
}

// Parse returns the kernel that a text describes: its name, followed by parameters NAME=VALUE separated by blanks for
// those that differ from the defaults, such as "polynomial degree=2". Parameter names are the names of the fields in
// lower case. scaled reports whether one of the parameters is the one that Scaled.WithScale sets. Parse returns an
// error for an unknown name or parameter, and for a value out of range.
func Parse(text string) (k Kernel, scaled bool, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		words = []string{""} // an unknown name
	}
	registered := find(hasName(words[0]))
	if registered == nil {
		return nil, false, unknownKernel(words[0])
	}

	// kernelValue is a copy of the prototype, and fields its settable struct.
	kernelValue := reflect.New(registered.goType()).Elem()
	kernelValue.Set(reflect.ValueOf(registered.prototypes[0]))
	fields := reflect.Indirect(kernelValue)
	if kernelValue.Kind() == reflect.Pointer { // copy the value, so that the prototype does not change
		fields = reflect.New(kernelValue.Type().Elem())
		fields.Elem().Set(kernelValue.Elem())
		kernelValue, fields = fields, fields.Elem()
	}

	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		field := reflect.Value{}
		if fields.Kind() == reflect.Struct {
			field = fields.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		}
		if !ok || !field.CanSet() {
			return nil, false, fmt.Errorf("kernel: %q: %s has no parameter %q", text, registered.name, name)
		}
		if field.Kind() == reflect.String {
			value = strconv.Quote(value)
		} else if number, err := strconv.ParseFloat(value, 64); err == nil && field.CanFloat() {
			value = strconv.FormatFloat(number, 'g', -1, 64) // JSON does not accept .5
		}
		if err := json.Unmarshal([]byte(value), field.Addr().Interface()); err != nil || value == "null" {
			want := map[reflect.Kind]string{reflect.Float64: "number", reflect.Int: "whole number"}[field.Kind()]
			return nil, false, fmt.Errorf("kernel: %q: %s=%s: want a %s", text, name, value,
				cmp.Or(want, field.Kind().String()))
		}
		fieldType, _ := fields.Type().FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		scaled = scaled || isScale(kernelValue.Interface().(Kernel), fieldType)
	}
	k = kernelValue.Interface().(Kernel)
	return k, scaled, Validate(k)
}

// Text returns a text from which Parse makes the kernel that s describes, with all parameters. It returns s.Name if s
// describes no known kernel.
func (s Spec) Text() string {
	return s.text(func(Kernel, reflect.StructField) bool { return true })
}

// TextWithoutScale is Text without the parameter that Scaled.WithScale sets.
func (s Spec) TextWithoutScale() string {
	return s.text(func(k Kernel, f reflect.StructField) bool { return !isScale(k, f) })
}

// text is Text with the parameters for which the condition includes holds.
func (s Spec) text(includes func(Kernel, reflect.StructField) bool) string {
	k, err := FromSpec(s)
	if err != nil {
		return s.Name
	}
	text := s.Name
	for f, value := range parameters(k) {
		if includes(k, f) {
			b, _ := json.Marshal(value.Interface())
			text += " " + strings.ToLower(f.Name) + "=" + strings.Trim(string(b), `"`)
		}
	}
	return text
}

// parameters iterates over the exported fields of k and their values.
func parameters(k Kernel) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		v := reflect.Indirect(reflect.ValueOf(k))
		if v.Kind() != reflect.Struct {
			return
		}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.IsExported() && !f.Anonymous && !yield(f, v.FieldByIndex(f.Index)) {
				return
			}
		}
	}
}

// isScale reports whether Scaled.WithScale changes the given field of k.
func isScale(k Kernel, field reflect.StructField) bool {
	scaled, ok := k.(Scaled)
	if !ok {
		return false
	}
	rescaled := reflect.Indirect(reflect.ValueOf(scaled.WithScale(2 * scaled.Scale())))
	value := reflect.Indirect(reflect.ValueOf(k)).FieldByIndex(field.Index)
	return !reflect.DeepEqual(rescaled.FieldByIndex(field.Index).Interface(), value.Interface())
}

// ErrUnknown is wrapped by errors for the name of a kernel that is not registered.
var ErrUnknown = errors.New("unknown kernel")

// unknownKernel returns the error for an unknown kernel name.
func unknownKernel(name string) error {
	return fmt.Errorf("kernel: %w %q, want one of %s; a user-defined one has to be registered in this "+
		"program: kernel.Register(name, …)", ErrUnknown, name, strings.Join(Names(), ", "))
}

// encode returns the parameters of k, which is its JSON form. It returns an error if decode would not restore k from
// them.
func encode(k Kernel) (Params, error) {
	data, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("its fields cannot be written as JSON: %w", err)
	}
	decoded, err := decode(reflect.TypeOf(k), Params(data))
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(decoded, k) {
		return "", fmt.Errorf("JSON cannot hold all of its fields: want exported ones")
	}
	return Params(data), nil
}

// decode returns the kernel of type t with the given parameters.
func decode(t reflect.Type, p Params) (Kernel, error) {
	decoder := json.NewDecoder(strings.NewReader(string(p)))
	decoder.DisallowUnknownFields()
	pointer := reflect.New(t)
	if err := decoder.Decode(pointer.Interface()); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	k, ok := pointer.Elem().Interface().(Kernel)
	if v := pointer.Elem(); !ok || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("no parameters")
	}
	return k, nil
}
