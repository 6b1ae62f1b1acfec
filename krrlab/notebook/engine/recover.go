package engine

import (
	"reflect"
	"sync"

	"github.com/goplus/ixgo"
	"golang.org/x/tools/go/ssa"
)

// ixgo finds the panic that recover ends one call above. A deferred function that is a value of another unit is called
// in the interpreter of that one, which knows nothing of the caller, and a method value by a function around it: for
// these the frame that defers is kept here.

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

// deferrer returns the frame that calls the function of a frame as a deferred one, nil if none does.
func deferrer(fr *ixgo.Frame) *ixgo.Frame {
	up := *at[*ixgo.Frame](fr, caller)
	for up != nil && wrapper(up) {
		up = *at[*ixgo.Frame](up, caller)
	}
	if up == nil || *at[*byte](up, callee) != nil {
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
	p := *at[*byte](fr, callee)
	return p != nil && (*at[*ssa.Function](p, calleeSSA)).Synthetic != ""
}

// panicking returns the panic that runs through a frame, nil if there is none.
func panicking(fr *ixgo.Frame) *byte {
	p := *at[*byte](fr, panicked)
	if p == nil || *at[bool](p, panicEnds) {
		return nil
	}
	return p
}

// recovers makes recover find panics of frames of other interpreters.
func (f function) recovers() {
	for i, instr := range f.instructions() {
		direct := f.code[i]
		switch instr := instr.(type) {
		case *ssa.Call:
			if b, ok := instr.Call.Value.(*ssa.Builtin); !ok || b.Name() != "recover" {
				continue
			}
			to, used := (*at[map[ssa.Value]uint32](f.of, registers))[instr]
			f.code[i] = func(fr *ixgo.Frame) {
				direct(fr)
				from := deferrer(fr)
				if from == nil || panicking(fr) != nil {
					return
				}
				p := panicking(from)
				if p == nil { // none, or it was found
					return
				}
				*at[bool](p, panicEnds) = true
				v := *at[any](p, panicArg)
				if e, ok := v.(ixgo.PanicError); ok {
					v = e.Value
				}
				if used {
					stackOf(fr)[to&0xffffff] = v
				}
			}
		case *ssa.Defer:
			f.code[i] = func(fr *ixgo.Frame) {
				direct(fr)
				d := *at[*byte](fr, defers)
				if instr.DeferStack != nil {
					d = (*byte)(reflect.ValueOf(stackOf(fr)[f.register(instr.DeferStack)]).Elem().UnsafePointer())
				}
				fn := at[any](d, deferFunc)
				g := reflect.ValueOf(*fn)
				if g.Kind() != reflect.Func || g.IsNil() {
					return
				}
				*fn = reflect.MakeFunc(g.Type(), func(args []reflect.Value) (out []reflect.Value) {
					through(fr, func() {
						if g.Type().IsVariadic() {
							out = g.CallSlice(args)
						} else {
							out = g.Call(args)
						}
					})
					return out
				}).Interface()
			}
		}
	}
}
