package panel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/notebook/widget"
	"github.com/krrlab/lab/krrlab/stage"
)

// functionSubject is a Subject that calls a function of a cell.
type functionSubject struct {
	name     string // text by which the cell refers to the function
	f        reflect.Value
	takesCtx bool
	hasError bool          // the last result is an error
	options  *controlGroup // controls of the options
	start    reflect.Value // options that the controls start from; zeros stand for the defaults
}

// FunctionSubject returns a Subject that calls f. f has the form func([ctx context.Context,] options S) (value[,
// error]), where S is a struct of options and the parts in brackets are optional. The controls start from the options
// start, of type S, or from the defaults if start is nil. name is the text by which a cell refers to f. FunctionSubject
// returns an error if f has another form, if S has no field with a control, or if start has another type.
func FunctionSubject(f, start any, name string) (Subject, error) {
	v := reflect.ValueOf(f)
	const want = "want a function such as func(o struct{N int `flag:\"n\" default:\"10\"`}) (value, error), or a " +
		"*krrlab.Lab and the options of a stage"
	if v.Kind() != reflect.Func || v.IsNil() || v.Type().IsVariadic() {
		return nil, fmt.Errorf("Explore of a value of type %T: %s", f, want)
	}
	t := v.Type()
	s := &functionSubject{name: name, f: v}
	s.takesCtx = t.NumIn() == 2 && t.In(0) == reflect.TypeFor[context.Context]()
	s.hasError = t.NumOut() == 2 && t.Out(1) == reflect.TypeFor[error]()
	if t.NumIn() != 1 && !s.takesCtx || t.NumOut() != 1 && !s.hasError || t.In(t.NumIn()-1).Kind() != reflect.Struct {
		return nil, fmt.Errorf("Explore of a value of type %v: %s", t, want)
	}
	optionsType := t.In(t.NumIn() - 1)
	if len(fieldsWithControl(schema.WithoutDefaults(reflect.New(optionsType).Interface()))) == 0 {
		return nil, fmt.Errorf("Explore: no field of %v has a tag flag, default or check: %s", optionsType, want)
	}
	switch s.start = reflect.Zero(optionsType); {
	case start == nil:
	case reflect.TypeOf(start) != optionsType:
		return nil, fmt.Errorf("Explore of a function and a value of type %T: want its options, a %v", start, optionsType)
	default:
		s.start = reflect.ValueOf(start)
	}
	return s, nil
}

// controls implements Subject.
func (s *functionSubject) controls(p *Panel) ([]*widget.Model, error) {
	start := s.start.Interface()
	var err error
	if s.options, err = p.openControls(start, start, 0); err != nil {
		return nil, err
	}
	column, err := p.openColumn(s.options.controls...)
	return []*widget.Model{column}, err
}

// isInterruptible implements Subject.
func (s *functionSubject) isInterruptible() bool { return s.takesCtx }

// currentRun implements Subject.
func (s *functionSubject) currentRun() (func(context.Context, func(stage.Event)) (any, error), string, error) {
	v, err := s.options.value()
	if err != nil {
		return nil, "", err
	}
	code := s.name + "(" + literal(v) + ")"
	if s.takesCtx {
		code = s.name + "(ctx, " + literal(v) + ")"
	}
	if s.hasError {
		code = "Must(" + code + ")"
	}
	if v.Type().Name() == "" { // literal then returns the fields only, which is no Go code
		code = "// " + s.name + " with " + literal(v)
	}
	full := reflect.New(s.start.Type()) // the options, which Complete fills with the defaults
	full.Elem().Set(v)
	if err := schema.Complete(full.Interface()); err != nil {
		return nil, code, err
	}
	return func(ctx context.Context, _ func(stage.Event)) (any, error) {
		in := []reflect.Value{full.Elem()}
		if s.takesCtx {
			in = []reflect.Value{reflect.ValueOf(ctx), full.Elem()}
		}
		out := s.f.Call(in)
		if s.hasError && !out[1].IsNil() {
			return out[0].Interface(), out[1].Interface().(error)
		}
		return out[0].Interface(), nil
	}, code, nil
}

// stageSubject is a Subject that runs a stage of a lab, or the lab's Solve.
type stageSubject struct {
	name           string // text by which the cell refers to the lab
	lab            *krrlab.Lab
	stage          stage.Runner  // stage with its options; nil for Solve
	options        *controlGroup // options of the stage; nil for Solve
	kindChoice     *widget.Model // the choice of the preconditioner; nil if the stage has none
	configuredKind string        // name of the preconditioner in the lab's configuration
	precondColumn  *widget.Model // column with the choice of the preconditioner and the controls of its options

	mu      sync.Mutex    // guards precond
	precond *controlGroup // options of the preconditioner; nil if it has none
}

// StageSubject returns a Subject that runs stage s of a lab. If s is nil, the Subject runs lab.Solve. A stage that uses
// the preconditioner of the lab has controls for it, too; a run with another preconditioner shares K with the lab. name
// is the text by which a cell refers to the lab. StageSubject returns an error if lab is nil, or if s is neither a
// struct nor a pointer to one.
func StageSubject(lab *krrlab.Lab, s stage.Runner, name string) (Subject, error) {
	if lab == nil {
		return nil, errors.New("Explore of a lab that is nil: look at the error of krrlab.New")
	}
	if v := reflect.ValueOf(s); v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		if r, ok := v.Elem().Interface().(stage.Runner); ok {
			s = r
		}
	}
	if s != nil && reflect.ValueOf(s).Kind() != reflect.Struct {
		return nil, fmt.Errorf("Explore of a stage of type %T: want a struct of options", s)
	}
	return &stageSubject{name: name, lab: lab, stage: s}, nil
}

