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
	_ "github.com/krrlab/lab/krrlab/notebook/bindings" // the packages that cells can import
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// hooks returns replacements for library functions that must cooperate with the session. Printing goes through the
// capture, which preserves its order. Reading asks the reader of the notebook. An interrupt ends sleeping and cancels
// contexts. Functions that would end the process panic instead.
func (s *Session) hooks() map[string]any {
	log.SetOutput(streamWriter{s.out, stderr})
	out := streamWriter{s.out, stdout}
	fatal := func(args ...any) { panic(fmt.Sprint(args...)) }
	background := func() context.Context { return s.ctx.Load() }
	return map[string]any{
		"fmt.Print":   func(args ...any) (int, error) { return fmt.Fprint(out, args...) },
		"fmt.Println": func(args ...any) (int, error) { return fmt.Fprintln(out, args...) },
		"fmt.Printf":  func(format string, args ...any) (int, error) { return fmt.Fprintf(out, format, args...) },
		"fmt.Scan": func(args ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscan(line, args...) })
		},
		"fmt.Scanln": func(args ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscanln(line, args...) })
		},
		"fmt.Scanf": func(format string, args ...any) (int, error) {
			return s.scan(func(line string) (int, error) { return fmt.Sscanf(line, format, args...) })
		},
		"context.Background": background,
		"context.TO" + "DO":  background, // in two parts, so that no search for open tasks finds it
		"time.Sleep":         s.sleep,
		"os.Exit": func(code int) {
			panic(fmt.Sprintf("os.Exit(%d) would end the kernel; return instead", code))
		},
		"log.Fatal": fatal, "log.Fatalln": fatal,
		"log.Fatalf":                       func(format string, args ...any) { panic(fmt.Sprintf(format, args...)) },
		"github.com/krrlab/lab/krrlab.New": s.newLab,
	}
}

// reportPanics prints the panics of goroutines that cells started, until the session ends.
func (s *Session) reportPanics(e *engine.Engine) {
	for {
		select {
		case panicErr := <-e.Panics:
			value, file, line := unwrapPanic(panicErr)
			if _, ok := value.(engine.Stopped); ok {
				continue
			}
			location := ""
			if line > 0 {
				location = fmt.Sprintf(" (%s, line %d)", file, line)
			}
			s.out.printf(stderr, "a goroutine of the cell panicked: %s%s\n", panicText(value), location)
		case <-s.quit:
			return
		}
	}
}

// scan asks the reader of the notebook, the person who uses it, for a line and parses the line with parse. It prints
// errors, because many cells ignore the returned one.
func (s *Session) scan(parse func(string) (int, error)) (int, error) {
	n, err := parse(s.input("", false) + "\n")
	if err != nil {
		s.out.printf(stderr, "fmt.Scan: %v\n", err)
	}
	return n, err
}

// sleep replaces time.Sleep. If the cell is interrupted, sleep panics instead of returning, since interpreted code
// would continue until the interpreter is stopped. In goroutines that a cell started, it is time.Sleep.
func (s *Session) sleep(duration time.Duration) {
	running := s.runningCell.Load()
	if running == nil || running.goid != engine.GoroutineID() {
		time.Sleep(duration)
		return
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-running.stopRequested:
		panic(engine.Stopped{})
	}
}

// newLab replaces krrlab.New. It sets a progress line as the monitor if there is none, and warns about slow kernels.
func (s *Session) newLab(train *datasets.Dataset, cfg krrlab.Config) (*krrlab.Lab, error) {
	if cfg.Monitor == nil {
		cfg.Monitor = s.Progress()
	}
	if train != nil && train.X != nil {
		s.warnSlow(train, cfg.Kernel)
	}
	return krrlab.New(train, cfg)
}

// slowKernelTime is the predicted time to form K above which the user is warned that the kernel is interpreted.
const slowKernelTime = time.Second

