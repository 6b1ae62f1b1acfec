package process_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/precond/process"
)

const numPoints, dim = 40, 3 // points and coordinates of the kernel matrix that the child preconditions

// childEnv is the environment variable that turns the test binary into the child process. Its value is the kind of
// the child:
//
//   - good: a preconditioner with solves and draws;
//   - plain: a preconditioner with solves only;
//   - ask REQUEST: sends the request (see sendRequest) before each answer, and answers with the reply;
//   - twice: writes the line "answer" again after each answer;
//   - talks, long: writes a line that the protocol does not know, or that is too long, before it is ready;
//   - column: requests a column that does not exist;
//   - refuses, refuses later: reports an error before it is ready, or as its answer to a solve;
//   - silent, hangs: stops writing before it is ready, or when it should answer a solve;
//   - dies, killed: exits with status 3, or is killed, when it should answer a solve;
//   - parent: exits with status 7, while its own child keeps the pipes open;
//   - nan, shape: answers with a NaN, or with an array of the wrong shape;
//   - program COMMAND: is a program that starts a preconditioner with the shell command, and then waits.
const childEnv = "KRRLAB_TEST_PROCESS"

// TestMain runs the tests, or plays a child process if childEnv is set.
func TestMain(m *testing.M) {
	kind := os.Getenv(childEnv)
	if command, ok := strings.CutPrefix(kind, "program "); ok {
		os.Exit(runProgram(command))
	}
	if kind != "" {
		if err := runChild(kind, bufio.NewReader(os.Stdin), os.Stdout); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runChild speaks the protocol for M = 2I. Before it is ready, it sends one request of each kind and checks the shapes
// of the replies. Afterwards it behaves as the kind requires, see childEnv.
func runChild(kind string, input *bufio.Reader, out io.Writer) error {
	line, err := input.ReadString('\n')
	if err != nil {
		return err
	}
	var n, d, t int // points, dimension, right-hand sides
	var lambda float64
	var seed uint64
	if _, err := fmt.Sscanf(line, "krrlab 1 %d %d %d %g %d", &n, &d, &t, &lambda, &seed); err != nil || t != 2 ||
		lambda != 0.5 || seed != 7 {
		return fmt.Errorf("begins with %q: %v", line, err)
	}
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	var shapes []int
	for _, request := range []func() error{
		func() error { fmt.Fprintln(out, "points"); return nil },
		func() error { fmt.Fprintln(out, "columns"); return npy.Write(out, []int64{3, 1}, 2) },
		func() error { fmt.Fprintln(out, "neighbors 4"); return nil },
		func() error { fmt.Fprintln(out, "product"); return npy.Write(out, ones, n, 1) },
	} {
		if err := request(); err != nil {
			return err
		}
		header, _, err := npy.Read(input, 1<<20)
		if err != nil {
			return err
		}
		shapes = append(shapes, header.Shape...)
	}
	if got := fmt.Sprint(shapes); got != fmt.Sprintf("[%d %d %d 2 %d 4 %d 1]", n, d, n, n, n) {
		return fmt.Errorf("shapes %s", got)
	}
	switch kind {
	case "talks":
		fmt.Fprintln(out, "hello there")
	case "long":
		fmt.Fprintln(out, strings.Repeat("x", 1<<17))
	case "column":
		fmt.Fprintln(out, "columns")
		return errors.Join(npy.Write(out, []int64{int64(n)}, 1), waitForEnd(input))
	case "refuses":
		fmt.Fprintln(out, "error no M for this")
	case "silent":
		return waitForEnd(input)
	}
	if kind == "plain" {
		fmt.Fprintln(out, "ready")
	} else {
		fmt.Fprintln(out, "ready normal")
	}
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return err
		}
		columns, data := 1, any(nil)
		if strings.HasPrefix(line, "solve") {
			var header npy.Header
			if header, data, err = npy.Read(input, 1<<20); err != nil {
				return err
			}
			columns = header.Shape[1]
		}
		answer := make([]float64, n*columns)
		for i := range answer {
			if v, ok := data.([]float64); ok {
				answer[i] = v[i] / 2
			} else {
				answer[i] = math.Sqrt2
			}
		}
		if request, ok := strings.CutPrefix(kind, "ask "); ok {
			if answer, err = sendRequest(request, input, out); err != nil {
				return err
			}
			columns = len(answer) / n
		}
		switch kind {
		case "dies":
			fmt.Fprintln(os.Stderr, "one\ntwo\n\033[31mthree")
			os.Exit(3)
		case "killed":
			ownProcess, _ := os.FindProcess(os.Getpid())
			return errors.Join(ownProcess.Kill(), waitForEnd(input))
		case "parent":
			cmd := exec.Command("sleep", "600")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				return err
			}
			os.Exit(7)
		case "nan":
			answer[1] = math.NaN()
		case "hangs":
			return waitForEnd(input)
		case "shape":
			answer = answer[1:]
		case "refuses later":
			fmt.Fprintln(out, "error not today")
			continue
		}
		fmt.Fprintln(out, "answer")
		if kind == "shape" {
			err = npy.Write(out, answer, len(answer))
		} else {
			err = npy.Write(out, answer, n, columns)
		}
		if kind == "twice" {
			fmt.Fprintln(out, "answer")
		}
		if err != nil {
			return err
		}
	}
}

