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

// Options of Start. Zero values mean the defaults.
type Options struct {
	T       int           // right-hand sides that there will be
	Seed    uint64        // of M
	Timeout time.Duration // of an answer, and of being ready; default: 5 minutes
}

// Preconditioner is M of a process. It is a pcg.Preconditioner and a lanczos.Metric, one request at a time.
type Preconditioner struct {
	k       *gram.Matrix
	command string
	timeout time.Duration
	cmd     *exec.Cmd
	to      *bufio.Writer
	from    *bufio.Reader
	stderr  *tail
	normal  bool
	exited  chan struct{} // closed when the process has ended and its standard error was read
	next    chan error    // after an answer: nil as soon as there is more output, or the error of reading it

	mu     sync.Mutex
	scale  float64 // power of two by which answers are multiplied; 0 before the first answer
	broken error   // after which nothing is asked
}

// Start starts the process and waits until it is ready. It ends with ctx.
func Start(ctx context.Context, command string, k *gram.Matrix, o Options) (*Preconditioner, error) {
	p := &Preconditioner{k: k, command: command, timeout: cmp.Or(o.Timeout, 5*time.Minute), stderr: &tail{},
		cmd: exec.CommandContext(ctx, "sh", "-c", command)}
	p.exited, p.next = make(chan struct{}), make(chan error, 1)
	group.Cancel(p.cmd, syscall.SIGKILL)
	p.cmd.Stderr, p.cmd.WaitDelay = p.stderr, drain
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	n, d := k.Points().Dims()
	_, err := p.ask(ctx, fmt.Sprintf("krrlab 1 %d %d %d %v %d", n, d, o.T, k.Lambda(), o.Seed), nil, 0)
	if err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// drain is for how long output of a process that has ended is still read, if another process holds its pipes open.
const drain = 200 * time.Millisecond

// start starts the process on two pipes, and watches for its end.
func (p *Preconditioner) start() error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close() // the process has its own
	out, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	defer stdout.Close()
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	p.to, p.from = bufio.NewWriterSize(in, 1<<16), bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
		_, _ = in.SetWriteDeadline(time.Now()), out.SetReadDeadline(time.Now().Add(drain))
		p.mu.Lock() // no request is under way
		defer p.mu.Unlock()
		p.broken = cmp.Or(p.broken, p.failure(errors.New(p.ending())))
		in.Close()
		out.Close()
	}()
	return nil
}

// kill ends the process, with all that it has started, and waits for it.
func (p *Preconditioner) kill() {
	group.Kill(p.cmd)
	<-p.exited
}

// Dim returns n.
func (p *Preconditioner) Dim() int { return p.k.Dim() }

// SolveTo sets dst = M⁻¹r, n×k.
func (p *Preconditioner) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	n, k := r.Dims()
	if dn, dk := dst.Dims(); n != p.Dim() || dn != n || dk != k {
		return fmt.Errorf("process: M⁻¹ of %d×%d into %d×%d, of order %d", n, k, dn, dk, p.Dim())
	}
	x, err := p.ask(ctx, "solve", r, k)
	if err == nil {
		dst.Scale(p.rescaled(mat.Norm(x, math.Inf(1))/mat.Norm(r, math.Inf(1))), x)
	}
	return err
}

// rescaled returns the power of two by which all answers to solve are multiplied. The first size of M⁻¹ decides: 1,
// unless products such as rᵀM⁻¹AM⁻¹r could leave the range of float64. Conjugate gradients and κ(M⁻¹A) do not depend
// on it.
func (p *Preconditioner) rescaled(size float64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, e := math.Frexp(size); p.scale == 0 && size > 0 && !math.IsInf(size, 1) {
		if p.scale = 1; max(e, -e) > mostExponent {
			p.scale = math.Ldexp(1, -e/2*2)
		}
	}
	return cmp.Or(p.scale, 1)
}

// mostExponent is the largest power of two in ‖M⁻¹R‖/‖R‖ that is left as it is.
const mostExponent = 200