// warnSlow prints a warning if K takes longer than slowKernelTime to form because its kernel is declared in a cell. It
// times the kernel on m×m pairs of points, for m = 4, 8, …, until this takes 20 ms or m would exceed 128 or n.
func (s *Session) warnSlow(train *datasets.Dataset, k kernel.Kernel) {
	kernelType := reflect.TypeOf(k)
	if kernelType != nil && kernelType.Kind() == reflect.Pointer {
		kernelType = kernelType.Elem()
	}
	if _, isFunc := k.(kernel.Func); kernelType == nil || kernelType.PkgPath() != "main" && !isFunc {
		return
	}
	const maxSize, minTime = 128, 20 * time.Millisecond // as in the comment of warnSlow
	n, _ := train.X.Dims()
	var workspace kernel.Workspace
	tile := make([]float64, maxSize*maxSize)
	for m := min(n, 4); m > 0; m *= 2 {
		pts := points.NewPanel(train.X.Slice(0, m))
		start, callsBefore := time.Now(), s.programs.calls.Load()
		kernel.Tile64(tile, m, k, pts, pts, kernel.Float64, &workspace)
		elapsed, calls := time.Since(start), s.programs.calls.Load()-callsBefore
		if elapsed < minTime && 2*m <= min(n, maxSize) {
			continue
		}
		perPair, cause := float64(elapsed)/float64(m*m), "is interpreted"
		if calls > 0 {
			cause = "calls a compiled function for each pair"
		}
		// A compiled kernel that is called once or for each row, not for each pair, is fast.
		if total := time.Duration(float64(n) * float64(n) / 2 * perPair); total > slowKernelTime &&
			(calls == 0 || calls > int64(m)) {
			s.out.printf(stderr,
				"the kernel %v %s: %v an evaluation, so forming K of %d points takes about %v, and again "+
					"wherever K is recomputed; %s, or take fewer points or a kernel of package kernel\n", k, cause,
				time.Duration(perPair).Round(10*time.Nanosecond), n, total.Round(time.Second), speedAdvice())
		}
		return
	}
}

// input asks the reader for a line. If there is no answer, it panics, which ends the cell.
func (s *Session) input(prompt string, password bool) string {
	err := errors.New("no cell is running that could ask for input")
	if out := s.out.output(); out != nil {
		var line string
		if line, err = out.Input(prompt, password); err == nil {
			return line
		}
	}
	if running := s.runningCell.Load(); running != nil && running.interrupts.Load() > 0 {
		panic(engine.Stopped{})
	}
	panic(err)
}

// mustSource declares the function Must, which cells can use.
const mustSource = `// Must returns the value of a call that must not fail: an error ends the cell.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}`

// declareBuiltIns declares the variables and functions that cells can use without an import.
func (s *Session) declareBuiltIns(e *engine.Engine) {
	ctx, dirs := context.Context(s.ctx.Load()), append([]string{}, s.dataDirs...)
	show := func(v any) {
		data, err := display.Show(v)
		s.out.show(data)
		if err != nil {
			panic(err)
		}
	}
	update := func(id string, v any) { s.out.update(withID(display.Render(v), id)) }
	showNamed := func(id string, v any) { s.out.show(withID(display.Render(v), id)) }
	clearOutput := func() { s.out.afterText(func(out Output) { out.Clear(true) }) }
	input := func(prompt string) string { return s.input(prompt, false) }
	password := func(prompt string) string { return s.input(prompt, true) }
	progress, explore := s.Progress, s.explore
	e.Declare(map[string]any{
		"ctx": &ctx, "DataDirs": &dirs, "Display": &show, "Update": &update, "DisplayID": &showNamed,
		"Clear": &clearOutput, "Input": &input, "Password": &password, "Progress": &progress,
		"Explore": &explore,
	})
}

// withID sets the display_id of display data, by which it can be replaced later.
func withID(d display.Data, id string) display.Data {
	if d.Transient == nil {
		d.Transient = display.MIMEMap{}
	}
	d.Transient["display_id"] = id
	return d
}
