package engine

import (
	"context"
	"go/token"
	"go/types"
	"maps"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopherdata/gophernotes/imports"
	"github.com/goplus/ixgo"
)

// mainPath is the path of the packages of all units, so that the fields of their types are within reach of each other.
const mainPath = "main"

// newPackage returns a package for a unit. All have the same path, so that the fields and methods of their types are
// within reach of each other, but each its own string, by which the loader tells them apart.
func newPackage() *types.Package { return types.NewPackage(strings.Clone(mainPath), "main") }

// Engine is what cells have declared, and what compiled packages they can import.
type Engine struct {
	Named func(name string) string           // the path of the package that a name means without an import, "" for none
	Find  func(path string) (*Source, error) // finds the source of a package that is not compiled in
	// where the panics of goroutines of cells arrive; somebody must take them
	Panics chan ixgo.PanicError

	mu      sync.Mutex // held but while a cell executes
	fset    *token.FileSet
	base    *ixgo.Context
	loader  *loader
	pkg     *types.Package // of the unit that is checked, and of the fields of all types
	view    view           // what later cells see
	units   map[*types.Package]*unit
	hooks   map[string]any
	sources map[string]*unit
	fresh   []*unit
	swept   int // how many units there may be before they are looked through
	now     atomic.Pointer[turn]
}

// unit is a piece of a cell that was checked: declarations that stand together, or statements.
type unit struct {
	pkg     *types.Package    // nil for imports
	imports map[string]string // by name, as they are behind the unit
	dotted  map[string]types.Object
	src     *source // nil where nothing of it is needed again
	line    int
	lines   []int                    // of the statements; nil for declarations
	names   []declared               // in order
	again   map[string]*types.Var    // earlier variables that it declares again
	vars    map[string]reflect.Value // pointers to variables
	needs   map[*unit]bool
	pkgs    map[*types.Package]bool // compiled packages, and those of the standard library that are sources
	targets map[string]*target      // of its functions, by name
	before  map[string][]*target    // of functions that those of it replace
	run     *ixgo.Interp
}

// New returns an engine. Functions of compiled packages are replaced by hooks, by their full name.
func New(hooks map[string]any) *Engine {
	registerAll()
	e := &Engine{pkg: types.NewPackage(mainPath, "main"), view: view{map[string]types.Object{}, map[string]string{}},
		units: map[*types.Package]*unit{}, hooks: std(), sources: map[string]*unit{},
		Panics: make(chan ixgo.PanicError)}
	maps.Copy(e.hooks, hooks)
	e.hooks["(*sync.WaitGroup).Go"] = func(wg *sync.WaitGroup, f func()) { wg.Go(e.guarded(f)) }
	e.hooks["time.AfterFunc"] = func(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, e.guarded(f)) }
	e.hooks["context.AfterFunc"] = func(ctx context.Context, f func()) func() bool {
		return context.AfterFunc(ctx, e.guarded(f))
	}
	e.hooks["(*sync.Mutex).Unlock"] = func(m *sync.Mutex) {
		held(m.TryLock, m.Unlock, "unlock of unlocked mutex")
		m.Unlock()
	}
	e.hooks["(*sync.RWMutex).Unlock"] = func(m *sync.RWMutex) {
		held(m.TryRLock, m.RUnlock, "Unlock of unlocked RWMutex")
		m.Unlock()
	}
	e.hooks["(*sync.RWMutex).RUnlock"] = func(m *sync.RWMutex) {
		held(m.TryLock, m.Unlock, "RUnlock of unlocked RWMutex")
		m.RUnlock()
	}
	e.base = ixgo.NewContext(mode)
	e.loader = newLoader(e.base)
	e.fset = e.base.FileSet
	at, show := func(step int) { e.turn().at(step) }, func(vs ...any) { e.turn().show(vs) }
	e.Declare(map[string]any{atName: &at, showName: &show})
	return e
}

