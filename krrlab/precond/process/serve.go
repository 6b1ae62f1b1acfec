package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// Operators are linear operators by name. Each sets dst, n×k, to its product with x, n×k. args are the further words of
// the request.
type Operators map[string]func(ctx context.Context, args string, dst, x *mat.Dense) error

// Serve computes products for another program, until r ends. A request is a line with the name of an operator and its
// args, followed by an n×k array; the answer is a line "answer" and an array, or a line "error TEXT". Lines and arrays
// have the form that the package describes. Serve returns an error if a request is malformed, or if ctx ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer, n int, operators Operators) error {
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("process: the request %q: %w", line, err)
		}
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		multiply := operators[name]
		if multiply == nil {
			return fmt.Errorf("process: no operator is named %q", name)
		}
		x, err := receive(in, n, 0)
		if err != nil {
			return fmt.Errorf("process: the request %s: %w", name, err)
		}
		status, y := "answer", mat.NewDense(n, x.RawMatrix().Cols, nil)
		if err = multiply(ctx, args, y, x); ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			status, y = "error "+safe.Line(err.Error()), nil
		}
		if err := send(out, status+"\n", y); err != nil {
			return err
		}
	}
}
