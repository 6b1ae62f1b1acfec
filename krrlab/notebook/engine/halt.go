package engine

import (
	"go/token"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/goplus/ixgo"
	"github.com/goplus/reflectx"
	"github.com/timandy/routine"
	"golang.org/x/tools/go/ssa"
)

// Halted is what a goroutine of a cell panics with that is to stop.
type Halted struct {
	File string // where it was, "" if that is not known
	Line int
}

func (Halted) Error() string { return "the goroutine was stopped" }

// stopping are the goroutines that are to stop at the next turn of a loop or call of a function.
var (
	stopping atomic.Pointer[map[uint64]bool]
	stopLock sync.Mutex
)

// Stop makes a goroutine stop in interpreted code, or lets it go on.
func Stop(goid uint64, stop bool) {
	stopLock.Lock()
	defer stopLock.Unlock()
	m := map[uint64]bool{}
	if old := stopping.Load(); old != nil {
		maps.Copy(m, *old)
	}
	if stop {
		m[goid] = true
	} else {
		delete(m, goid)
	}
	if len(m) == 0 {
		stopping.Store(nil)
	} else {
		stopping.Store(&m)
	}
}

// Goid returns the number of the calling goroutine.
func Goid() uint64 { return routine.Goid() }

// polls makes functions look whether they are to stop, where they begin and where a loop turns.
func (e *Engine) polls(u *unit, in *ixgo.Interp) {
	funcs := reflect.ValueOf(in).Elem().FieldByName("funcs")
	for it := funcs.MapRange(); it.Next(); {
		fn := (*ssa.Function)(it.Key().UnsafePointer())
		pfn := it.Value().Elem()
		code := *(*[]func(*ixgo.Frame))(field(pfn, "Instrs", reflect.TypeFor[[]func(*ixgo.Frame)]()))
		invokes(in, pfn, code)
		e.calls(u, fn, pfn, code)
		nils(pfn, code)
		recovers(pfn, code)
		at := *(*[]int)(field(pfn, "Blocks", reflect.TypeFor[[]int]()))
		if fn.Signature.Results().Len() > 1 {
			// Several results lie in the frame of the call until they are taken. A frame that is used again for
			// another call, in another goroutine, would change them: those of this function are not.
			*(*int32)(field(pfn, "used", reflect.TypeFor[int32]())) = math.MinInt32
		}
		for _, b := range fn.Blocks {
			if b.Index >= len(at) {
				break
			}
			head := b.Index == 0
			for _, p := range b.Preds {
				head = head || b.Dominates(p)
			}
			phis(pfn, b, code[at[b.Index]:])
			if head {
				poll(code, at[b.Index], position(b))
			}
		}
	}
}

// position returns where a block begins.
func position(b *ssa.BasicBlock) (p token.Position) {
	for _, i := range b.Instrs {
		if i.Pos().IsValid() {
			return b.Parent().Prog.Fset.Position(i.Pos())
		}
	}
	for _, next := range b.Succs {
		for _, i := range next.Instrs {
			if i.Pos().IsValid() {
				return b.Parent().Prog.Fset.Position(i.Pos())
			}
		}
	}
	return b.Parent().Prog.Fset.Position(b.Parent().Pos())
}

// poll puts a look before an instruction.
func poll(code []func(*ixgo.Frame), i int, p token.Position) {
	next := code[i]
	code[i] = func(fr *ixgo.Frame) {
		if m := stopping.Load(); m != nil && (*m)[routine.Goid()] {
			panic(ixgo.PanicError{Value: Halted{p.Filename, p.Line}})
		}
		next(fr)
	}
}

// field returns the address of a field of a struct of ixgo's.
func field(v reflect.Value, name string, want reflect.Type) unsafe.Pointer {
	f := v.FieldByName(name)
	if !f.IsValid() || f.Type() != want {
		panic("engine: ixgo has no " + name + " of type " + want.String() + ": another version")
	}
	return unsafe.Pointer(f.UnsafeAddr())
}

