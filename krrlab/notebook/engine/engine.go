package engine

import (
	"context"
	"go/token"
	"go/types"
	"maps"
	"math"
	gopath "path"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopherdata/gophernotes/imports"
	"github.com/goplus/ixgo"
)

// mainPath is the import path of the packages of all units, the separately compiled pieces of cells. They share one
// path so that unexported fields and methods of their types are accessible from every unit.
const mainPath = "main"

// isDeclaredByCell reports whether an object is declared in a cell.
func isDeclaredByCell(obj types.Object) bool { return obj.Pkg() != nil && obj.Pkg().Path() == mainPath }

// newPackage returns a package for a unit. All such packages have the path mainPath, which makes unexported fields and
// methods of their types accessible from each other. Each has its own copy of the string, because the loader identifies
// a unit by the address of its path.
func newPackage() *types.Package { return types.NewPackage(strings.Clone(mainPath), "main") }

// Engine holds the declarations of all cells executed so far and the packages that cells can import.
type Engine struct {
	// ImplicitImport returns the path of the package that an unimported name stands for, or "" if there is none.
	ImplicitImport func(name string) string
	// FindSource finds the source of a package that is not compiled into the program.
	FindSource func(path string) (*Source, error)
	// Panics delivers panics of goroutines that cells or compiled code started. It is unbuffered, so a receiver is
	// needed.
	Panics chan ixgo.PanicError

	mu             sync.Mutex // guards the fields below; not held while a cell executes
	fset           *token.FileSet
	loader         *loader                   // imports compiled packages
	pkg            *types.Package            // package in which every unit is type-checked (see detachPackage)
	visible        namespace                 // names visible to later cells
	units          map[*types.Package]*unit  // units whose declarations are still in use
	hooks          map[string]any            // replacements for compiled functions, by full name
	sourceUnits    map[string]*unit          // units of interpreted packages, by import path
	uninitialized  []*unit                   // interpreted packages not initialized yet
	sweepThreshold int                       // number of units above which unused ones are removed
	current        atomic.Pointer[execution] // the unit being executed
}

// set is a set. The map is true for its members.
type set[T comparable] map[T]bool

// unit is one separately compiled piece of a cell: adjacent declarations, a sequence of statements, or imports. A whole
// interpreted package is a unit, too.
type unit struct {
	pkg                 *types.Package           // nil for imports
	imports             map[string]string        // paths by name, including earlier imports; set for imports only
	dotImported         map[string]types.Object  // objects imported with a dot, by name
	src                 *syntax                  // nil once the syntax is no longer needed
	line                int                      // line of the first declaration
	lines               []int                    // line of each statement; nil for declarations
	declaredNames       []declaredName           // names that the unit declares, in order
	redeclared          map[string]*types.Var    // earlier variables that the unit declares again with the same type
	vars                map[string]reflect.Value // pointers to the variables of the unit
	dependencies        set[*unit]               // units whose objects or types the unit uses
	packages            set[*types.Package]      // compiled or standard-library packages the unit uses
	redirects           map[string]*redirect     // redirects of the functions of the unit, by name
	supersededRedirects map[string][]*redirect   // redirects of the earlier functions that it replaces, by name
	interp              *ixgo.Interp             // nil unless the unit is being executed
}

// New returns an engine. hooks replaces functions of compiled packages, given by their full names, with other functions
// of the same type.
func New(hooks map[string]any) *Engine {
	registerAll()
	e := &Engine{pkg: types.NewPackage(mainPath, "main"), units: map[*types.Package]*unit{}, hooks: runtimeHooks(),
		visible:     namespace{map[string]types.Object{}, map[string]string{}},
		sourceUnits: map[string]*unit{}, Panics: make(chan ixgo.PanicError)}
	maps.Copy(e.hooks, hooks)
	e.hooks["(*sync.WaitGroup).Go"] = func(wg *sync.WaitGroup, f func()) { wg.Go(e.reportPanics(f)) }
	e.hooks["time.AfterFunc"] = func(d time.Duration, f func()) *time.Timer {
		return time.AfterFunc(d, e.reportPanics(f))
	}
	e.hooks["context.AfterFunc"] = func(ctx context.Context, f func()) func() bool {
		return context.AfterFunc(ctx, e.reportPanics(f))
	}
	e.hooks["(*sync.Mutex).Unlock"] = func(m *sync.Mutex) {
		checkLocked(m.TryLock, m.Unlock, "unlock of unlocked mutex")
		m.Unlock()
	}
	e.hooks["(*sync.RWMutex).Unlock"] = func(m *sync.RWMutex) {
		checkLocked(m.TryRLock, m.RUnlock, "Unlock of unlocked RWMutex")
		m.Unlock()
	}
	e.hooks["(*sync.RWMutex).RUnlock"] = func(m *sync.RWMutex) {
		checkLocked(m.TryLock, m.Unlock, "RUnlock of unlocked RWMutex")
		m.RUnlock()
	}
	e.loader = newLoader()
	e.fset = e.loader.base.FileSet
	onStep := func(step int) { e.currentExecution().beforeStep(step) }
	onShow := func(values ...any) { e.currentExecution().show(values) }
	e.Declare(map[string]any{stepFunc: &onStep, showFunc: &onShow})
	return e
}

