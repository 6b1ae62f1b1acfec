package engine

import (
	"go/types"
	"reflect"
	"sync/atomic"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// redirect replaces a function of a cell after a later cell has declared a function of the same name and type. It
// points to the latest such function, or is nil if there is none.
type redirect struct{ atomic.Pointer[reflect.Value] }

// redirectFor returns the redirect of a function that the unit u (a separately compiled piece of a cell, which may not
// be registered yet) or an earlier unit declares. It returns nil if the unit is unknown.
func (e *Engine) redirectFor(u *unit, fn *types.Func) *redirect {
	if fn.Pkg() != u.pkg {
		u = e.units[fn.Pkg()]
	}
	if u == nil {
		return nil
	}
	if u.redirects == nil {
		u.redirects = map[string]*redirect{}
	}
	if u.redirects[fn.Name()] == nil {
		u.redirects[fn.Name()] = &redirect{}
	}
	return u.redirects[fn.Name()]
}

// replaceFunction makes earlier code call replacement, a function of unit u, instead of the visible function of the
// same name and type, if there is one. Units that are compiled again refer to replacement because their type
// information is updated. Code that is already compiled, such as closures and methods, follows the redirect.
func (e *Engine) replaceFunction(u *unit, replacement *types.Func) {
	old, ok := e.visible.names[replacement.Name()].(*types.Func)
	if !ok || old == replacement || !types.Identical(old.Type(), replacement.Type()) {
		return
	}
	oldUnit := e.units[old.Pkg()]
	if oldUnit == nil || oldUnit.src == nil || oldUnit.src.decls != nil {
		return
	}
	if replacement.Signature().TypeParams() == nil {
		compiledFunc, ok := u.interp.GetFunc(replacement.Name())
		if !ok {
			return
		}
		if u.supersededRedirects == nil {
			u.supersededRedirects = map[string][]*redirect{}
		}
		funcValue := reflect.ValueOf(compiledFunc)
		u.supersededRedirects[replacement.Name()] = append(oldUnit.supersededRedirects[replacement.Name()],
			e.redirectFor(oldUnit, old))
		for _, redirect := range u.supersededRedirects[replacement.Name()] {
			redirect.Store(&funcValue)
		}
	}
	for _, user := range e.units {
		if user.src == nil || user.src.decls != nil {
			continue
		}
		for ident, obj := range user.src.info.Uses {
			if obj == old {
				user.src.info.Uses[ident] = replacement
				user.dependencies[u] = true
			}
		}
	}
}

// redirectCalls makes the calls in fn follow the redirects of the called functions. Recursive calls are excluded: a
// function may be stored as a value so that a new function of the same name can call it, and it must still call its own
// earlier version.
func (e *Engine) redirectCalls(u *unit, fn function) {
	outermost := fn.ssa
	for outermost.Parent() != nil {
		outermost = outermost.Parent()
	}
	for i, instr := range fn.instructions() {
		call, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		callee, ok := call.Call.Value.(*ssa.Function)
		if !ok || callee == outermost || callee.Origin() != nil {
			continue
		}
		calleeFunc, ok := callee.Object().(*types.Func)
		if !ok || calleeFunc.Signature().Recv() != nil {
			continue
		}
		redirect := e.redirectFor(u, calleeFunc)
		if redirect == nil {
			continue
		}
		original, resultReg, argRegs := fn.code[i], fn.register(call), fn.registersOf(call.Call.Args)
		fn.code[i] = func(frame *ixgo.Frame) {
			newFunc := redirect.Load()
			if newFunc == nil {
				original(frame)
				return
			}
			stack := stackOf(frame)
			if v := callWithRegisters(*newFunc, nil, stack, argRegs); newFunc.Type().NumOut() > 0 {
				stack[resultReg] = v
			}
		}
	}
}