// invokes makes calls of methods by an interface find those of types that another unit has made: ixgo takes
// such a type for a compiled one, whose methods it would call in another way. It does the same for compiled types: there
// ixgo keeps the method that it found in a variable of the instruction, which goroutines that execute it share.
func invokes(in *ixgo.Interp, pfn reflect.Value, code []func(*ixgo.Frame)) {
	msets := *private[map[reflect.Type]map[string]*ssa.Function](in, "msets")
	index := *(*map[ssa.Value]uint32)(field(pfn, "index", reflect.TypeFor[map[ssa.Value]uint32]()))
	register := func(v ssa.Value) uint32 { return index[v] & 0xffffff }
	for i, instr := range *(*[]ssa.Instruction)(field(pfn, "ssaInstrs", reflect.TypeFor[[]ssa.Instruction]())) {
		call, ok := instr.(*ssa.Call)
		if !ok || !call.Call.IsInvoke() {
			continue
		}
		direct, name, to, recv := code[i], call.Call.Method.Name(), register(call), register(call.Call.Value)
		var from []uint32
		for _, a := range call.Call.Args {
			from = append(from, register(a))
		}
		code[i] = func(fr *ixgo.Frame) {
			stack := *(*[]any)(unsafe.Add(unsafe.Pointer(fr), frame.stack))
			t := reflect.TypeOf(stack[recv])
			if _, own := msets[t]; own || t == nil || t == typeOfType {
				direct(fr)
				return
			}
			args := []reflect.Value{reflect.ValueOf(stack[recv])}
			find, cell := t.MethodByName, ofCell(t)
			if cell {
				find = func(name string) (reflect.Method, bool) { return reflectx.MethodByName(t, name) }
			}
			m, ok := find(name)
			if cell && t.Kind() == reflect.Pointer { // package reflectx does not find a method of the value that is not exported
				if of, found := reflectx.MethodByName(t.Elem(), name); found && !args[0].IsNil() {
					m, ok, args[0] = of, true, args[0].Elem()
				}
			}
			if !ok {
				direct(fr)
				return
			}
			for j, r := range from {
				v := reflect.ValueOf(stack[r])
				if !v.IsValid() {
					v = reflect.Zero(m.Type.In(j + 1))
				}
				args = append(args, v)
			}
			stack[to] = called(m.Func, args)
		}
	}
}

// typeOfType is the type of the values of reflect.Type; some of their methods are ixgo's.
var typeOfType = reflect.TypeOf(reflect.TypeFor[int]())

// called calls a function and returns its results as ixgo keeps them.
func called(f reflect.Value, args []reflect.Value) any {
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

// ofCell reports whether a type has methods that are interpreted: package reflectx marks such types by a bit that
// the runtime does not use.
func ofCell(t reflect.Type) bool {
	const flags, mark = 2*unsafe.Sizeof(uintptr(0)) + 4, 1 << 7
	data := (*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1]
	return *(*uint8)(unsafe.Add(data, flags))&mark != 0
}

// frame are the places of fields of ixgo's frame of a call, and of what it points to.
var frame = struct{ stack, pred, caller, pfn, fn, panicked, arg, recovered, defers, deferFn uintptr }{
	stack: offset("stack", "[]interface {}"), pred: offset("pred", "int"), caller: offset("caller", "*ixgo.frame"),
	pfn: offset("pfn", "*ixgo.function"), fn: offset("pfn.Fn", "*ssa.Function"),
	panicked: offset("_panic", "*ixgo._panic"), arg: offset("_panic.arg", "interface {}"), recovered: offset("_panic.recovered", "bool"),
	defers: offset("_defer", "*ixgo._defer"), deferFn: offset("_defer.fn", "interface {}"),
}

// at returns the address of a field of a frame.
func at[T any](fr *ixgo.Frame, offset uintptr) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(fr), offset))
}

// offset returns the place of a field of ixgo's frame, or of what a field of it points to.
func offset(path, want string) uintptr {
	t, name := reflect.TypeFor[ixgo.Frame](), path
	if of, in, ok := strings.Cut(path, "."); ok {
		f, _ := t.FieldByName(of)
		t, name = f.Type.Elem(), in
	}
	f, ok := t.FieldByName(name)
	if !ok || f.Type.String() != want {
		panic("engine: ixgo's frame has no " + path + " of type " + want + ": another version")
	}
	return f.Offset
}

// phis makes the phi nodes of a block take their values at once, where one of them takes that of another: ixgo
// executes them one after the other, which is wrong for a, b = b, a in a loop.
func phis(pfn reflect.Value, b *ssa.BasicBlock, code []func(*ixgo.Frame)) {
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
	index := *(*map[ssa.Value]uint32)(field(pfn, "index", reflect.TypeFor[map[ssa.Value]uint32]()))
	register := func(v ssa.Value) uint32 { return index[v] & 0xffffff }
	to, from := make([]uint32, len(all)), map[int][]uint32{}
	for j, p := range all {
		to[j] = register(p)
		code[j] = func(*ixgo.Frame) {}
	}
	for k := len(b.Preds) - 1; k >= 0; k-- {
		var src []uint32
		for _, p := range all {
			src = append(src, register(p.Edges[k]))
		}
		from[b.Preds[k].Index] = src
	}
	code[0] = func(fr *ixgo.Frame) {
		stack := *(*[]any)(unsafe.Add(unsafe.Pointer(fr), frame.stack))
		var room [8]any
		values := room[:0]
		for _, r := range from[*(*int)(unsafe.Add(unsafe.Pointer(fr), frame.pred))] {
			values = append(values, stack[r])
		}
		for j, v := range values {
			stack[to[j]] = v
		}
	}
}