// sendRequest sends the request "LINE/ARRAY": the line, and the array of that name if there is one. It returns the
// numbers of the reply.
func sendRequest(request string, input *bufio.Reader, out io.Writer) (numbers []float64, err error) {
	line, array, _ := strings.Cut(request, "/")
	fmt.Fprintln(out, line)
	switch array {
	case "int32":
		err = npy.Write(out, []int32{5, 2}, 2)
	case "twice":
		err = npy.Write(out, []int64{1, 1}, 2)
	case "float64":
		err = npy.Write(out, []float64{1}, 1)
	case "ramp":
		ramp := make([]float64, 2*numPoints)
		for i := range ramp {
			ramp[i] = float64(i)
		}
		err = npy.Write(out, ramp, numPoints, 2)
	}
	if err != nil {
		return nil, err
	}
	_, data, err := npy.Read(input, 1<<20)
	switch v := data.(type) {
	case []float64:
		numbers = v
	case []int32:
		for _, j := range v {
			numbers = append(numbers, float64(j))
		}
	}
	return numbers, err
}

// TestRequests checks that the data that a preconditioner requests are those of K, that an invalid request is an error
// with the reason, and that NormalTo is an error for a preconditioner without draws.
func TestRequests(t *testing.T) {
	for request, want := range map[string]func(k *gram.Matrix, dst *mat.Dense) error{
		"points": func(k *gram.Matrix, dst *mat.Dense) error {
			points.RowsTo(k.Points(), dst.RawMatrix().Data, dim)
			return nil
		},
		"columns/int32": func(k *gram.Matrix, dst *mat.Dense) error { return k.Columns(t.Context(), []int{5, 2}, dst) },
		"neighbors 40": func(k *gram.Matrix, dst *mat.Dense) error {
			order := make([]int32, numPoints)
			for i := range order {
				order[i] = int32(i)
			}
			neighbors, err := k.Neighbors(t.Context(), order, numPoints)
			dst.Apply(func(i, j int, _ float64) float64 { return float64(neighbors.Index[i*numPoints+j]) }, dst)
			return err
		},
		"product/ramp": func(k *gram.Matrix, dst *mat.Dense) error {
			v := mat.NewDense(numPoints, 2, nil)
			v.Apply(func(i, j int, _ float64) float64 { return float64(2*i + j) }, v)
			return k.KMulTo(t.Context(), dst, v)
		},
	} {
		m, k := testkit.Must(startChild(t, "ask "+request, 0)), kernelMatrix(t)
		columns := cmp.Or(map[string]int{"points": dim, "neighbors 40": numPoints}[request], 2) // of the reply
		got := mat.NewDense(numPoints, columns, nil)
		truth := mat.DenseCopyOf(got)
		testkit.OK(t, m.SolveTo(t.Context(), got, mat.NewDense(numPoints, columns, nil)))
		if testkit.OK(t, want(k, truth)); !mat.Equal(got, truth) || mat.Norm(got, 2) == 0 {
			t.Errorf("%s: got %v, want %v", request, mat.Formatted(got), mat.Formatted(truth))
		}
		testkit.Fails(t, m.SolveTo(t.Context(), got, mat.NewDense(numPoints+1, 2, nil)), "M⁻¹ of 41×2 into 40")
	}
	for request, want := range map[string]string{
		"neighbors 0": "neighbors 0: want a number from 1 to 40", "neighbors 41": "neighbors 41: want",
		"neighbors x": "neighbors x: want", "columns/twice": "column 1: want different ones from 0 to 39",
		"columns/float64": "columns of type <f8 and shape [1]: want integers",
		"product/float64": "shape [1]: want float64 and 40×k", "error": "",
	} {
		m := testkit.Must(startChild(t, "ask "+request, 0))
		column := mat.NewDense(numPoints, 1, nil)
		err := m.SolveTo(t.Context(), column, column)
		if request == "error" { // without a reason, so the message ends with the word itself
			testkit.Equal(t, strings.HasSuffix(err.Error(), ": error"), true, err)
			continue
		}
		testkit.Fails(t, err, want)
	}
	m := testkit.Must(startChild(t, "plain", 0))
	err := m.NormalTo(t.Context(), mat.NewDense(numPoints, 1, nil), rng.New(1))
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NormalTo without draws: error %v, want %v", err, errors.ErrUnsupported)
	}
}

