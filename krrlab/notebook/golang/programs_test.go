package golang

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// needGo skips a test if no programs can be built or run, and turns off the network for the go command.
func needGo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system can't start this program, which an emulator runs")
	}
	t.Setenv("GOPROXY", "off")
}

// openSessionWithGo starts a session for a test that needs the go command.
func openSessionWithGo(t *testing.T) *Session {
	t.Helper()
	needGo(t)
	return openSession(t, nil)
}

// runNumbered runs a cell with the given number and returns its outcome.
func runNumbered(s *Session, number int, code string) string {
	output := &outputRecorder{}
	return outcome(s.Run(fmt.Sprint("Cell ", number), code, output), output)
}

// TestCompiled calls compiled functions of every kind from cells.
func TestCompiled(t *testing.T) {
	s := openSessionWithGo(t)
	for i, test := range scriptCells(t, "Compiled") {
		got := runNumbered(s, i, test.code)
		if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s\n got %q\nwant %q", test.code, got, test.want)
		}
	}
}

// TestCompiledErrors checks that an error in a compiled cell is reported in one line, with the line number of the cell.
func TestCompiledErrors(t *testing.T) {
	s := openSessionWithGo(t)
	if got := runNumbered(s, 1,
		"\n%%go\n\nfunc At(i int) float64 {\n\tx := []float64{1}\n\treturn x[i]\n}\n\nfunc Die() { os.Exit(3) }\n\n"+
			"func Spin() {\n\tfor {\n\t}\n}\nfunc Exit() { runtime.Goexit() }"); got != "" {
		t.Fatalf("compiling the cell prints %q", got)
	}
	for _, test := range scriptCells(t, "CompiledErrors") {
		if got := runNumbered(s, 2, test.code); !strings.Contains(got, test.want) || strings.Contains(got, "\n\n") {
			t.Errorf("%s\n got %q\nwant %q", test.code, got, test.want)
		}
	}
	const inCell1 = "(in a function of Cell 1, line 1)"
	for _, test := range []struct{ code, after string }{{"for { At(0) }", "→1"},
		{"done := make(chan bool)\ngo func() { defer close(done); Spin() }()\n<-done",
			"✗Panic: the compiled program has ended (signal: killed): run its cell again " + inCell1}} {
		result := make(chan string)
		go func() { result <- runNumbered(s, 3, test.code) }()
		interruptAfter(s, 50*time.Millisecond)
		if got := <-result; !strings.Contains(got, "✗Interrupted: ") {
			t.Errorf("%s: %q, want it interrupted", test.code, got)
		}
		testkit.Equal(t, runNumbered(s, 4, "At(0)"), test.after, test.code)
	}
}

// Inverse is the kernel exp(−q/40)/(1 + q/C) of the squared distance q. compiledKernel puts its source into a cell;
// here the kernel is compiled into the test.
type Inverse struct{ C float64 }

func (k Inverse) profileAt(sq float64) float64 { return math.Exp(-sq/40) / (1 + sq/k.C) }

func (k Inverse) String() string { return fmt.Sprintf("inverse(%g)", k.C) }

func (k Inverse) Eval(x, z []float64) float64 {
	var q float64
	for i := range x {
		d := x[i] - z[i]
		q += float64(d * d)
	}
	return k.profileAt(q)
}

func (k Inverse) Profile(dst, sq []float64) {
	for i, q := range sq {
		dst[i] = k.profileAt(q)
	}
}

func (k Inverse) Slope() float64 { return 1.0/40 + 1/k.C }

// compiledKernel returns a %%go cell with the source of Inverse, which it reads from this file, with or without the
// method Profile.
func compiledKernel(t *testing.T, withProfile bool) string {
	t.Helper()
	content, err := os.ReadFile("programs_test.go")
	if err != nil {
		t.Skip("no source: ", err)
	}
	source := string(content)
	from, to := strings.Index(source, "type Inverse"), strings.Index(source, "// compiledKernel returns")
	if !withProfile {
		to = strings.Index(source, "func (k Inverse) Profile")
	}
	return "%%go\n" + source[from:to]
}

