package engine

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// ixgo finds the panic that recover ends one call above. A deferred function that is a value of another unit is called in the
// interpreter of that one, which knows nothing of the caller, and a method value by a function around it: for these the
// frame that defers is kept here.

// deferring are the frames that call a deferred function in another interpreter, the last call last, by goroutine.
var deferring = struct {
	sync.Mutex
	frames map[uint64][]*ixgo.Frame
}{frames: map[uint64][]*ixgo.Frame{}}

// through calls f, which calls what a frame has deferred.
func through(fr *ixgo.Frame, f func()) {
	id := Goid()
	set := func(list []*ixgo.Frame) {
		if deferring.frames[id] = list; len(list) == 0 {
			delete(deferring.frames, id)
		}
	}
	deferring.Lock()
	n := len(deferring.frames[id])
	set(append(deferring.frames[id], fr))
	deferring.Unlock()
	defer func() {
		deferring.Lock()
		set(deferring.frames[id][:n])
		deferring.Unlock()
	}()
	f()
}

// deferred returns the frame that calls the function of a frame as a deferred one, nil if none does.
func deferred(fr *ixgo.Frame) *ixgo.Frame {
	up := *at[*ixgo.Frame](fr, frame.caller)
	for up != nil && wrapper(up) {
		up = *at[*ixgo.Frame](up, frame.caller)
	}
	if up == nil || *at[unsafe.Pointer](up, frame.pfn) != nil {
		return up
	}
	deferring.Lock() // called by reflection
	defer deferring.Unlock()
	if list := deferring.frames[Goid()]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// wrapper reports whether the function of a frame is one that ssa has put around a method.
func wrapper(fr *ixgo.Frame) bool {
	p := *at[unsafe.Pointer](fr, frame.pfn)
	return p != nil && (*(**ssa.Function)(unsafe.Add(p, frame.fn))).Synthetic != ""
}

// panicking returns the panic that runs through a frame, nil if there is none.
func panicking(fr *ixgo.Frame) unsafe.Pointer {
	p := *at[unsafe.Pointer](fr, frame.panicked)
	if p == nil || *(*bool)(unsafe.Add(p, frame.recovered)) {
		return nil
	}
	return p
}

// recovers makes recover find panics of frames of other interpreters.
func recovers(pfn reflect.Value, code []func(*ixgo.Frame)) {
	index := *(*map[ssa.Value]uint32)(field(pfn, "index", reflect.TypeFor[map[ssa.Value]uint32]()))
	for i, instr := range *(*[]ssa.Instruction)(field(pfn, "ssaInstrs", reflect.TypeFor[[]ssa.Instruction]())) {
		direct := code[i]
		switch instr := instr.(type) {
		case *ssa.Call:
			if b, ok := instr.Call.Value.(*ssa.Builtin); !ok || b.Name() != "recover" {
				continue
			}
			to, used := index[instr]
			code[i] = func(fr *ixgo.Frame) {
				direct(fr)
				from := deferred(fr)
				if from == nil || panicking(fr) != nil {
					return
				}
				p := panicking(from)
				if p == nil { // none, or it was found
					return
				}
				*(*bool)(unsafe.Add(p, frame.recovered)) = true
				v := *(*any)(unsafe.Add(p, frame.arg))
				if e, ok := v.(ixgo.PanicError); ok {
					v = e.Value
				}
				if used {
					stackOf(fr)[to&0xffffff] = v
				}
			}
		case *ssa.Defer:
			code[i] = func(fr *ixgo.Frame) {
				direct(fr)
				d := *at[unsafe.Pointer](fr, frame.defers)
				if instr.DeferStack != nil {
					d = reflect.ValueOf(stackOf(fr)[index[instr.DeferStack]&0xffffff]).Elem().UnsafePointer()
				}
				fn := (*any)(unsafe.Add(d, frame.deferFn))
				f := reflect.ValueOf(*fn)
				if f.Kind() != reflect.Func || f.IsNil() {
					return
				}
				*fn = reflect.MakeFunc(f.Type(), func(args []reflect.Value) (out []reflect.Value) {
					through(fr, func() {
						if f.Type().IsVariadic() {
							out = f.CallSlice(args)
						} else {
							out = f.Call(args)
						}
					})
					return out
				}).Interface()
			}
		}
	}
}
