package process

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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/group"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

// Options configures Start. Zero values mean the defaults.
type Options struct {
	T       int           // the number of right-hand sides of the problem
	Seed    uint64        // seed for the random numbers of M
	Timeout time.Duration // limit for the construction of M, and for each answer; default: 5 minutes
}

// Preconditioner is an M that another process computes. It implements pcg.Preconditioner and lanczos.Metric. Requests
// are sent one at a time.
type Preconditioner struct {
	matrix  *gram.Matrix // K+λI
	command string
	timeout time.Duration
	cmd     *exec.Cmd
	stdin   *bufio.Writer // standard input of the process
	stdout  *bufio.Reader // standard output of the process
	stderr  *tail
	canDraw bool          // the process can draw from N(0, M)
	exited  chan struct{} // closed when the process has ended and its standard error has been read
	output  chan error    // after an answer: receives nil when there is more output, or the error of reading it

	mu       sync.Mutex
	fatalErr error // if not nil, the result of every further request
}

// Start starts the process that runs command in a shell, and waits until M for the matrix k is ready. The process ends
// when ctx ends. Start returns an error if the process does not start, reports an error, or is not ready within
// options.Timeout.
func Start(ctx context.Context, command string, k *gram.Matrix, options Options) (*Preconditioner, error) {
	p := &Preconditioner{matrix: k, command: command, timeout: cmp.Or(options.Timeout, 5*time.Minute), stderr: &tail{},
		cmd: exec.CommandContext(ctx, "sh", "-c", command)}
	p.exited, p.output = make(chan struct{}), make(chan error, 1)
	group.SignalOnCancel(p.cmd, syscall.SIGKILL)
	p.cmd.Stderr, p.cmd.WaitDelay = p.stderr, drainTime
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	n, d := k.Points().Dims()
	_, err := p.request(ctx, fmt.Sprintf("krrlab 1 %d %d %d %v %d", n, d, options.T, k.Lambda(), options.Seed), nil, 0)
	if err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// drainTime limits the time for which the output of an ended process is read. The output does not end with the process
// if another process has its pipes open.
const drainTime = 200 * time.Millisecond

// start starts the process with two pipes, and a goroutine that waits until the process has ended and then kills its
// child processes.
func (p *Preconditioner) start() error {
	stdinReader, stdinWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdinReader.Close() // the process has its own copy
	stdoutReader, stdoutWriter, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdinWriter.Close())
	}
	defer stdoutWriter.Close()
	p.cmd.Stdin, p.cmd.Stdout = stdinReader, stdoutWriter
	p.stdin, p.stdout = bufio.NewWriterSize(stdinWriter, 1<<16), bufio.NewReaderSize(stdoutReader, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, stdinWriter.Close(), stdoutReader.Close())
	}
	_ = group.KillWithProgram(p.cmd) // without it, child processes of the command may outlive this program
	go func() {
		_ = p.cmd.Wait()
		group.Kill(p.cmd) // child processes that outlive the command
		close(p.exited)
		_, _ = stdinWriter.SetWriteDeadline(time.Now()), stdoutReader.SetReadDeadline(time.Now().Add(drainTime))
		p.mu.Lock() // wait until no request is in progress
		defer p.mu.Unlock()
		p.fatalErr = cmp.Or(p.fatalErr, p.failure(errors.New(p.describeEnd())))
		stdinWriter.Close()
		stdoutReader.Close()
	}()
	return nil
}

// kill kills the process and all its child processes, and waits for its end.
func (p *Preconditioner) kill() {
	group.Kill(p.cmd)
	<-p.exited
}

// Dim returns n.
func (p *Preconditioner) Dim() int { return p.matrix.Dim() }

// SolveTo sets dst = M⁻¹r, n×k. It returns an error if the shapes do not match, or the process reports an error. If the
// process does not answer with finite numbers of this shape in time, it is killed, and this and every further call
// return an error.
func (p *Preconditioner) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	n, k := r.Dims()
	if dstRows, dstColumns := dst.Dims(); n != p.Dim() || dstRows != n || dstColumns != k {
		return fmt.Errorf("process: M⁻¹ of %d×%d into %d×%d, of order %d", n, k, dstRows, dstColumns, p.Dim())
	}
	x, err := p.request(ctx, "solve", r, k)
	if err == nil {
		dst.Copy(x)
	}
	return err
}

