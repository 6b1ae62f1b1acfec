package kernel

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Spec is a kernel as data: what a model file or a report stores. Name is "gaussian", "laplacian", "matern32",
// "matern52", "polynomial", "precomputed" or that of a registered kernel, which two have Params; fields that the kernel
// does not have are zero.
type Spec struct {
	Name   string  `json:"name"`
	Sigma  float64 `json:"sigma,omitempty"`
	Gamma  float64 `json:"gamma,omitempty"`
	Coef0  float64 `json:"coef0,omitempty"`
	Degree int     `json:"degree,omitempty"`
	Params Params  `json:"params,omitempty"`
}

// Names lists the built-in kernels.
func Names() []string {
	return []string{"gaussian", "laplacian", "matern32", "matern52", "polynomial"}
}

// FromSpec returns the kernel that s describes. An unknown name, a parameter out
// of range, and a parameter that the kernel does not have are errors.
func FromSpec(s Spec) (Kernel, error) {
	var k Kernel
	switch s.Name {
	case "gaussian":
		k = Gaussian{s.Sigma}
	case "laplacian":
		k = Laplacian{s.Sigma}
	case "matern32":
		k = Matern32{s.Sigma}
	case "matern52":
		k = Matern52{s.Sigma}
	case "polynomial":
		k = Polynomial{s.Gamma, s.Coef0, s.Degree}
	case "precomputed":
		var err error
		if k, err = precomputed(s.Params); err != nil {
			return nil, err
		}
	default:
		t, ok := registered(s.Name)
		if !ok {
			return nil,
				fmt.Errorf("kernel: unknown kernel %q, want one of %s; a user-defined one has to be registered in "+
					"this program: kernel.Register(%q, …)", s.Name, strings.Join(Names(), ", "), s.Name)
		}
		var err error
		if k, err = decode(t, s.Params); err != nil {
			return nil, fmt.Errorf("kernel: parameters of %q: %w", s.Name, err)
		}
	}
	if err := Validate(k); err != nil {
		return nil, err
	}
	if back, _ := ToSpec(k); back != s {
		return nil, fmt.Errorf("kernel: %s has no such parameter: %+v", s.Name, s)
	}
	return k, nil
}

// ToSpec returns k as data. A user-defined kernel that is not registered is an error.
func ToSpec(k Kernel) (Spec, error) {
	switch k := k.(type) {
	case Gaussian:
		return Spec{Name: "gaussian", Sigma: k.Sigma}, nil
	case Laplacian:
		return Spec{Name: "laplacian", Sigma: k.Sigma}, nil
	case Matern32:
		return Spec{Name: "matern32", Sigma: k.Sigma}, nil
	case Matern52:
		return Spec{Name: "matern52", Sigma: k.Sigma}, nil
	case Polynomial:
		return Spec{Name: "polynomial", Gamma: k.Gamma, Coef0: k.Coef0, Degree: k.Degree}, nil
	case *Precomputed:
		return k.spec()
	case nil:
		return Spec{}, Validate(k)
	}
	if f, ok := k.(Func); ok {
		return Spec{},
			fmt.Errorf("kernel: %v is a Go function and cannot be stored or sent: make it a type with Eval and "+
				"String, and register that (kernel.Register)", f)
	}
	name, ok := nameOf(reflect.TypeOf(k))
	if !ok {
		return Spec{},
			fmt.Errorf("kernel: %v is user-defined and cannot be stored or sent before it is registered: "+
				"kernel.Register(name, %T{…})", k, k)
	}
	p, err := encode(k)
	if err != nil {
		return Spec{}, fmt.Errorf("kernel: %v, registered as %q: %w", k, name, err)
	}
	return Spec{Name: name, Params: p}, nil
}

// Short names the kernel for a reader, its parameters to four significant digits.
func (s Spec) Short() string {
	short := s
	for _, v := range []*float64{&short.Sigma, &short.Gamma, &short.Coef0} {
		*v = outward.Rounded(*v, 4)
	}
	if k, err := FromSpec(short); err == nil {
		return k.String()
	}
	return s.Name
}

// Shorten returns a text that names the kernel, such as that of a feature map, with Short for it.
func (s Spec) Shorten(text string) string {
	k, err := FromSpec(s)
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, k.String(), s.Short())
}
