package native

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// mixed is a struct with fields of all supported kinds.
type mixed struct {
	A int8
	b uint64
	c string
	d []float64
	e struct{ F float32 }
}

// functions are the functions of the program as which TestMain runs this test binary. The tests call them by their
// index.
var functions = []any{
	func(dst, x []float64) {
		for i, v := range x {
			dst[i] = v + 1
		}
	},
	func(v mixed, on bool) (mixed, bool, error) { v.A++; return v, !on, errors.New(v.c) },
	func() { select {} },
	func(x []float64) []float64 { return append(x, 1) },
	func(x []float64) bool { return x == nil },
	func(m map[int]int) {},
	func() { // starts another program, and exits before it
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "KRRLAB_TEST_SERVE=wait")
		if cmd.Start() == nil {
			os.Exit(3)
		}
	},
}

// TestMain runs this test binary as a program that serves functions, or as one of the other programs that the tests
// need, if KRRLAB_TEST_SERVE is set.
func TestMain(m *testing.M) {
	switch os.Getenv("KRRLAB_TEST_SERVE") {
	case "":
		os.Exit(m.Run())
	case "spin":
		for {
		}
	case "exit":
		os.Exit(2)
	case "wait": // until the test has removed its folder
		for {
			if _, err := os.Stat(os.Getenv("KRRLAB_TEST_FOLDER")); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	Serve("Cell 1", functions)
}

// startServing starts this test binary as a program that serves the functions. Only function 5 has an unsupported type.
func startServing(t *testing.T) *process {
	t.Helper()
	t.Setenv("KRRLAB_TEST_SERVE", "1")
	path := testkit.Must(os.Executable())
	program, greeting, err := start(t.Context(), "Cell 1", path)
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system can't start this program, which an emulator runs")
	}
	testkit.OK(t, err)
	t.Cleanup(func() { _ = program.cmd.Process.Kill() })
	for i := range functions {
		if got, want := greeting.nextText(), map[int]string{5: "takes map[int]int"}[i]; got != want {
			t.Errorf("function %d: %q, want %q", i, got, want)
		}
	}
	return program
}

// TestArgumentsAndResults calls functions with arguments and results of all supported kinds.
func TestArgumentsAndResults(t *testing.T) {
	program := startServing(t)
	argument := mixed{-128, math.MaxUint64, "ü", []float64{1, math.NaN()}, struct{ F float32 }{0.1}}
	var out mixed
	var flag bool
	var err error
	if callErr := program.Call(nil, 1, []any{argument, true}, []any{&out, &flag, &err}); callErr != nil {
		t.Fatal(callErr)
	}
	argument.A++
	if flag || err.Error() != "ü" || !math.IsNaN(out.d[1]) || out.A != -127 || out.b != argument.b || out.c != argument.c ||
		out.e != argument.e {
		t.Errorf("the results %+v, %v, %v are not those of the arguments", out, flag, err)
	}
	for _, x := range [][]float64{nil, {}, {5}} {
		var y []float64
		var isNil bool
		callErr := errors.Join(program.Call(nil, 3, []any{x}, []any{&y}), program.Call(nil, 4, []any{x}, []any{&isNil}))
		if callErr != nil || len(y) != len(x)+1 || isNil != (x == nil) {
			t.Errorf("slice %v: results %v and %v, %v", x, y, isNil, callErr)
		}
	}
}

// TestOverlappingSlices calls a function in the program with slices that share memory, from several goroutines, and
// compares the result with that of the same function in this process.
func TestOverlappingSlices(t *testing.T) {
	program := startServing(t)
	var wg sync.WaitGroup
	for scale := range 8 {
		// The slices begin at two offsets in one array, so that they overlap, coincide, or are apart.
		wg.Go(func() {
			for _, offsets := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {0, 5000 * scale}, {5000 * scale, 0}} {
				local, remote := make([]float64, 10000*scale+10), make([]float64, 10000*scale+10)
				for i := range local {
					local[i], remote[i] = float64(i), float64(i)
				}
				length := 5000*scale + 3
				functions[0].(func(_, _ []float64))(local[offsets[0]:][:length], local[offsets[1]:][:length])
				arguments := []any{remote[offsets[0]:][:length], remote[offsets[1]:][:length]}
				if err := program.Call(nil, 0, arguments, nil); err != nil || !reflect.DeepEqual(local, remote) {
					t.Errorf("%d at %v: %v", length, offsets, err)
				}
			}
		})
	}
	wg.Wait()
	if len(program.slots) > 8 || len(program.freeSlots) != len(program.slots) {
		t.Errorf("%d slots, %d of them free", len(program.slots), len(program.freeSlots))
	}
}

// TestProgramEnds checks that the program ends when the pipe from its parent is closed, even during a call, and that
// calls then fail with an error. A call also ends if it is interrupted.
func TestProgramEnds(t *testing.T) {
	program := startServing(t)
	result := make(chan error)
	go func() { result <- program.Call(nil, 2, nil, nil) }()
	testkit.OK(t, program.Call(nil, 4, []any{[]float64{}}, []any{new(bool)}))
	program.requests.Close()
	if err := <-result; err == nil ||
		err.Error() != "the compiled program has ended (exit status 0): run its cell again (Cell 1, line 1)" {
		t.Error(err)
	}
	testkit.Fails(t, program.Call(nil, 4, []any{[]float64{}}, []any{new(bool)}), "the compiled program has ended")
	program = startServing(t)
	interrupt := make(chan struct{})
	go func() { result <- program.Call(interrupt, 2, nil, nil) }()
	close(interrupt)
	if err := <-result; !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
}

// TestCallEndsWithProgram checks that a call ends with its program even if the program has started another one that
// continues.
func TestCallEndsWithProgram(t *testing.T) {
	t.Setenv("KRRLAB_TEST_FOLDER", t.TempDir())
	program := startServing(t)
	if err := program.Call(nil, 6, nil, nil); err == nil || !strings.HasPrefix(err.Error(),
		"the compiled program has ended (exit status 3): run its cell again") {
		t.Error(err)
	}
}

// TestStartErrors checks the errors for a program that exits before it serves, that does not serve before its context
// is cancelled, or that cannot be started.
func TestStartErrors(t *testing.T) {
	startServing(t)
	path := testkit.Must(os.Executable())
	t.Setenv("KRRLAB_TEST_SERVE", "exit")
	if _, _, err := start(t.Context(), "Cell 1", path); err == nil ||
		err.Error() != "the variables or init of the cell have ended its program (exit status 2) (Cell 1, line 1)" {
		t.Error(err)
	}
	t.Setenv("KRRLAB_TEST_SERVE", "spin")
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	if _, _, err := start(ctx, "Cell 1", path); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	path = filepath.Join(t.TempDir(), "program")
	testkit.OK(t, os.WriteFile(path, nil, 0o644))
	if _, _, err := start(t.Context(), "Cell 1", path); err == nil ||
		!strings.HasSuffix(err.Error(), "; set TMPDIR to a folder that programs may be started from") {
		t.Error(err)
	}
}

// TestArgumentsExceedMemory checks that a call whose arguments do not fit into memory fails, and that smaller calls
// still succeed.
func TestArgumentsExceedMemory(t *testing.T) {
	program := startServing(t)
	small := func() error { return program.Call(nil, 4, []any{[]float64{1}}, []any{new(bool)}) }
	testkit.OK(t, small())
	program.memoryFile.Close()
	testkit.Fails(t, program.Call(nil, 4, []any{make([]float64, 1<<16)}, []any{new(bool)}),
		"no memory for the arguments")
	if err := small(); err != nil {
		t.Error(err)
	}
}