// held panics where a lock can be taken that is about to be released: the runtime would end the process.
func held(try func() bool, release func(), what string) {
	if try() {
		release()
		panic(ixgo.PlainError("sync: " + what))
	}
}

// turn is the unit that is executed.
type turn struct {
	goid uint64
	at   func(step int) // called before each statement
	show func([]any)    // called with the values of the last expression
}

// turn returns what is executed. A goroutine that was left behind has no turn: another one continues.
func (e *Engine) turn() *turn {
	t := e.now.Load()
	if t.goid != Goid() {
		panic(Halted{})
	}
	return t
}

// guarded is f for a goroutine that compiled code starts: a panic would end the process.
func (e *Engine) guarded(f func()) func() {
	return func() {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			p, ok := r.(ixgo.PanicError)
			if !ok {
				p.Value = r
			}
			e.Panics <- p
			// taken when that has been told, before anybody waits no longer
			e.Panics <- ixgo.PanicError{Value: Halted{}}
		}()
		f()
	}
}

// Declare makes variables known to cells, by pointers to them.
func (e *Engine) Declare(vars map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &unit{pkg: newPackage(), vars: map[string]reflect.Value{}}
	for name, p := range vars {
		v := reflect.ValueOf(p)
		o := types.NewVar(token.NoPos, u.pkg, name, e.typeOf(v.Type().Elem()))
		u.pkg.Scope().Insert(o)
		u.vars[name] = v
		e.view.set(name, o)
	}
	e.units[u.pkg] = u
}

// typeOf returns the type of a compiled one.
func (e *Engine) typeOf(rt reflect.Type) types.Type {
	e.loader.mu.Lock()
	defer e.loader.mu.Unlock()
	return e.loader.ToType(rt)
}

const mode = ixgo.SupportMultipleInterp | ixgo.DisableCustomBuiltin

// context returns ixgo's context for one unit.
func (e *Engine) context() *ixgo.Context {
	c := ixgo.NewContext(mode | ixgo.DisableAutoLoadPatchs)
	c.FileSet, c.Loader, c.RunContext = e.fset, e.loader, context.Background()
	if !results.on() {
		c.SetLeastCallForEnablePool(math.MaxInt32)
	}
	c.SetPanic(func(p *ixgo.PanicInfo) { // as Go says it
		switch err := p.Error.(type) {
		case ixgo.RuntimeError:
			if strings.HasPrefix(string(err), "interface conversion: ") {
				p.Error = ixgo.PlainError(err)
			} else {
				p.Error = ixgo.RuntimeError(strings.TrimPrefix(string(err), "runtime error: "))
			}
		case ixgo.PanicError:
			if err.Value == nil {
				err.Value = new(runtime.PanicNilError)
				p.Error = err
			}
		}
	})
	for name, f := range e.hooks {
		c.RegisterExternal(name, f)
	}
	return c
}

// Packages returns the paths of the packages that cells can import, each with its name. It must not be changed.
var Packages = sync.OnceValue(func() map[string]string {
	out := map[string]string{"math/rand/v2": "rand"}
	for path, p := range imports.Packages {
		out[path] = string(p.Name)
	}
	for _, path := range ixgo.PackageList() {
		if out[path] == "" && !strings.Contains(path, "internal/") && !strings.HasPrefix(path, "github.com/goplus/") &&
			!strings.HasPrefix(path, "syscall") {
			out[path] = path[strings.LastIndexByte(path, '/')+1:]
		}
	}
	return out
})

// Names returns the objects that Declare and cells have declared, and the packages that cells have imported.
func (e *Engine) Names() (objects map[string]types.Object, imported map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.view.names), maps.Clone(e.view.imports)
}

// Variables calls f with each variable that cells know.
func (e *Engine) Variables(f func(name string, v reflect.Value)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, o := range e.view.names {
		if u := e.units[o.Pkg()]; u != nil && u.vars[o.Name()].IsValid() {
			f(name, u.vars[o.Name()].Elem())
		}
	}
}