// NormalTo sets dst, n×1, to a draw from N(0, M). Its error wraps errors.ErrUnsupported if the process cannot draw.
func (p *Preconditioner) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if !p.canDraw {
		return fmt.Errorf("process: %s does not draw: %w", p.command, errors.ErrUnsupported)
	}
	x, err := p.request(ctx, "normal "+strconv.FormatUint(g.Uint64(0)>>1, 10), nil, 1)
	if err == nil {
		dst.Copy(x)
	}
	return err
}

// reportedError is the text of an "error" message of the process, after which the process remains usable.
type reportedError string

// Error returns the text.
func (e reportedError) Error() string { return string(e) }

// request sends a request line and the array x, if not nil. It serves the requests of the process until the process
// answers with an n×k matrix or, for k = 0, until it is ready. If an error occurs, other than one that the process
// reports, request kills the process.
func (p *Preconditioner) request(ctx context.Context, line string, x *mat.Dense, k int) (*mat.Dense, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmp.Or(ctx.Err(), p.fatalErr); err != nil { // nothing has been sent yet: the process remains usable
		return nil, err
	}
	word, _, _ := strings.Cut(line, " ")
	limitedCtx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no answer to %q within %v "+
		"(--process-timeout, or process-timeout= in --precond)", word, p.timeout))
	defer cancel()
	stopKilling := context.AfterFunc(limitedCtx, func() { group.Kill(p.cmd) })
	defer stopKilling()
	answer, err := p.serve(limitedCtx, line, x, k)
	_, reported := errors.AsType[reportedError](err)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case reported:
		return nil, fmt.Errorf("process: %s: %w", p.command, err)
	case limitedCtx.Err() != nil:
		err = context.Cause(limitedCtx)
	case isClosed(err):
		err = fmt.Errorf("%s before it answered %q", p.describeEnd(), word)
	}
	p.kill() // after this, its standard error is complete
	p.fatalErr = p.failure(err)
	return nil, p.fatalErr
}

// failure returns err with the command and the last lines of its standard error added.
func (p *Preconditioner) failure(err error) error {
	return fmt.Errorf("process: %s: %w%s", p.command, err, p.stderr)
}

// describeEnd describes how the process ended, after reading from it or writing to it has failed.
func (p *Preconditioner) describeEnd() string {
	select {
	case <-p.exited:
	case <-time.After(drainTime):
		return "it closed its standard input or output"
	}
	text := fmt.Sprintf("it ended (%v", p.cmd.ProcessState)
	// If a signal killed the command, the shell exits with 128 plus the number of the signal.
	if code := p.cmd.ProcessState.ExitCode(); code > 128 {
		text += fmt.Sprintf(", of signal %d", code-128)
	}
	return text + ")"
}

// isClosed reports whether err means that the other end of a pipe is closed.
func isClosed(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, os.ErrDeadlineExceeded, os.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serve sends a request, and then processes messages until the process answers or is ready; see request.
func (p *Preconditioner) serve(ctx context.Context, line string, x *mat.Dense, k int) (*mat.Dense, error) {
	if k > 0 {
		select {
		case err := <-p.output:
			return nil, cmp.Or(err, fmt.Errorf("output before the request %q%s", line, protocolAdvice))
		default:
		}
	}
	if err := send(p.stdin, line+"\n", x); err != nil {
		return nil, err
	}
	if k > 0 {
		if err := <-p.output; err != nil {
			return nil, err
		}
	}
	for {
		text, err := p.stdout.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("a line of more than %d bytes%s", len(text), protocolAdvice)
		}
		if err != nil {
			return nil, err
		}
		word, args, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		switch {
		case word == "answer" && k > 0:
			x, err := receive(p.stdout, p.Dim(), k)
			p.lookAhead()
			return x, err
		case word == "ready" && k == 0:
			p.canDraw = strings.Contains(" "+args+" ", " normal ")
			p.lookAhead()
			return nil, nil
		case word == "error":
			if k > 0 {
				p.lookAhead()
			}
			return nil, reportedError(safe.Line(cmp.Or(args, "error")))
		}
		if err := p.answer(ctx, word, args); err != nil {
			return nil, err
		}
	}
}

// protocolAdvice ends error messages about output that is not a message of the protocol.
const protocolAdvice = ": its standard output carries the protocol; print to standard error"

