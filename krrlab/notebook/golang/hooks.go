package golang

import (
	"context"
	"errors"
	"fmt"
	"log"
	"reflect"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	_ "github.com/krrlab/lab/krrlab/notebook/bindings" // what cells may import
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// hook returns what cells call instead of functions that must know of the session: printing,
// which keeps its order so; reading; waiting and contexts, which an interrupt ends; and
// what would end the process.
func (s *Session) hook() map[string]any {
	log.SetOutput(writer{s.out, stderr})
	out := writer{s.out, stdout}
	fatal := func(a ...any) { panic(fmt.Sprint(a...)) }
	background := func() context.Context { return s.ctx.Load() }
	return map[string]any{
		"fmt.Print":   func(a ...any) (int, error) { return fmt.Fprint(out, a...) },
		"fmt.Println": func(a ...any) (int, error) { return fmt.Fprintln(out, a...) },
		"fmt.Printf":  func(format string, a ...any) (int, error) { return fmt.Fprintf(out, format, a...) },
		"fmt.Scan": func(a ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscan(line, a...) })
		},
		"fmt.Scanln": func(a ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscanln(line, a...) })
		},
		"fmt.Scanf": func(format string, a ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscanf(line, format, a...) })
		},
		"context.Background": background, "context.TO" + "DO": background,
		"time.Sleep": s.sleep,
		"os.Exit": func(code int) {
			panic(fmt.Sprintf("os.Exit(%d) would end the kernel; "+
				"return instead", code))
		},
		"log.Fatal": fatal, "log.Fatalln": fatal,
		"log.Fatalf":                       func(format string, a ...any) { panic(fmt.Sprintf(format, a...)) },
		"github.com/krrlab/lab/krrlab.New": s.newLab,
	}
}

// panics reports goroutines of cells that end by a panic.
func (s *Session) panics(e *engine.Engine) {
	for {
		select {
		case p := <-e.Panics:
			value, file, line := panicked(p)
			if _, ok := value.(engine.Halted); ok {
				continue
			}
			at := ""
			if line > 0 {
				at = fmt.Sprintf(" (%s, line %d)", file, line)
			}
			s.out.printf(stderr, "a goroutine of the cell panicked: %s%s\n", panicText(value), at)
		case <-s.quit:
			return
		}
	}
}

// scan reads a line from the reader of the notebook. It reports what it cannot read, for many cells ignore the error.
func (s *Session) scan(f func(string) (int, error)) (int, error) {
	n, err := f(s.input("", false) + "\n")
	if err != nil {
		s.out.printf(stderr, "fmt.Scan: %v\n", err)
	}
	return n, err
}

// sleep is time.Sleep that an interrupt ends, and with it the cell: it does not return into the
// interpreter, which would go on until its signal comes. Goroutines of cells sleep on.
func (s *Session) sleep(d time.Duration) {
	c := s.running.Load()
	if c == nil || c.goid != engine.Goid() {
		time.Sleep(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.halt:
		panic(engine.Halted{})
	}
}

// newLab is krrlab.New, with a line of progress where no monitor is set.
func (s *Session) newLab(train *datasets.Dataset, cfg krrlab.Config) (*krrlab.Lab, error) {
	if cfg.Monitor == nil {
		cfg.Monitor = s.Progress()
	}
	if train != nil && train.X != nil {
		s.warnSlow(train, cfg.Kernel)
	}
	return krrlab.New(train, cfg)
}

// slowKernel is how long K may take to form before a cell is told that its kernel is interpreted.
const slowKernel = time.Second

// warnSlow reports how long K takes with a kernel that a cell declares.
func (s *Session) warnSlow(train *datasets.Dataset, k kernel.Kernel) {
	t := reflect.TypeOf(k)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, pairs := k.(kernel.Func); t == nil || t.PkgPath() != "main" && !pairs {
		return
	}
	n, _ := train.X.Dims()
	var w kernel.Workspace
	tile := make([]float64, 128*128)
	for m := min(n, 4); m > 0; m *= 2 { // until it takes long enough to tell
		p := points.NewPanel(train.X.Slice(0, m))
		start, calls := time.Now(), s.compiled.calls.Load()
		kernel.Tile64(tile, m, k, p, p, kernel.Float64, &w)
		took, calls := time.Since(start), s.compiled.calls.Load()-calls
		if took < 20*time.Millisecond && 2*m <= min(n, 128) {
			continue
		}
		each, what := float64(took)/float64(m*m), map[bool]string{true: "is interpreted",
			false: "calls a compiled function for each pair"}[calls == 0]
		if all := time.Duration(float64(n) * float64(n) / 2 * each); all > slowKernel &&
			(calls == 0 || calls > int64(m)) {
			s.out.printf(stderr,
				"the kernel %v %s: %v an evaluation, so forming K of %d points takes about %v, and again "+
					"wherever K is recomputed; "+
					"%s, or take fewer points or a kernel of package kernel\n", k, what,
				time.Duration(each).Round(10*time.Nanosecond), n, all.Round(time.Second), faster())
		}
		return
	}
}

// input asks the reader. Without an answer the cell ends.
func (s *Session) input(prompt string, password bool) string {
	err := errors.New("no cell is running that could ask for input")
	if out := s.out.output(); out != nil {
		var line string
		if line, err = out.Input(prompt, password); err == nil {
			return line
		}
	}
	if c := s.running.Load(); c != nil && c.hits.Load() > 0 {
		panic(engine.Halted{})
	}
	panic(err)
}

// must is the function Must of cells.
const must = `// Must returns the value of a call that must not fail: an error ends the cell.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}`

// builtIn gives cells what is declared as they declare it.
func (s *Session) builtIn() {
	cell, err := s.e.Compile("built-in.go", must)
	if err == nil {
		_, err = cell.Run(func() bool { return false }, func(int) {})
	}
	if err != nil {
		panic(err)
	}
	s.own, _ = s.e.Names()
}

// declare gives cells what they find without an import.
func (s *Session) declare() {
	ctx, dirs := context.Context(s.ctx.Load()), append([]string{}, s.dirs...)
	show := func(v any) {
		d, err := display.Show(v)
		s.out.show(d)
		if err != nil {
			panic(err)
		}
	}
	update := func(id string, v any) { s.out.update(withID(display.Render(v), id)) }
	named := func(id string, v any) { s.out.show(withID(display.Render(v), id)) }
	empty := func() { s.out.ordered(func(o Output) { o.Clear(true) }) }
	input := func(prompt string) string { return s.input(prompt, false) }
	password := func(prompt string) string { return s.input(prompt, true) }
	progress := s.Progress
	s.e.Declare(map[string]any{
		"ctx": &ctx, "DataDirs": &dirs, "Display": &show, "Update": &update, "DisplayID": &named, "Clear": &empty,
		"Input": &input, "Password": &password, "Progress": &progress,
	})
}

// withID marks data with the name by which it can be replaced.
func withID(d display.Data, id string) display.Data {
	if d.Transient == nil {
		d.Transient = display.MIMEMap{}
	}
	d.Transient["display_id"] = id
	return d
}
