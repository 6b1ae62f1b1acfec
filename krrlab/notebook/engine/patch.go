package engine

import (
	"math"
	"reflect"

	"github.com/goplus/ixgo"
	"github.com/goplus/reflectx"
	"golang.org/x/tools/go/ssa"
)

// patchCode modifies the code that ixgo has compiled for a unit (a separately compiled piece of a cell), as far as the
// required features are available.
func (e *Engine) patchCode(u *unit, interp *ixgo.Interp) {
	if panicFeature.available() {
		*fieldAddr[chan ixgo.PanicError](interp, goPanicsField) = e.Panics
	}
	if !funcsField.exists {
		return
	}
	for _, f := range compiledFunctions(interp) {
		if invokeFeature.available() {
			f.fixInvokes(*fieldAddr[map[reflect.Type]map[string]*ssa.Function](interp, methodSetsField))
		}
		if redirectFeature.available() {
			e.redirectCalls(u, f)
			f.fixNilMaps()
		}
		if resultFeature.available() && f.ssa.Signature.Results().Len() > 1 {
			// Several results stay in the frame of the call until the caller has read them. If another goroutine
			// reused the frame for a call, it would overwrite them. So frames of this function are never reused.
			*fieldAddr[int32](f.object, usedField) = math.MinInt32
		}
		if stopFeature.available() {
			f.instrumentBlocks()
		}
	}
}

// fixInvokes corrects method calls through interfaces. If another unit created the dynamic type, ixgo treats the type
// as a compiled type and calls its methods in the wrong way; the corrected instruction finds them with package
// reflectx. The correction also applies to compiled types: for these, ixgo caches the method in a variable of the
// instruction, which is a data race between goroutines.
func (f function) fixInvokes(methodSets map[reflect.Type]map[string]*ssa.Function) {
	for i, instr := range f.instructions() {
		call, ok := instr.(*ssa.Call)
		if !ok || !call.Call.IsInvoke() {
			continue
		}
		original, name := f.code[i], call.Call.Method.Name()
		resultReg, recvReg, argRegs := f.register(call), f.register(call.Call.Value), f.registersOf(call.Call.Args)
		f.code[i] = func(frame *ixgo.Frame) {
			stack := stackOf(frame)
			dynamicType := reflect.TypeOf(stack[recvReg])
			if _, inUnit := methodSets[dynamicType]; inUnit || dynamicType == nil || dynamicType == typeOfType {
				original(frame)
				return
			}
			args := []reflect.Value{reflect.ValueOf(stack[recvReg])}
			method, ok := reflectx.MethodByName(dynamicType, name)
			// For a pointer, package reflectx does not find unexported methods with a value receiver.
			if dynamicType.Kind() == reflect.Pointer {
				if elemMethod, hasElem := reflectx.MethodByName(dynamicType.Elem(), name); hasElem && !args[0].IsNil() {
					method, ok, args[0] = elemMethod, true, args[0].Elem()
				}
			}
			if !ok {
				original(frame)
				return
			}
			stack[resultReg] = callWithRegisters(method.Func, args, stack, argRegs)
		}
	}
}

// typeOfType is the dynamic type of a reflect.Type. ixgo replaces some of its methods.
var typeOfType = reflect.TypeOf(reflect.TypeFor[int]())

// callWithRegisters calls a function and returns its results in the form that ixgo uses: nil, a single value, or a
// Tuple. The arguments are args, followed by the values in the given registers of a stack.
func callWithRegisters(f reflect.Value, args []reflect.Value, stack []any, registers []uint32) any {
	for _, r := range registers {
		args = append(args, valueAs(stack[r], f.Type().In(len(args))))
	}
	var out []reflect.Value
	if f.Type().IsVariadic() {
		out = f.CallSlice(args)
	} else {
		out = f.Call(args)
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0].Interface()
	}
	var tuple ixgo.Tuple
	for _, v := range out {
		tuple = append(tuple, v.Interface())
	}
	return tuple
}

// fixPhis makes the phi nodes of a block assign their values simultaneously, if one of them reads another. ixgo
// executes phi nodes one after the other, which is wrong for a, b = b, a in a loop. code is the code from the start of
// the block on, which begins with an instruction for each phi node.
func (f function) fixPhis(block *ssa.BasicBlock, code []func(*ixgo.Frame)) {
	var nodes []*ssa.Phi
	inBlock := map[ssa.Value]bool{}
	for _, instr := range block.Instrs {
		phi, ok := instr.(*ssa.Phi)
		if !ok {
			break
		}
		nodes, inBlock[phi] = append(nodes, phi), true
	}
	readsOtherPhi := false
	for _, phi := range nodes {
		for _, edge := range phi.Edges {
			readsOtherPhi = readsOtherPhi || inBlock[edge] && edge != phi
		}
	}
	if !readsOtherPhi {
		return
	}
	resultRegs, edgeRegs := make([]uint32, len(nodes)), map[int][]uint32{}
	for j, phi := range nodes {
		resultRegs[j] = f.register(phi)
		code[j] = func(*ixgo.Frame) {}
	}
	// The loop runs backward, so that the first edge is used if a predecessor occurs twice.
	for pred := len(block.Preds) - 1; pred >= 0; pred-- {
		var sourceRegs []uint32
		for _, phi := range nodes {
			sourceRegs = append(sourceRegs, f.register(phi.Edges[pred]))
		}
		edgeRegs[block.Preds[pred].Index] = sourceRegs
	}
	code[0] = func(frame *ixgo.Frame) {
		stack := stackOf(frame)
		var buffer [8]any // avoids an allocation for up to 8 nodes
		values := buffer[:0]
		for _, r := range edgeRegs[*fieldAddr[int](frame, predField)] {
			values = append(values, stack[r])
		}
		for j, v := range values {
			stack[resultRegs[j]] = v
		}
	}
}