// checkLocked panics if the lock that is about to be released is not locked. Without this check, the Go runtime would
// end the process with a fatal error. tryLock acquires the lock if it is free, in a mode that its holder excludes, and
// unlock releases it; msg completes the panic message.
func checkLocked(tryLock func() bool, unlock func(), msg string) {
	if tryLock() {
		unlock()
		panic(ixgo.PlainError("sync: " + msg))
	}
}

// execution is the run of one unit.
type execution struct {
	goid       uint64         // goroutine that executes the unit
	beforeStep func(step int) // called before each statement, with its index
	show       func([]any)    // called with the values of the last expression
}

// currentExecution returns the execution in progress. It panics with Stopped if the caller is an abandoned goroutine:
// one that continues to run an earlier cell, while another goroutine runs the current one.
func (e *Engine) currentExecution() *execution {
	exec := e.current.Load()
	if exec.goid != GoroutineID() {
		panic(Stopped{})
	}
	return exec
}

// reportPanics wraps a function that compiled code runs in a new goroutine. A panic of f is sent to e.Panics; without
// the wrapper it would end the process.
func (e *Engine) reportPanics(f func()) func() {
	return func() {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			panicErr, ok := r.(ixgo.PanicError)
			if !ok {
				panicErr.Value = r
			}
			e.Panics <- panicErr
			// The receiver reports panicErr before it receives the next value. So this send returns, and callers that
			// wait for f continue, only after the panic was reported.
			e.Panics <- ixgo.PanicError{Value: Stopped{}}
		}()
		f()
	}
}

// Declare makes variables available to cells. vars maps their names to pointers to them.
func (e *Engine) Declare(vars map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &unit{pkg: newPackage(), vars: map[string]reflect.Value{}}
	for name, ptr := range vars {
		v := reflect.ValueOf(ptr)
		obj := types.NewVar(token.NoPos, u.pkg, name, e.typeOf(v.Type().Elem()))
		u.pkg.Scope().Insert(obj)
		u.vars[name] = v
		e.visible.bind(name, obj)
	}
	e.units[u.pkg] = u
}

// typeOf returns the go/types type of a compiled type.
func (e *Engine) typeOf(reflectType reflect.Type) types.Type {
	e.loader.mu.Lock()
	defer e.loader.mu.Unlock()
	return e.loader.ToType(reflectType)
}

// contextMode holds the ixgo options of all contexts.
const contextMode = ixgo.SupportMultipleInterp | ixgo.DisableCustomBuiltin

// newContext returns the ixgo context for one unit.
func (e *Engine) newContext() *ixgo.Context {
	ctx := ixgo.NewContext(contextMode | ixgo.DisableAutoLoadPatchs)
	ctx.FileSet, ctx.Loader, ctx.RunContext = e.fset, e.loader, context.Background()
	if !resultFeature.available() {
		// ixgo reuses the frames of a function after this many calls. Without the correction in patchCode, a frame may
		// be reused before the results in it are read.
		ctx.SetLeastCallForEnablePool(math.MaxInt32)
	}
	ctx.SetPanic(func(info *ixgo.PanicInfo) { // use the wording of the Go runtime
		switch err := info.Error.(type) {
		case ixgo.RuntimeError:
			if strings.HasPrefix(string(err), "interface conversion: ") {
				info.Error = ixgo.PlainError(err)
			} else {
				info.Error = ixgo.RuntimeError(strings.TrimPrefix(string(err), "runtime error: "))
			}
		case ixgo.PanicError:
			if err.Value == nil {
				err.Value = new(runtime.PanicNilError)
				info.Error = err
			}
		}
	})
	for name, f := range e.hooks {
		ctx.RegisterExternal(name, f)
	}
	return ctx
}

// Packages returns the packages that cells can import: a map from path to package name, which must not be changed.
var Packages = sync.OnceValue(func() map[string]string {
	names := map[string]string{"math/rand/v2": "rand"} // the last element of this path is not the package name
	for path, p := range imports.Packages {
		names[path] = string(p.Name)
	}
	for _, path := range ixgo.PackageList() {
		if names[path] == "" && !strings.Contains(path, "internal/") &&
			!strings.HasPrefix(path, "github.com/goplus/") && !strings.HasPrefix(path, "syscall") {
			names[path] = gopath.Base(path)
		}
	}
	return names
})

// IsCompiled reports whether a package is compiled into the program and can be imported by cells.
func IsCompiled(path string) bool { return Packages()[path] != "" }

// VisibleNames returns the objects declared by Declare and by cells, by name, and the paths of the packages that cells
// have imported, by name.
func (e *Engine) VisibleNames() (objects map[string]types.Object, imported map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.visible.names), maps.Clone(e.visible.imports)
}

// ForEachVariable calls f with each variable that cells can use.
func (e *Engine) ForEachVariable(f func(name string, v reflect.Value)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, obj := range e.visible.names {
		if u := e.units[obj.Pkg()]; u != nil && u.vars[obj.Name()].IsValid() {
			f(name, u.vars[obj.Name()].Elem())
		}
	}
}
