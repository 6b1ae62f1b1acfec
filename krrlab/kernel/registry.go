package kernel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Params are the parameters of a registered kernel: its exported fields as a JSON object, without
// spaces.
type Params string

// MarshalJSON implements json.Marshaler.
func (p Params) MarshalJSON() ([]byte, error) { return []byte(p), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Params) UnmarshalJSON(b []byte) error {
	var c bytes.Buffer
	if err := json.Compact(&c, b); err != nil {
		return err
	}
	*p = Params(c.String())
	return nil
}

// registry has the types of registered kernels by name.
var registry struct {
	sync.RWMutex
	types map[string]reflect.Type
}

// Register gives a user-defined kernel a name in files: models of it are saved, loaded and verified, its
// checkpoints resumed, and its stages run on ranks of a program that registers it too. The kernel given
// tells the type, of whose exported fields, the parameters, JSON must hold all. A file can choose among
// registered types and set their fields; what it sets is checked by a method Validate() error if there
// is one. Call Register in main or init, before what needs it.
//
// Register panics if the name is empty, a built-in kernel's or another type's, or the kernel is a Func
// or has more than its exported fields.
func Register(name string, k Kernel) {
	t := reflect.TypeOf(k)
	if name == "" || slices.Contains(append(Names(), "precomputed"), name) || k == nil || BuiltIn(k) {
		panic(fmt.Sprintf("kernel: Register(%q, %T): want an unused name and a user-defined kernel", name, k))
	}
	if _, err := encode(k); err != nil {
		panic(fmt.Sprintf("kernel: Register(%q, %T): %v", name, k, err))
	}
	registry.Lock()
	defer registry.Unlock()
	for other, u := range registry.types {
		if (other == name) != (u == t) {
			panic(fmt.Sprintf("kernel: Register(%q, %v): %q is registered for %v", name, t, other, u))
		}
	}
	if registry.types == nil {
		registry.types = map[string]reflect.Type{}
	}
	registry.types[name] = t
}

// registered returns the type of a name.
func registered(name string) (reflect.Type, bool) {
	registry.RLock()
	defer registry.RUnlock()
	t, ok := registry.types[name]
	return t, ok
}

// nameOf returns the name of a type.
func nameOf(t reflect.Type) (string, bool) {
	registry.RLock()
	defer registry.RUnlock()
	for name, u := range registry.types {
		if u == t {
			return name, true
		}
	}
	return "", false
}

// encode returns the parameters of k, from which the same kernel comes back.
func encode(k Kernel) (Params, error) {
	b, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("its fields cannot be written as JSON: %w", err)
	}
	back, err := decode(reflect.TypeOf(k), Params(b))
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(back, k) {
		return "", fmt.Errorf("JSON cannot hold all of its fields: want exported ones")
	}
	return Params(b), nil
}

// decode returns the kernel of a type with the given parameters.
func decode(t reflect.Type, p Params) (Kernel, error) {
	d := json.NewDecoder(strings.NewReader(string(p)))
	d.DisallowUnknownFields()
	v := reflect.New(t)
	if err := d.Decode(v.Interface()); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	k, ok := v.Elem().Interface().(Kernel)
	if e := v.Elem(); !ok || e.Kind() == reflect.Pointer && e.IsNil() {
		return nil, fmt.Errorf("no parameters")
	}
	return k, nil
}