// hasPreconditioner reports whether the stage can depend on the preconditioner of the lab. Solve does, a stage of the
// module does if its command has the flag --precond, and a stage that the user defined may.
func (s *stageSubject) hasPreconditioner() bool {
	for _, d := range krrlab.Stages() {
		if s.stage != nil && reflect.TypeOf(d.Options) == reflect.TypeOf(s.stage) {
			return slices.Contains(strings.Fields(d.Flags), "precond")
		}
	}
	return true
}

// isInterruptible implements Subject.
func (s *stageSubject) isInterruptible() bool { return true }

// controls implements Subject.
func (s *stageSubject) controls(p *Panel) (columns []*widget.Model, err error) {
	if s.hasPreconditioner() {
		if err := s.openPreconditioner(p); err != nil {
			return nil, err
		}
		columns = append(columns, s.precondColumn)
	}
	if s.stage == nil {
		return columns, nil
	}
	if s.options, err = p.openControls(s.stage, s.stage, 0); err != nil {
		return nil, err
	}
	column, err := p.openColumn(s.options.controls...)
	return append(columns, column), err
}

// openPreconditioner opens the choice of the kind of preconditioner and the controls of its options.
func (s *stageSubject) openPreconditioner(p *Panel) (err error) {
	cfg := s.lab.Config()
	s.configuredKind = stage.NameOf(cfg.Precond)
	var names []string
	for _, k := range stage.Kinds() {
		wantsArgument := strings.HasSuffix(k.Name, ":") // as in process:COMMAND
		if k.CheckKernel(cfg.Kernel) == nil && !wantsArgument {
			names = append(names, k.Name)
		}
	}
	if !slices.Contains(names, s.configuredKind) { // a user-defined one
		names = append([]string{s.configuredKind}, names...)
	}
	kindChanged := func() {
		if err := s.openOptions(p); err != nil {
			p.setStatus(err.Error())
			return
		}
		p.requestRun()
	}
	// the callback of a control must not wait, and openOptions opens and closes controls
	s.kindChoice, err = p.openModel(widget.Spec{Kind: widget.Dropdown, Label: "preconditioner", Value: s.configuredKind,
		Options: names, Width: "26em"}, func() { go kindChanged() })
	if err != nil {
		return err
	}
	if s.precondColumn, err = p.openColumn(s.kindChoice); err != nil {
		return err
	}
	return s.openOptions(p)
}

// openOptions replaces the controls of the options by those of the chosen kind.
func (s *stageSubject) openOptions(p *Panel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.kindChoice.Value().(string)
	cfg := s.lab.Config()
	start := cfg.Precond
	if name != s.configuredKind {
		start = stage.KindNamed(name).Zero
	}
	hasOptions := reflect.TypeOf(start).Kind() == reflect.Struct
	// Data replaces the functions in the options by values, which controls can show. It fails if one is user-defined.
	if d, ok := start.(interface {
		Data(kernel.Kernel) (stage.Preconditioner, error)
	}); ok {
		if data, err := d.Data(cfg.Kernel); err == nil {
			start = data
		} else {
			hasOptions = false
		}
	}
	shown := start
	n, _, _ := s.lab.Dims()
	if settler, ok := start.(stage.Defaulter); ok {
		var err error
		if shown, err = settler.WithDefaults(stage.Defaults{Kernel: cfg.Kernel, N: n, Lambda: cfg.Lambda,
			S: krrlab.DefaultFeatures(n), LambdaP: cfg.Lambda}); err != nil {
			return err
		}
	}
	old := s.precond
	s.precond = nil
	children := []*widget.Model{s.kindChoice}
	if hasOptions {
		g, err := p.openControls(start, shown, n)
		if err != nil {
			return err
		}
		s.precond, children = g, append(children, g.controls...)
	}
	s.precondColumn.Change(func(spec *widget.Spec) { spec.Children = children })
	if old != nil {
		old.close()
	}
	return nil
}

// currentRun implements Subject.
func (s *stageSubject) currentRun() (func(context.Context, func(stage.Event)) (any, error), string, error) {
	var lines []string
	name, precond := s.name, stage.Preconditioner(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kindChoice != nil && (s.kindChoice.Value() != s.configuredKind || s.precond != nil && s.precond.isChanged()) {
		v := reflect.ValueOf(stage.KindNamed(s.kindChoice.Value().(string)).Zero)
		if s.precond != nil {
			var err error
			if v, err = s.precond.value(); err != nil {
				return nil, "", err
			}
		}
		precond = v.Interface().(stage.Preconditioner)
		lines = append(lines, fmt.Sprintf("other := Must(%s.With(func(c *krrlab.Config) { c.Precond = %s }))", name,
			literal(v)))
		name = "other"
	}
	run := stage.Runner(nil)
	if s.options == nil {
		lines = append(lines, fmt.Sprintf("Must(%s.Solve(ctx))", name))
	} else {
		v, err := s.options.value()
		if err != nil {
			return nil, "", err
		}
		run = v.Interface().(stage.Runner)
		lines = append(lines, fmt.Sprintf("Must(%s.Run(ctx, %s))", name, literal(v)))
	}
	return func(ctx context.Context, report func(stage.Event)) (any, error) {
		lab, err := s.lab.With(func(c *krrlab.Config) {
			c.Monitor = func(e stage.Event) error { report(e); return nil }
			if precond != nil {
				c.Precond = precond
			}
		})
		if err != nil {
			return nil, err
		}
		if run == nil {
			sol, err := lab.Solve(ctx)
			return sol, err
		}
		return lab.Run(ctx, run)
	}, strings.Join(lines, "\n"), nil
}
