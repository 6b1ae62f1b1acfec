package engine

import (
	"go/token"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goplus/ixgo"
	"github.com/goplus/reflectx"
	"github.com/timandy/routine"
	"golang.org/x/tools/go/ssa"
)

// Halted is what a goroutine of a cell that is to stop panics with.
type Halted struct {
	File string // where it was, "" if that is not known
	Line int
}

func (Halted) Error() string { return "the goroutine was stopped" }

// stopping are the goroutines that are to stop at the next turn of a loop or call of a function, by number, and stops is
// how many they are.
var (
	stopping sync.Map
	stops    atomic.Int32
)

// Stop makes a goroutine stop in interpreted code, or lets it go on.
func Stop(goid uint64, stop bool) {
	if !stop {
		if _, stopped := stopping.LoadAndDelete(goid); stopped {
			stops.Add(-1)
		}
	} else if _, stopped := stopping.LoadOrStore(goid, true); !stopped {
		stops.Add(1)
	}
}

// Goid returns the number of the calling goroutine.
func Goid() uint64 { return routine.Goid() }

// adapt changes what ixgo has compiled, as far as the features are there.
func (e *Engine) adapt(u *unit, in *ixgo.Interp) {
	if reports.on() {
		*at[chan ixgo.PanicError](in, goPanics) = e.Panics
	}
	if !funcs.found {
		return
	}
	for _, f := range functions(in) {
		if invoking.on() {
			f.invokes(*at[map[reflect.Type]map[string]*ssa.Function](in, methodSets))
		}
		if rewriting.on() {
			e.calls(u, f)
			f.nils()
		}
		if results.on() && f.ssa.Signature.Results().Len() > 1 {
			// Several results lie in the frame of the call until they are taken. A frame that is used again for
			// another call, in another goroutine, would change them: those of this function are not.
			*at[int32](f.of, used) = math.MinInt32
		}
		if halting.on() {
			f.blocks()
		}
	}
}

// blocks makes a function look whether it is to stop, where it begins and where a loop turns.
func (f function) blocks() {
	starts := *at[[]int](f.of, blocks)
	for _, b := range f.ssa.Blocks {
		if b.Index >= len(starts) {
			break
		}
		head := b.Index == 0
		for _, p := range b.Preds {
			head = head || b.Dominates(p)
		}
		if parallel.on() {
			f.phis(b, f.code[starts[b.Index]:])
		}
		if head {
			poll(f.code, starts[b.Index], position(b))
		}
	}
}

// position returns where a block begins.
func position(b *ssa.BasicBlock) token.Position {
	at := b.Parent().Pos()
	for _, next := range slices.Backward(append([]*ssa.BasicBlock{b}, b.Succs...)) {
		for _, i := range slices.Backward(next.Instrs) {
			if i.Pos().IsValid() {
				at = i.Pos()
			}
		}
	}
	return b.Parent().Prog.Fset.Position(at)
}

// poll puts a look before an instruction.
func poll(code []func(*ixgo.Frame), i int, p token.Position) {
	next := code[i]
	code[i] = func(fr *ixgo.Frame) {
		if stops.Load() > 0 {
			if _, stop := stopping.Load(Goid()); stop {
				panic(ixgo.PanicError{Value: Halted{p.Filename, p.Line}})
			}
		}
		next(fr)
	}
}

// invokes makes calls of methods by an interface find those of types that another unit has made: ixgo takes
// such a type for a compiled one, whose methods it would call in another way. It does the same for compiled types:
// there ixgo keeps the method that it found in a variable of the instruction, which goroutines that execute it share.
func (f function) invokes(msets map[reflect.Type]map[string]*ssa.Function) {
	for i, instr := range f.instructions() {
		call, ok := instr.(*ssa.Call)
		if !ok || !call.Call.IsInvoke() {
			continue
		}
		direct, name, to, recv := f.code[i], call.Call.Method.Name(), f.register(call), f.register(call.Call.Value)
		from := f.places(call.Call.Args)
		f.code[i] = func(fr *ixgo.Frame) {
			stack := stackOf(fr)
			t := reflect.TypeOf(stack[recv])
			if _, own := msets[t]; own || t == nil || t == typeOfType {
				direct(fr)
				return
			}
			args := []reflect.Value{reflect.ValueOf(stack[recv])}
			m, ok := reflectx.MethodByName(t, name)
			// package reflectx does not find a method of the value that is not exported
			if t.Kind() == reflect.Pointer {
				if of, found := reflectx.MethodByName(t.Elem(), name); found && !args[0].IsNil() {
					m, ok, args[0] = of, true, args[0].Elem()
				}
			}
			if !ok {
				direct(fr)
				return
			}
			stack[to] = called(m.Func, args, stack, from)
		}
	}
}

// typeOfType is the type of the values of reflect.Type; some of their methods are ixgo's.
var typeOfType = reflect.TypeOf(reflect.TypeFor[int]())

// called calls a function, with arguments and those behind them in places of a stack, and returns its results as ixgo
// keeps them.
func called(f reflect.Value, args []reflect.Value, stack []any, from []uint32) any {
	for _, r := range from {
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
	var all ixgo.Tuple
	for _, v := range out {
		all = append(all, v.Interface())
	}
	return all
}

// phis makes the phi nodes of a block take their values at once, where one of them takes that of another: ixgo
// executes them one after the other, which is wrong for a, b = b, a in a loop.
func (f function) phis(b *ssa.BasicBlock, code []func(*ixgo.Frame)) {
	var all []*ssa.Phi
	own := map[ssa.Value]bool{}
	for _, i := range b.Instrs {
		p, ok := i.(*ssa.Phi)
		if !ok {
			break
		}
		all, own[p] = append(all, p), true
	}
	hazard := false
	for _, p := range all {
		for _, e := range p.Edges {
			hazard = hazard || own[e] && e != p
		}
	}
	if !hazard {
		return
	}
	to, from := make([]uint32, len(all)), map[int][]uint32{}
	for j, p := range all {
		to[j] = f.register(p)
		code[j] = func(*ixgo.Frame) {}
	}
	for k := len(b.Preds) - 1; k >= 0; k-- {
		var src []uint32
		for _, p := range all {
			src = append(src, f.register(p.Edges[k]))
		}
		from[b.Preds[k].Index] = src
	}
	code[0] = func(fr *ixgo.Frame) {
		stack := stackOf(fr)
		var room [8]any
		values := room[:0]
		for _, r := range from[*at[int](fr, pred)] {
			values = append(values, stack[r])
		}
		for j, v := range values {
			stack[to[j]] = v
		}
	}
}
