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

// Operators are linear operators by name. Each sets dst, n×k, to its product with x, n×k. args has the words of the
// request after the name.
type Operators map[string]func(ctx context.Context, args string, dst, x *mat.Dense) error

// Serve computes products for another program: it reads requests from r and writes answers to w, until r ends. A
// request is a line with the name of an operator and its args, followed by an n×k array. The answer is a line "answer"
// and an n×k array, or a line "error TEXT" if the operator fails. Lines and arrays have the form that the package
// documentation describes. Serve returns an error if a request is malformed or incomplete, if w fails, or if ctx ends.
func Serve(ctx context.Context, r io.Reader, w io.Writer, n int, operators Operators) error {
	input, output := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	for {
		line, err := input.ReadString('\n')
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
		x, err := receive(input, n, 0)
		if err != nil {
			return fmt.Errorf("process: the request %s: %w", name, err)
		}
		reply, y := "answer", mat.NewDense(n, x.RawMatrix().Cols, nil)
		if err = multiply(ctx, args, y, x); ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			reply, y = "error "+safe.Line(err.Error()), nil
		}
		if err := send(output, reply+"\n", y); err != nil {
			return err
		}
	}
}