// lookAhead detects output before the next request. It would otherwise be mistaken for the answer to that request.
func (p *Preconditioner) lookAhead() {
	go func() {
		_, err := p.stdout.Peek(1)
		p.output <- err
	}()
}

// receive reads an n×k matrix, or one with n rows and any number of columns if k = 0. It returns an error unless all
// its entries are finite float64 numbers.
func receive(r *bufio.Reader, n, k int) (*mat.Dense, error) {
	columns := "k"
	if k > 0 {
		columns = strconv.Itoa(k)
	}
	header, data, err := npy.Read(r, max(1<<32, 8*int64(n)*int64(k)+1<<20))
	if err != nil && !isClosed(err) {
		err = fmt.Errorf("%w%s", err, protocolAdvice)
	}
	if err != nil {
		return nil, err
	}
	entries, ok := data.([]float64)
	if !ok || len(entries) == 0 || k > 0 && len(entries) != n*k || len(header.Shape) == 0 || header.Shape[0] != n {
		return nil, fmt.Errorf("an array of type %s and shape %v: want float64 and %d×%s", header.Descr, header.Shape,
			n, columns)
	}
	for i, v := range entries {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("an array with %v in row %d, column %d", v, i/(len(entries)/n), i%(len(entries)/n))
		}
	}
	return mat.NewDense(n, len(entries)/n, entries), nil
}

// send writes a line, and the array x if it is not nil.
func send(w *bufio.Writer, line string, x *mat.Dense) error {
	_, err := w.WriteString(line)
	if err == nil && x != nil {
		n, k := x.Dims()
		err = npy.Write(w, x.RawMatrix().Data, n, k)
	}
	if err == nil {
		err = w.Flush()
	}
	return err
}

// answer sends the data for a request of the process, which consists of a word and its arguments. It returns an error
// if the request is invalid.
func (p *Preconditioner) answer(ctx context.Context, word, args string) error {
	n := p.Dim()
	var reply *mat.Dense
	switch word {
	case "points":
		x := p.matrix.Points()
		_, d := x.Dims()
		reply = mat.NewDense(n, d, nil)
		for i := range n {
			x.RowTo(reply.RawRowView(i), i)
		}
	case "columns":
		columns, err := p.readColumnIndices()
		if err != nil {
			return err
		}
		reply = mat.NewDense(n, len(columns), nil)
		if err := p.matrix.Columns(ctx, columns, reply); err != nil {
			return err
		}
	case "neighbors":
		count, err := strconv.Atoi(strings.TrimSpace(args))
		if err != nil || count < 1 || count > n {
			return fmt.Errorf("neighbors %s: want a number from 1 to %d", args, n)
		}
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		neighbors, err := p.matrix.Neighbors(ctx, order, count)
		if err != nil {
			return err
		}
		if err := npy.Write(p.stdin, neighbors.Index, n, count); err != nil {
			return err
		}
	case "product":
		v, err := receive(p.stdout, n, 0)
		if err != nil {
			return err
		}
		reply = mat.NewDense(n, v.RawMatrix().Cols, nil)
		if err := p.matrix.KMulTo(ctx, reply, v); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it says %q: want points, columns, neighbors, product, ready, answer or error%s", word,
			protocolAdvice)
	}
	return send(p.stdin, "", reply)
}

// readColumnIndices reads the indices of the requested columns of K. It returns an error unless they are distinct and
// in range.
func (p *Preconditioner) readColumnIndices() ([]int, error) {
	header, data, err := npy.Read(p.stdout, 8*int64(p.Dim())+1<<20)
	if err != nil {
		return nil, err
	}
	indices, _ := npy.ToInts(data)
	requested := map[int]bool{}
	for _, j := range indices {
		if j < 0 || j >= p.Dim() || requested[j] {
			return nil, fmt.Errorf("column %d: want different ones from 0 to %d", j, p.Dim()-1)
		}
		requested[j] = true
	}
	if len(indices) == 0 {
		return nil, fmt.Errorf("columns of type %s and shape %v: want integers", header.Descr, header.Shape)
	}
	return indices, nil
}

// tail is a writer that stores the last tailBytes bytes written to it, for the standard error of a process.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 400 // enough for three lines of an error message

// Write appends b.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

// String returns the last three lines on one line, as the end of an error message, or "" if nothing was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.FieldsFunc(string(t.text), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return ""
	}
	return "; its last lines: " + safe.Line(strings.Join(lines[max(0, len(lines)-3):], " / "))
}