// waitForEnd waits until the input ends.
func waitForEnd(input io.Reader) error {
	_, err := io.Copy(io.Discard, input)
	return err
}

// kernelMatrix returns K + λI of 40 points with λ = 0.5.
func kernelMatrix(t *testing.T) *gram.Matrix {
	t.Helper()
	x := points.NewDense(numPoints, dim, testkit.Normals(1, 2, numPoints*dim))
	return testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, x, 0.5, nil))
}

// startChild starts the child of the given kind (see childEnv) with K + λI of kernelMatrix; timeout 0 means the
// default.
func startChild(t *testing.T, kind string, timeout time.Duration) (*process.Preconditioner, error) {
	t.Helper()
	exe, err := os.Executable()
	testkit.OK(t, err)
	return process.Start(t.Context(), fmt.Sprintf("%s='%s' %s", childEnv, kind, exe), kernelMatrix(t),
		process.Options{T: 2, Seed: 7, Timeout: timeout})
}

// TestSolvesAndDraws checks M⁻¹R and a draw from N(0, M) of a preconditioner in a child process.
func TestSolvesAndDraws(t *testing.T) {
	m := testkit.Must(startChild(t, "good", 0))
	r, dst := mat.NewDense(numPoints, 2, nil), mat.NewDense(numPoints, 2, nil)
	for i := range numPoints {
		r.Set(i, 1, float64(i))
	}
	testkit.OK(t, m.SolveTo(t.Context(), dst, r))
	dst.Scale(2, dst)
	if m.Dim() != numPoints || !mat.Equal(dst, r) {
		t.Errorf("order %d, M⁻¹R = %v", m.Dim(), mat.Formatted(dst.T()))
	}
	column := mat.NewDense(numPoints, 1, nil)
	if err := m.NormalTo(t.Context(), column, rng.New(1)); err != nil || column.At(5, 0) != math.Sqrt2 {
		t.Errorf("draws %v: %v", column.At(5, 0), err)
	}
}

// TestUnexpectedOutput checks that output that arrives before a request is not read as the answer to that request.
func TestUnexpectedOutput(t *testing.T) {
	m, err := startChild(t, "twice", 0)
	testkit.OK(t, err)
	r, dst := mat.NewDense(numPoints, 1, nil), mat.NewDense(numPoints, 1, nil)
	for err == nil { // until the second line "answer" has arrived
		err = m.SolveTo(t.Context(), dst, r)
	}
	testkit.Contains(t, err.Error(), "standard output")
}

// TestConformance checks that a preconditioner in a child process passes the tests of every preconditioner, also after
// a call with a canceled context, which must not end the process.
func TestConformance(t *testing.T) {
	m := testkit.Must(startChild(t, "plain", 0))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	column := mat.NewDense(numPoints, 1, nil)
	if err := m.SolveTo(canceled, column, column); !errors.Is(err, context.Canceled) {
		t.Errorf("a call with a canceled context: error %v, want %v", err, context.Canceled)
	}
	testkit.OK(t, precondtest.Test(t.Context(), m, nil))
}

