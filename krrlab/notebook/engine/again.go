package engine

import (
	"go/types"
	"reflect"
	"sync/atomic"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// target is the function that calls of a function of a cell go to: nil for itself, else the last one of the same type
// that a later cell declares by its name.
type target struct{ atomic.Pointer[reflect.Value] }

// target returns that of a function that a unit, which need not be known yet, or an earlier one declares.
func (e *Engine) target(u *unit, f *types.Func) *target {
	if f.Pkg() != u.pkg {
		u = e.units[f.Pkg()]
	}
	if u == nil {
		return nil
	}
	if u.targets == nil {
		u.targets = map[string]*target{}
	}
	if u.targets[f.Name()] == nil {
		u.targets[f.Name()] = &target{}
	}
	return u.targets[f.Name()]
}

// replace makes earlier functions call a function instead of that of the same name and type: units that are compiled
// again by what go/types notes of their names, and code that is there already, closures and methods say, by the target.
func (e *Engine) replace(u *unit, f *types.Func) {
	old, ok := e.view.names[f.Name()].(*types.Func)
	if !ok || old == f || !types.Identical(old.Type(), f.Type()) {
		return
	}
	was := e.units[old.Pkg()]
	if was == nil || was.src == nil || was.src.at != nil {
		return
	}
	if f.Signature().TypeParams() == nil {
		fn, ok := u.run.GetFunc(f.Name())
		if !ok {
			return
		}
		if u.before == nil {
			u.before = map[string][]*target{}
		}
		v := reflect.ValueOf(fn)
		u.before[f.Name()] = append(was.before[f.Name()], e.target(was, old))
		for _, t := range u.before[f.Name()] {
			t.Store(&v)
		}
	}
	for _, v := range e.units {
		if v.src == nil || v.src.at != nil {
			continue
		}
		for id, o := range v.src.info.Uses {
			if o == old {
				v.src.info.Uses[id] = f
				v.needs[u] = true
			}
		}
	}
}

// calls lets the calls of functions of cells go to their targets. A function continues to call itself: code that keeps
// it as a value, to call it in a new one of the same name, wants the earlier one.
func (e *Engine) calls(u *unit, fn function) {
	within := fn.ssa
	for within.Parent() != nil {
		within = within.Parent()
	}
	for i, instr := range fn.instructions() {
		call, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		callee, ok := call.Call.Value.(*ssa.Function)
		if !ok || callee == within || callee.Origin() != nil {
			continue
		}
		f, ok := callee.Object().(*types.Func)
		if !ok || f.Signature().Recv() != nil {
			continue
		}
		t := e.target(u, f)
		if t == nil {
			continue
		}
		direct, to, from := fn.code[i], fn.register(call), fn.places(call.Call.Args)
		fn.code[i] = func(fr *ixgo.Frame) {
			f := t.Load()
			if f == nil {
				direct(fr)
				return
			}
			stack := stackOf(fr)
			if v := called(*f, nil, stack, from); f.Type().NumOut() > 0 {
				stack[to] = v
			}
		}
	}
}
