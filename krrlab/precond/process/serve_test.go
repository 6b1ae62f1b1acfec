package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/process"
)

// operators returns the operators "scale FACTOR", "fail", and "cancel", which calls the given function.
func operators(cancel func()) process.Operators {
	return process.Operators{
		"scale": func(_ context.Context, args string, dst, x *mat.Dense) error {
			var factor float64
			_, err := fmt.Sscan(args, &factor)
			dst.Scale(factor, x)
			return err
		},
		"fail":   func(context.Context, string, *mat.Dense, *mat.Dense) error { return errors.New("no\nproduct") },
		"cancel": func(ctx context.Context, _ string, _, _ *mat.Dense) error { cancel(); return ctx.Err() },
	}
}

// writeRequest writes a request with an n×k array to w.
func writeRequest(w io.Writer, line string, n, columns int) {
	v := make([]float64, n*columns)
	for i := range v {
		v[i] = float64(i)
	}
	fmt.Fprintln(w, line)
	_ = npy.Write(w, v, n, columns)
}

// TestServe checks that requests are answered in order and that an operator's error is sent as an answer. A malformed
// request, a canceled context and an incomplete request must end Serve with an error.
func TestServe(t *testing.T) {
	var input, output bytes.Buffer
	writeRequest(&input, "scale 2.5", 3, 2)
	writeRequest(&input, "fail", 3, 1)
	writeRequest(&input, "scale -1", 3, 1)
	testkit.OK(t, process.Serve(t.Context(), &input, &output, 3, operators(nil)))
	r := bufio.NewReader(&output)
	for _, want := range []struct {
		line    string
		columns int
		factor  float64
	}{{"answer\n", 2, 2.5}, {`error no\nproduct` + "\n", 0, 0}, {"answer\n", 1, -1}} {
		line, err := r.ReadString('\n')
		testkit.OK(t, err)
		testkit.Equal(t, line, want.line)
		if want.columns == 0 {
			continue
		}
		header, data, err := npy.Read(r, 1<<20)
		testkit.OK(t, err)
		testkit.Equal(t, fmt.Sprint(header.Shape), fmt.Sprint([]int{3, want.columns}))
		for i, v := range data.([]float64) {
			testkit.Equal(t, v, want.factor*float64(i))
		}
	}
	testkit.Equal(t, r.Buffered()+output.Len(), 0, "bytes after the last answer")

	for want, write := range map[string]func(w io.Writer){
		`no operator is named "multiply"`: func(w io.Writer) { writeRequest(w, "multiply", 3, 1) },
		"want float64 and 3×k":            func(w io.Writer) { writeRequest(w, "scale 1", 4, 1) },
		"unexpected EOF":                  func(w io.Writer) { fmt.Fprint(w, "scale 1\n\x93NUM") },
		`the request "scale"`:             func(w io.Writer) { fmt.Fprint(w, "scale") },
	} {
		input.Reset()
		write(&input)
		testkit.Fails(t, process.Serve(t.Context(), &input, io.Discard, 3, operators(nil)), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	input.Reset()
	writeRequest(&input, "cancel", 3, 1)
	if err := process.Serve(ctx, &input, io.Discard, 3, operators(cancel)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error %v, want %v", err, context.Canceled)
	}
	testkit.Fails(t, process.Serve(t.Context(), strings.NewReader("scale 1\n"), io.Discard, 3, operators(nil)), "EOF")
}