// NormalTo sets dst, n×1, to a draw of N(0, M). Its error wraps errors.ErrUnsupported where the process cannot.
func (p *Preconditioner) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if !p.normal {
		return fmt.Errorf("process: %s does not draw: %w", p.command, errors.ErrUnsupported)
	}
	x, err := p.ask(ctx, "normal "+strconv.FormatUint(g.Uint64(0)>>1, 10), nil, 1)
	if err == nil {
		dst.Scale(1/math.Sqrt(p.rescaled(math.Pow(mat.Norm(x, math.Inf(1)), -2))), x)
	}
	return err
}

// refusal is an error that the process says.
type refusal string

func (e refusal) Error() string { return string(e) }

// ask sends a request and serves the process until it answers, with an n×k matrix, or until it is ready (k = 0). After an
// error that is not the process's own it is ended.
func (p *Preconditioner) ask(ctx context.Context, line string, x *mat.Dense, k int) (*mat.Dense, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmp.Or(ctx.Err(), p.broken); err != nil { // nothing is under way that the end of ctx would break
		return nil, err
	}
	word, _, _ := strings.Cut(line, " ")
	within, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no answer to %q within %v (--process-timeout)",
		word, p.timeout))
	defer cancel()
	stop := context.AfterFunc(within, func() { group.Kill(p.cmd) })
	defer stop()
	answer, err := p.serve(within, line, x, k)
	_, refused := errors.AsType[refusal](err)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case refused:
		return nil, fmt.Errorf("process: %s: %w", p.command, err)
	case within.Err() != nil:
		err = context.Cause(within)
	case gone(err):
		err = fmt.Errorf("%s before it answered %q", p.ending(), word)
	}
	p.kill() // its last lines are there then
	p.broken = p.failure(err)
	return nil, p.broken
}

// failure returns an error with the command, and the last lines of its standard error.
func (p *Preconditioner) failure(err error) error {
	return fmt.Errorf("process: %s: %w%s", p.command, err, p.stderr)
}

// ending says how a process ended that does not read or write any more.
func (p *Preconditioner) ending() string {
	select {
	case <-p.exited:
	case <-time.After(drain):
		return "it closed its standard input or output"
	}
	text := fmt.Sprintf("it ended (%v", p.cmd.ProcessState)
	if code := p.cmd.ProcessState.ExitCode(); code > 128 { // by the shell
		text += fmt.Sprintf(", of signal %d", code-128)
	}
	return text + ")"
}

// gone reports whether err says that nobody is at the other end of a pipe any more.
func gone(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, os.ErrDeadlineExceeded, os.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// serve sends a request and goes through what the process says until it answers.
func (p *Preconditioner) serve(ctx context.Context, line string, x *mat.Dense, k int) (*mat.Dense, error) {
	if k > 0 {
		select {
		case err := <-p.next:
			return nil, cmp.Or(err, fmt.Errorf("output before the request %q%s", line, protocol))
		default:
		}
	}
	if err := p.send(line+"\n", x); err != nil {
		return nil, err
	}
	if k > 0 {
		if err := <-p.next; err != nil {
			return nil, err
		}
	}
	for {
		text, err := p.from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("a line of more than %d bytes%s", len(text), protocol)
		}
		if err != nil {
			return nil, err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		switch {
		case word == "answer" && k > 0:
			x, err := p.receive(k)
			p.lookAhead()
			return x, err
		case word == "ready" && k == 0:
			p.normal = strings.Contains(" "+rest+" ", " normal ")
			p.lookAhead()
			return nil, nil
		case word == "error":
			if k > 0 {
				p.lookAhead()
			}
			return nil, refusal(safe.Line(cmp.Or(rest, "error")))
		}
		if err := p.give(ctx, word, rest); err != nil {
			return nil, err
		}
	}
}

// protocol is what to do about output that is no message.
const protocol = ": its standard output carries the protocol; print to standard error"

// lookAhead notices output that comes before the next request, which would pass for its answer.
func (p *Preconditioner) lookAhead() {
	go func() {
		_, err := p.from.Peek(1)
		p.next <- err
	}()
}

// receive reads an n×k matrix, of any k for 0.
func (p *Preconditioner) receive(k int) (*mat.Dense, error) {
	n, columns := p.Dim(), "k"
	if k > 0 {
		columns = strconv.Itoa(k)
	}
	h, data, err := npy.Read(p.from, max(1<<32, 8*int64(n)*int64(k)+1<<20))
	if err != nil && !gone(err) {
		err = fmt.Errorf("%w%s", err, protocol)
	}
	if err != nil {
		return nil, err
	}
	v, ok := data.([]float64)
	if !ok || len(v) == 0 || k > 0 && len(v) != n*k || len(h.Shape) == 0 || h.Shape[0] != n {
		return nil, fmt.Errorf("an array of type %s and shape %v: want float64 and %d×%s", h.Descr, h.Shape, n, columns)
	}
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("an array with %v in row %d, column %d", x, i/(len(v)/n), i%(len(v)/n))
		}
	}
	return mat.NewDense(n, len(v)/n, v), nil
}