// formCell is a cell with two functions. form forms the kernel matrix K of 320 points in tiles of 64. same reports
// whether K equals the matrix of the kernel mine for every storage.
const formCell = `import "github.com/krrlab/lab/krrlab/kernel/points"; import "github.com/krrlab/lab/krrlab/kernel/gram"; import "github.com/krrlab/lab/krrlab/kernel"; import "gonum.org/v1/gonum/mat"
x := points.NewDense(320, 3, nil)
for i := range x.Data { x.Data[i] = 3 * math.Sin(float64(7*i)) }
func form(k kernel.Kernel, s gram.Storage) (*mat.Dense, error) {
	m, err := gram.New(ctx, k, x, 0.1, &gram.Options{Storage: s, TileSize: 64})
	if err != nil { return nil, err }
	k0 := mat.NewDense(320, 320, nil)
	return k0, m.DenseTo(ctx, k0)
}
func same(k kernel.Kernel) (bool, error) {
	for _, s := range []gram.Storage{gram.Float32, gram.Float64, gram.Recompute} {
		a, err := form(k, s)
		if err != nil { return false, err }
		b, err := form(mine, s)
		if err != nil { return false, err }
		if !mat.Equal(a, b) { return false, fmt.Errorf("%v: K differs", s) }
	}
	return true, nil
}`

// TestCompiledKernel checks that the kernel matrix of a kernel in a compiled cell equals, bit for bit, that of the same
// kernel in this program, and that forming it takes about one call per tile. A compiled kernel that fails within its
// loops must fail the cell.
func TestCompiledKernel(t *testing.T) {
	s := openSessionWithGo(t)
	var mine kernel.Kernel = Inverse{32}
	s.interp.Declare(map[string]any{"mine": &mine})
	if got := runNumbered(s, 1, formCell); got != "" {
		t.Fatalf("compiling the cell prints %q", got)
	}
	for i, test := range []struct {
		cell string
		mine kernel.Kernel
	}{{compiledKernel(t, true), Inverse{32}}, {compiledKernel(t, false),
		kernel.Func{Name: "inverse", F: Inverse{32}.Eval}}} {
		mine = test.mine
		if got := runNumbered(s, 2, test.cell); got != "" {
			t.Fatalf("compiling the kernel prints %q", got)
		}
		// A type that embeds the compiled kernel can add a method.
		const embedding = "type wide struct{ Inverse }\nfunc (wide) Spread(g rng.Stream) float64 { return 1 }\n" +
			"_, ok := kernel.Kernel(wide{}).(kernel.Mixture)\n"
		callsBefore := s.programs.calls.Load()
		if got := runNumbered(s, 3, embedding+"both, err := same(wide{Inverse{32}})\nok, both"); got != fmt.Sprintf("→%t, true",
			i == 0) { // only a kernel with a profile can be a mixture
			t.Errorf("kernel %d: %q", i, got)
		}
		// K is formed three times, half of its 320² entries each. The limit is one call for each 64 entries, which is
		// one row of a tile.
		const entries = 3 * 320 * 320 / 2
		if calls := s.programs.calls.Load() - callsBefore; calls == 0 || calls > entries/64 {
			t.Errorf("kernel %d: %d calls", i, calls)
		}
	}
	broken := strings.Replace(compiledKernel(t, true), "dst[i] = k.profileAt(q)\n", `dst[i] = k.profileAt(q)
		switch large := len(sq) > 1000; {
		case k.C == 33 && q > 9, k.C == 34 && large && i == 7:
			dst[i] = math.NaN()
		case k.C == 35 && large && q > 30:
			panic("far")
		case k.C == 36 && large:
			os.Exit(7)
		}
		for k.C == 37 && len(sq) > 1000 {
		}
`, 1)
	if got := runNumbered(s, 2, broken); got != "" {
		t.Fatalf("compiling the cell prints %q", got)
	}
	for _, test := range []struct{ form, want string }{
		{"form(Inverse{33}, gram.Float64)", "✗Error: kernel: inverse(33) of points "},
		{"form(Inverse{34}, gram.Float64)", "✗Error: gram: kernel inverse(34) of points "},
		{"form(Inverse{35}, gram.Float64)", "✗Panic: far (in a function of Cell 2, line 24)"},
		{"form(Inverse{36}, gram.Float64)",
			"✗Panic: the compiled program has ended (exit status 7): run its cell again (in a function of Cell 2, " +
				"line 1)"},
	} {
		if got := runNumbered(s, 3, test.form); !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s\n got %q\nwant %q", test.form, got, test.want)
		}
	}
	if got := runNumbered(s, 2, broken); got != "" {
		t.Fatalf("compiling the cell again prints %q", got)
	}
	ended := make(chan string)
	go func() { ended <- runNumbered(s, 3, "form(Inverse{37}, gram.Float64)") }()
	interruptAfter(s, 50*time.Millisecond)
	testkit.Contains(t, <-ended, "✗Interrupted: ")
}

