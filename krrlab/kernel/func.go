package kernel

import (
	"fmt"
)

// Func is a user-defined kernel k(x, z) = F(x, z) without further known properties. It is evaluated pair by pair.
type Func struct {
	Name string // result of String; empty stands for "func"
	F    func(x, z []float64) float64
}

// Eval implements Kernel.
func (k Func) Eval(x, z []float64) float64 { return k.F(x, z) }

func (k Func) String() string {
	if k.Name == "" {
		return "func"
	}
	return k.Name
}

// Validate returns an error if F is nil.
func (k Func) Validate() error {
	if k.F == nil {
		return fmt.Errorf("kernel: %v has no function F", k)
	}
	return nil
}
