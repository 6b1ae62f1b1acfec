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
	function reflect.Value
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
	function := reflect.ValueOf(f)
	const want = "want a function such as func(o struct{N int `flag:\"n\" default:\"10\"`}) (value, error), or a " +
		"*krrlab.Lab and the options of a stage"
	if function.Kind() != reflect.Func || function.IsNil() || function.Type().IsVariadic() {
		return nil, fmt.Errorf("Explore of a value of type %T: %s", f, want)
	}
	funcType := function.Type()
	subject := &functionSubject{name: name, function: function}
	subject.takesCtx = funcType.NumIn() == 2 && funcType.In(0) == reflect.TypeFor[context.Context]()
	subject.hasError = funcType.NumOut() == 2 && funcType.Out(1) == reflect.TypeFor[error]()
	if funcType.NumIn() != 1 && !subject.takesCtx || funcType.NumOut() != 1 && !subject.hasError ||
		funcType.In(funcType.NumIn()-1).Kind() != reflect.Struct {
		return nil, fmt.Errorf("Explore of a value of type %v: %s", funcType, want)
	}
	optionsType := funcType.In(funcType.NumIn() - 1)
	if len(fieldsWithControl(schema.WithoutDefaults(reflect.New(optionsType).Interface()))) == 0 {
		return nil, fmt.Errorf("Explore: no field of %v has a tag flag, default or check: %s", optionsType, want)
	}
	switch subject.start = reflect.Zero(optionsType); {
	case start == nil:
	case reflect.TypeOf(start) != optionsType:
		return nil, fmt.Errorf("Explore of a function and a value of type %T: want its options, a %v", start, optionsType)
	default:
		subject.start = reflect.ValueOf(start)
	}
	return subject, nil
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
	options, err := s.options.value()
	if err != nil {
		return nil, "", err
	}
	code := s.name + "(" + literal(options) + ")"
	if s.takesCtx {
		code = s.name + "(ctx, " + literal(options) + ")"
	}
	if s.hasError {
		code = "Must(" + code + ")"
	}
	if options.Type().Name() == "" { // for such a type, literal returns only the fields, which is no Go code
		code = "// " + s.name + " with " + literal(options)
	}
	completed := reflect.New(s.start.Type()) // the options, which Complete fills with the defaults
	completed.Elem().Set(options)
	if err := schema.Complete(completed.Interface()); err != nil {
		return nil, code, err
	}
	return func(ctx context.Context, _ func(stage.Event)) (any, error) {
		arguments := []reflect.Value{completed.Elem()}
		if s.takesCtx {
			arguments = []reflect.Value{reflect.ValueOf(ctx), completed.Elem()}
		}
		results := s.function.Call(arguments)
		if s.hasError && !results[1].IsNil() {
			return results[0].Interface(), results[1].Interface().(error)
		}
		return results[0].Interface(), nil
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
	value := reflect.ValueOf(s)
	if value.Kind() == reflect.Pointer && !value.IsNil() && value.Elem().Kind() == reflect.Struct {
		if runner, ok := value.Elem().Interface().(stage.Runner); ok {
			s = runner
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
	for _, described := range krrlab.Stages() {
		if s.stage != nil && reflect.TypeOf(described.Options) == reflect.TypeOf(s.stage) {
			return slices.Contains(strings.Fields(described.Flags), "precond")
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
	config := s.lab.Config()
	s.configuredKind = stage.NameOf(config.Precond)
	var names []string
	for _, kind := range stage.Kinds() {
		wantsArgument := strings.HasSuffix(kind.Name, ":") // as in process:COMMAND
		if kind.CheckKernel(config.Kernel) == nil && !wantsArgument {
			names = append(names, kind.Name)
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
	// The callback of a control must not wait, and openOptions opens and closes controls. So it runs in a goroutine.
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
	config := s.lab.Config()
	start := config.Precond
	if name != s.configuredKind {
		start = stage.KindNamed(name).Zero
	}
	hasOptions := reflect.TypeOf(start).Kind() == reflect.Struct
	// Data replaces the functions in the options by values, which controls can show. Data returns an error if a
	// function is user-defined.
	if replacer, ok := start.(interface {
		Data(kernel.Kernel) (stage.Preconditioner, error)
	}); ok {
		if data, err := replacer.Data(config.Kernel); err == nil {
			start = data
		} else {
			hasOptions = false
		}
	}
	shown := start
	n, _, _ := s.lab.Dims()
	if defaulter, ok := start.(stage.Defaulter); ok {
		var err error
		if shown, err = defaulter.WithDefaults(stage.Defaults{Kernel: config.Kernel, N: n, Lambda: config.Lambda,
			S: krrlab.DefaultFeatures(n), LambdaP: config.Lambda}); err != nil {
			return err
		}
	}
	oldGroup := s.precond
	s.precond = nil
	children := []*widget.Model{s.kindChoice}
	if hasOptions {
		group, err := p.openControls(start, shown, n)
		if err != nil {
			return err
		}
		s.precond, children = group, append(children, group.controls...)
	}
	s.precondColumn.Change(func(spec *widget.Spec) { spec.Children = children })
	if oldGroup != nil {
		oldGroup.close()
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
		options := reflect.ValueOf(stage.KindNamed(s.kindChoice.Value().(string)).Zero)
		if s.precond != nil {
			var err error
			if options, err = s.precond.value(); err != nil {
				return nil, "", err
			}
		}
		precond = options.Interface().(stage.Preconditioner)
		lines = append(lines, fmt.Sprintf("other := Must(%s.With(func(c *krrlab.Config) { c.Precond = %s }))", name,
			literal(options)))
		name = "other"
	}
	run := stage.Runner(nil)
	if s.options == nil {
		lines = append(lines, fmt.Sprintf("Must(%s.Solve(ctx))", name))
	} else {
		options, err := s.options.value()
		if err != nil {
			return nil, "", err
		}
		run = options.Interface().(stage.Runner)
		lines = append(lines, fmt.Sprintf("Must(%s.Run(ctx, %s))", name, literal(options)))
	}
	return func(ctx context.Context, report func(stage.Event)) (any, error) {
		lab, err := s.lab.With(func(config *krrlab.Config) {
			config.Monitor = func(event stage.Event) error { report(event); return nil }
			if precond != nil {
				config.Precond = precond
			}
		})
		if err != nil {
			return nil, err
		}
		if run == nil {
			solution, err := lab.Solve(ctx)
			return solution, err
		}
		return lab.Run(ctx, run)
	}, strings.Join(lines, "\n"), nil
}