// TestCompiledLeavesNoFiles checks that a running compiled program has no files in the folder of temporary files, and
// that it ends with the session.
func TestCompiledLeavesNoFiles(t *testing.T) {
	needGo(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := testkit.Must(New(nil))
	got := runNumbered(s, 1, "%%go\nfunc Pid() int { return os.Getpid() }")
	pid := runNumbered(s, 2, "Pid()")
	leftFiles, err := os.ReadDir(temp)
	s.Close()
	if got != "" || len(leftFiles) > 0 || err != nil {
		t.Errorf("%q, %v, left %v", got, err, leftFiles)
	}
	pidNumber, err := strconv.Atoi(strings.TrimPrefix(pid, "→"))
	if err != nil {
		t.Fatalf("process id %q: %v", pid, err)
	}
	process, err := os.FindProcess(pidNumber)
	// A program that does not end lets the test exceed its time limit.
	for err == nil && process.Signal(syscall.Signal(0)) == nil {
		time.Sleep(time.Millisecond)
	}
}

// TestBuildEndsWithSession checks that a build, and everything that it has started, ends with its session, even if the
// build ignores interrupts. A fake go command and its child hold a named pipe open; the test waits until the pipe is
// closed.
func TestBuildEndsWithSession(t *testing.T) {
	dir, tempDir := t.TempDir(), t.TempDir()
	alive := filepath.Join(dir, "alive")
	fakeGo := "#!/bin/sh\n[ $1 = build ] || exit 0\ntrap '' INT\nmkdir ${GOTMPDIR:-$TMPDIR}/go-build1\n" +
		"exec 9>" + alive + "\necho >&9\nsleep 600 >/dev/null 2>&1\n"
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Skip("no named pipes: ", err)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tempDir)
	s := testkit.Must(New(nil))
	outcomes := make(chan string)
	go func() { outcomes <- runNumbered(s, 1, "%%go\nfunc One() int { return 1 }") }()
	pipe := testkit.Must(os.Open(alive)) // waits until the build has opened the pipe
	defer pipe.Close()
	buf := make([]byte, 1)
	testkit.Must(io.ReadFull(pipe, buf))
	s.Close()
	<-outcomes
	// The limit is far less than the 600 seconds that the fake build would take.
	_ = pipe.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if count, err := pipe.Read(buf); err != io.EOF {
		t.Errorf("a build continues: %d, %v", count, err)
	}
	if leftFiles, err := os.ReadDir(tempDir); len(leftFiles) > 0 || err != nil {
		t.Errorf("%v, left %v", err, leftFiles)
	}
}

// TestCompiledWithoutGo checks that a compiled cell is interpreted if there is no go command, and that the output says
// so.
func TestCompiledWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := openSession(t, nil)
	testkit.Equal(t, runNumbered(s, 1,
		"\n%%go\nfunc Twice(x float64) float64 { return 2 * math.Abs(x) }"), "stderr: Go is not installed (go.dev/dl), so this cell is interpreted, some hundred times slower\n")
	testkit.Equal(t, runNumbered(s, 2, "Twice(-2)"), "→4")
}

// TestSupersededPrograms checks that a compiled program ends once its functions were declared again more than
// maxSuperseded times. Calls of methods of its values then fail with a message that says so, and other programs
// continue.
func TestSupersededPrograms(t *testing.T) {
	s := openSessionWithGo(t)
	const first, again = "%%go\nconst Size = 1\n\ntype T struct{ N float64 }\n\nfunc (t T) Of() int { return Size }", "%%go\nconst Size = 2\n\nfunc Other() int { return Size }"
	for i, code := range []string{first, "old := T{}", again, again, again, again, again, again} {
		if got := runNumbered(s, i, code); got != "" {
			t.Fatalf("cell %d prints %q", i, got)
		}
	}
	// Each method uses the constant Size of its own cell: 1 + 1 + 2.
	if got := runNumbered(s, 10, "old.Of() + T{}.Of() + Other()"); got != "→4" {
		t.Errorf("the sum is %s, want →4", got)
	}
	for i := range maxSuperseded + 1 {
		if got := runNumbered(s, 20+i, first); got != "" {
			t.Fatalf("cell %d prints %q", 20+i, got)
		}
	}
	testkit.Equal(t, runNumbered(s, 30, "T{}.Of() + Other()"), "→3")
	testkit.Equal(t, runNumbered(s, 30,
		"old.Of()"), "✗Panic: the compiled program was ended because its cell was run again: compute again "+
		"the values made before that (in a function of Cell 0, line 1)")
	testkit.Equal(t, len(s.programs.list), maxSuperseded+2)
}