// send writes a line and the array, unless it is nil.
func (p *Preconditioner) send(line string, x *mat.Dense) error {
	_, err := p.to.WriteString(line)
	if err == nil && x != nil {
		n, k := x.Dims()
		err = npy.Write(p.to, x.RawMatrix().Data, n, k)
	}
	if err == nil {
		err = p.to.Flush()
	}
	return err
}

// give serves what the process asks for.
func (p *Preconditioner) give(ctx context.Context, word, rest string) error {
	n := p.Dim()
	var to *mat.Dense
	switch word {
	case "points":
		x := p.k.Points()
		_, d := x.Dims()
		to = mat.NewDense(n, d, nil)
		for i := range n {
			x.RowTo(to.RawRowView(i), i)
		}
	case "columns":
		idx, err := p.columns()
		if err != nil {
			return err
		}
		to = mat.NewDense(n, len(idx), nil)
		if err := p.k.Columns(ctx, idx, to); err != nil {
			return err
		}
	case "neighbors":
		count, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil || count < 1 || count > n {
			return fmt.Errorf("neighbors %s: want a number from 1 to %d", rest, n)
		}
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		near, err := p.k.Neighbors(ctx, order, count)
		if err != nil {
			return err
		}
		if err := npy.Write(p.to, near.Index, n, count); err != nil {
			return err
		}
	case "product":
		v, err := p.receive(0)
		if err != nil {
			return err
		}
		to = mat.NewDense(n, v.RawMatrix().Cols, nil)
		if err := p.k.KMulTo(ctx, to, v); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it says %q: want points, columns, neighbors, product, ready, answer or error%s", word, protocol)
	}
	return p.send("", to)
}

// columns reads which columns of K are wanted.
func (p *Preconditioner) columns() ([]int, error) {
	h, data, err := npy.Read(p.from, 8*int64(p.Dim())+1<<20)
	if err != nil {
		return nil, err
	}
	idx, _ := npy.Ints(data)
	seen := map[int]bool{}
	for _, j := range idx {
		if j < 0 || j >= p.Dim() || seen[j] {
			return nil, fmt.Errorf("column %d: want different ones from 0 to %d", j, p.Dim()-1)
		}
		seen[j] = true
	}
	if len(idx) == 0 {
		return nil, fmt.Errorf("columns of type %s and shape %v: want integers", h.Descr, h.Shape)
	}
	return idx, nil
}

// tail keeps the last lines that a process writes to its standard error.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const kept = 400 // bytes

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	t.last = t.last[max(0, len(t.last)-kept):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.FieldsFunc(string(t.last), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return ""
	}
	return "; its last lines: " + safe.Line(strings.Join(lines[max(0, len(lines)-3):], " / "))
}