// TestFaults checks that a process that dies, hangs, refuses or sends wrong data yields an error of one line that names
// the fault, that a process that is refused does not survive, and that a call ends when its context is canceled.
func TestFaults(t *testing.T) {
	for kind, want := range map[string]string{
		"talks":   "answer or error: its standard output carries the protocol; print to standard error",
		"long":    "a line of more than",
		"column":  "column 40: want different ones from 0 to 39",
		"refuses": "no M for this",
		"silent":  `no answer to "krrlab" within 100ms`,
		"dies":    `it ended (exit status 3) before it answered "solve"; its last lines: one / two / \x1b[31mthree`,
		"hangs":   `no answer to "`,
		"killed":  `of signal 9) before it answered "solve"`,
		"parent":  `it ended (exit status 7) before it answered "solve"`,
		"nan":     "an array with NaN in row 1, column 0",
		"shape":   "shape [39]: want float64 and 40×1", "refuses later": "not today",
	} {
		timeout := 20 * time.Second
		if strings.Contains(want, "no answer") {
			timeout = 100 * time.Millisecond
		}
		m, err := startChild(t, kind, timeout)
		if err == nil {
			r := mat.NewDense(numPoints, 1, nil)
			err = m.SolveTo(t.Context(), mat.NewDense(numPoints, 1, nil), r)
			if second := m.SolveTo(t.Context(), mat.NewDense(numPoints, 1, nil), r); second == nil {
				t.Errorf("%s: the next request is answered, want an error", kind)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", kind, err, want)
		}
	}

	k, pidFile := kernelMatrix(t), filepath.Join(t.TempDir(), "pid")
	refusing := "echo $$ >'" + pidFile + "'; echo error no; exec sleep 600"
	_, err := process.Start(t.Context(), refusing, k, process.Options{})
	pid := testkit.Must(strconv.Atoi(strings.TrimSpace(string(testkit.Must(os.ReadFile(pidFile))))))
	testkit.Equal(t, err != nil, true, "error of a process that refuses")
	if survivor, errFind := os.FindProcess(pid); errFind == nil && survivor.Signal(syscall.Signal(0)) == nil {
		t.Errorf("the process lives on after %v", err)
	}

	closesOutput := "exec >&-; exec sleep 600" // closes its standard output and lives on
	_, err = process.Start(t.Context(), closesOutput, k, process.Options{})
	testkit.Contains(t, fmt.Sprint(err), `it closed its standard input or output before it answered "krrlab"`)

	ctx, cancel := context.WithCancel(t.Context())
	m, err := startChild(t, "hangs", 0)
	testkit.OK(t, err)
	time.AfterFunc(20*time.Millisecond, cancel)
	column := mat.NewDense(numPoints, 1, nil)
	if err := m.SolveTo(ctx, column, column); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error %v, want %v", err, context.Canceled)
	}
}

// runProgram starts a preconditioner with a command, prints a line when it is ready, and returns when its standard
// input ends.
func runProgram(command string) (exitCode int) {
	x := points.NewDense(numPoints, dim, testkit.Normals(1, 2, numPoints*dim))
	k := testkit.Must(gram.New(context.Background(), kernel.Gaussian{Sigma: 1}, x, 0.5, nil))
	m := testkit.Must(process.Start(context.Background(), command, k, process.Options{}))
	fmt.Println("order", m.Dim())
	_ = waitForEnd(os.Stdin)
	return 0
}

// TestChildProcesses checks that child processes of a preconditioner's command end with the command, and that they end
// with the program that started the command, when that returns and when it is killed.
func TestChildProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("child processes end with their command on Unix only")
	}
	for name, test := range map[string]struct {
		lastStep string // of the command
		end      func(program *exec.Cmd, input io.Closer) error
	}{
		"the command ends":    {"exit 0", func(*exec.Cmd, io.Closer) error { return nil }},
		"the program returns": {"exec cat", func(_ *exec.Cmd, input io.Closer) error { return input.Close() }},
		"the program is killed": {"exec cat", func(program *exec.Cmd,
			_ io.Closer) error {
			return program.Process.Kill()
		}},
	} {
		pidFile := filepath.Join(t.TempDir(), "pid")
		// The child process does not read from a pipe, so that only a signal can end it.
		command := fmt.Sprintf("sleep 600 </dev/null & echo $! >'%s'; read line; echo ready; %s", pidFile,
			test.lastStep)
		program := exec.Command(testkit.Must(os.Executable()))
		program.Env = append(os.Environ(), childEnv+"=program "+command)
		input, output := testkit.Must(program.StdinPipe()), testkit.Must(program.StdoutPipe())
		testkit.OK(t, program.Start())
		testkit.Must(bufio.NewReader(output).ReadString('\n'))
		testkit.OK(t, test.end(program, input))
		pid := testkit.Must(strconv.Atoi(strings.TrimSpace(string(testkit.Must(os.ReadFile(pidFile))))))
		for deadline := time.Now().Add(time.Minute); isRunning(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s: the child process does not end", name)
				child, err := os.FindProcess(pid)
				testkit.OK(t, errors.Join(err, child.Kill()))
				break
			}
		}
		_ = program.Process.Kill()
		_ = program.Wait()
	}
}

// isRunning reports whether there is a process with this number that has not ended. A process that has ended exists
// until its parent has received its exit status.
func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(status), ") Z ")
}
