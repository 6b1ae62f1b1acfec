package golang

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cosmos72/gomacro/base"
	"github.com/cosmos72/gomacro/gls"
	"github.com/gopherdata/gophernotes/imports"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
)

// current is the session of the process: functions bound for cells find it here.
var current atomic.Pointer[Session]

var hookOnce sync.Once

// hook replaces, in the tables that cells see, what must know of the session: printing,
// which keeps its order so; reading; waiting and contexts, which an interrupt ends; and
// what would end the process.
func (s *Session) hook() {
	current.Store(s)
	log.SetOutput(writer{s.out, stderr})
	hookOnce.Do(func() {
		replace("fmt", map[string]any{
			"Print":    func(a ...any) (int, error) { return put(stdout, fmt.Sprint(a...)) },
			"Println":  func(a ...any) (int, error) { return put(stdout, fmt.Sprintln(a...)) },
			"Printf":   func(format string, a ...any) (int, error) { return put(stdout, fmt.Sprintf(format, a...)) },
			"Fprint":   func(w io.Writer, a ...any) (int, error) { return fmt.Fprint(direct(w), a...) },
			"Fprintln": func(w io.Writer, a ...any) (int, error) { return fmt.Fprintln(direct(w), a...) },
			"Fprintf":  func(w io.Writer, format string, a ...any) (int, error) { return fmt.Fprintf(direct(w), format, a...) },
			"Scan": func(a ...any) (int, error) {
				return scan(func(line string) (int, error) { return fmt.Sscan(line, a...) })
			},
			"Scanln": func(a ...any) (int, error) {
				return scan(func(line string) (int, error) { return fmt.Sscanln(line, a...) })
			},
			"Scanf": func(format string, a ...any) (int, error) {
				return scan(func(line string) (int, error) { return fmt.Sscanf(line, format, a...) })
			},
		})
		background := func() context.Context { return current.Load().ctx.get() }
		replace("context", map[string]any{"Background": background, "TO" + "DO": background})
		replace("time", map[string]any{"Sleep": sleep})
		replace("os", map[string]any{"Exit": func(code int) { panic(fmt.Sprintf("os.Exit(%d) would end the kernel; return instead", code)) }})
		replace("log", map[string]any{
			"Fatal":   func(a ...any) { panic(fmt.Sprint(a...)) },
			"Fatalln": func(a ...any) { panic(fmt.Sprint(a...)) },
			"Fatalf":  func(format string, a ...any) { panic(fmt.Sprintf(format, a...)) },
		})
		replace("github.com/krrlab/lab/krrlab", map[string]any{"New": newLab})
	})
}

// replace puts functions into the table of a package.
func replace(path string, binds map[string]any) {
	for name, f := range binds {
		imports.Packages[path].Binds[name] = reflect.ValueOf(f)
	}
}

func put(stream int, text string) (int, error) {
	current.Load().out.write(stream, []byte(text))
	return len(text), nil
}

// direct returns the way past the pipe for what goes to os.Stdout and os.Stderr.
func direct(w io.Writer) io.Writer {
	switch w {
	case io.Writer(os.Stdout):
		return writer{current.Load().out, stdout}
	case io.Writer(os.Stderr):
		return writer{current.Load().out, stderr}
	}
	return w
}

// scan reads a line from the reader of the notebook.
func scan(f func(string) (int, error)) (int, error) {
	line, err := current.Load().input("", false)
	if err != nil {
		return 0, err
	}
	return f(line + "\n")
}

// sleep is time.Sleep that an interrupt ends, and with it the cell: it does not return into the
// interpreter, which would go on until its signal comes. Goroutines of cells sleep on.
func sleep(d time.Duration) {
	c := current.Load().running.Load()
	if c == nil || c.goid != gls.GoID() {
		time.Sleep(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.halt:
		panic(base.SigInterrupt)
	}
}

// newLab is krrlab.New, with a line of progress where no monitor is set.
func newLab(train *datasets.Dataset, cfg krrlab.Config) (*krrlab.Lab, error) {
	if cfg.Monitor == nil {
		cfg.Monitor = current.Load().Progress()
	}
	return krrlab.New(train, cfg)
}

// input asks the reader.
func (s *Session) input(prompt string, password bool) (string, error) {
	out := s.out.output()
	if out == nil {
		return "", fmt.Errorf("no cell runs that could ask")
	}
	return out.Input(prompt, password)
}

// declare gives cells what they find without an import.
func (s *Session) declare() {
	ir := s.ir
	ir.ImportPackage("", "display")
	ir.DeclVar("ctx", ir.Comp.Universe.FromReflectType(reflect.TypeFor[context.Context]()), context.Context(s.ctx.get()))
	ir.DeclVar("DataDirs", nil, append([]string{}, s.dirs...))
	ir.DeclFunc("Display", func(v any) { s.out.show(display.Render(v)) })
	ir.DeclFunc("Update", func(id string, v any) {
		d := withID(display.Render(v), id) // may print, so not while the output is locked
		s.out.ordered(func(o Output) { o.Update(d) })
	})
	ir.DeclFunc("DisplayID", func(id string, v any) { s.out.show(withID(display.Render(v), id)) })
	ir.DeclFunc("Clear", func() { s.out.ordered(func(o Output) { o.Clear(true) }) })
	ir.DeclFunc("Input", func(prompt string) (string, error) { return s.input(prompt, false) })
	ir.DeclFunc("Password", func(prompt string) (string, error) { return s.input(prompt, true) })
	ir.DeclFunc("Progress", s.Progress)
	ir.DeclFunc(goName, s.goCall)
	ir.DeclFunc(caughtName, s.caught)
	ir.DeclFunc(waitName, func() { select {} })
	s.displayTypes()
}

// withID marks data with the name by which it can be replaced.
func withID(d display.Data, id string) display.Data {
	if d.Transient == nil {
		d.Transient = display.MIMEMap{}
	}
	d.Transient["display_id"] = id
	return d
}
