package native

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// process is a compiled program that runs.
type process struct {
	cell     string
	cmd      *exec.Cmd
	requests *os.File
	memory   *os.File
	mu       sync.Mutex
	size     int64   // of the memory
	lanes    []*lane // of calls, at most one at a time each
	free     []*lane
	died     error
}

// lane is what a call has to itself.
type lane struct {
	number int
	at     int64 // in the memory
	mem    []byte
	reply  chan *message // closed when the process has ended
}

// start runs the program of a cell, which prints where this one does. It returns what the program reports about its
// functions.
func start(ctx context.Context, cell, path string) (p *process, hello *message, err error) {
	p = &process{cell: cell, cmd: exec.Command(path)}
	p.cmd.Stdout, p.cmd.Stderr = os.Stdout, os.Stderr
	p.cmd.Env = append(p.cmd.Environ(), "GOTRACEBACK=none") // what ends it is one line
	requests, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, replies, err := os.Pipe()
	if err == nil {
		p.memory, err = os.CreateTemp("", "krrlab-memory-")
	}
	if err == nil {
		err = os.Remove(p.memory.Name())
	}
	if err == nil {
		p.requests, p.cmd.ExtraFiles = in, []*os.File{requests, replies, p.memory}
		err = p.cmd.Start()
	}
	requests.Close() // the program has its own
	replies.Close()
	if err != nil {
		in.Close()
		out.Close()
		p.memory.Close()
		advice := ""
		if errors.Is(err, fs.ErrPermission) {
			advice = "; set TMPDIR to a folder that programs may be started from"
		}
		return nil, nil, fmt.Errorf("the compiled program cannot be started: %w%s", err, advice)
	}
	r := bufio.NewReader(out)
	begun := context.AfterFunc(ctx, p.kill) // the cell's own init may have no end
	hello, err = receive(r)
	begun()
	if err != nil {
		p.end(out, "the variables or init of the cell have ended its program (%v)")
		return nil, nil, cmp.Or(ctx.Err(), p.died)
	}
	go func() {
		for m, err := receive(r); err == nil; m, err = receive(r) {
			p.mu.Lock()
			l := p.lanes[m.next()]
			p.mu.Unlock()
			l.reply <- m
		}
		p.end(out, "the compiled program has ended (%v): run its cell again")
	}()
	return p, hello, nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end notes how the process has ended, and fails the calls that wait for it.
func (p *process) end(out *os.File, how string) {
	p.kill() // it has closed its end
	_ = p.cmd.Wait()
	p.fail(fmt.Sprintf(how, p.cmd.ProcessState))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		close(l.reply)
	}
	for _, l := range p.free {
		unmap(l.mem)
	}
	p.free = nil
	p.requests.Close()
	p.memory.Close()
	out.Close()
}

// fail makes calls fail from now on. What was said first is kept.
func (p *process) fail(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died == nil {
		p.died = &Error{text, p.cell, 1}
	}
}

// take returns a lane with room for bytes.
func (p *process) take(room int) (*lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died != nil {
		return nil, p.died
	}
	var l *lane
	if n := len(p.free); n > 0 {
		l, p.free = p.free[n-1], p.free[:n-1]
	} else {
		l = &lane{number: len(p.lanes), reply: make(chan *message, 1)}
		p.lanes = append(p.lanes, l)
	}
	if len(l.mem) > 0 && len(l.mem) >= room {
		return l, nil
	}
	size := 1 << 16
	for size < room {
		size *= 2
	}
	_, err := p.memory.WriteAt(make([]byte, size), p.size) // a hole in a full disk would end the kernel
	if err == nil {
		unmap(l.mem)
		l.at = p.size
		l.mem, err = mapped(p.memory, l.at, size)
		p.size += int64(size)
	}
	if err != nil {
		p.free = append(p.free, l)
		return nil, fmt.Errorf("no memory for the arguments: %w", err)
	}
	return l, nil
}

func (p *process) put(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died != nil {
		unmap(l.mem)
		return
	}
	p.free = append(p.free, l)
}

// grace is how long a call that was interrupted may take before the process is killed.
const grace = 500 * time.Millisecond

// Call calls a function by its number in the Stub, with values as arguments and pointers for its results. It returns
// ErrHalted when the channel is closed and the call takes long after that; the program is killed then.
func (p *process) Call(halt <-chan struct{}, f int, in, out []any) error {
	var lent regions
	collect := &message{at: lent.add}
	for _, v := range in {
		collect.put(reflect.ValueOf(v))
	}
	l, err := p.take(8 * lent.place())
	if err != nil {
		return err
	}
	defer p.put(l)
	m := &message{at: lent.at}
	m.words(uint64(l.number), uint64(f), uint64(l.at), uint64(len(l.mem)))
	for _, v := range in {
		m.put(reflect.ValueOf(v))
	}
	for _, r := range lent {
		copy(l.mem[8*r.at:], bytesOf(r.s))
	}
	_ = m.send(p.requests) // if it fails, the process has ended, and the lane is closed
	r, ok := (*message)(nil), false
	select {
	case r, ok = <-l.reply:
	case <-halt:
		select {
		case r, ok = <-l.reply:
		case <-time.After(grace):
			p.kill()
			<-l.reply
			return ErrHalted
		}
	}
	if !ok {
		return p.died
	}
	for _, r := range lent {
		// other goroutines may read what is only read
		if here, there := bytesOf(r.s), l.mem[8*r.at:][:8*len(r.s)]; !bytes.Equal(here, there) {
			copy(here, there)
		}
	}
	if line := int(r.next()); line > 0 {
		return &Error{r.nextText(), p.cell, line}
	}
	for _, v := range out {
		r.get(reflect.ValueOf(v).Elem())
	}
	return nil
}

// regions is memory that slices lie in, each of which may share some with others, and where it is put.
type regions []region

type region struct {
	s  []float64
	at int
}

func (r region) lo() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.s))) }
func (r region) hi() uintptr { return r.lo() + 8*uintptr(len(r.s)) }

// add notes a slice.
func (g *regions) add(s []float64) int {
	n := region{s: s}
	*g = slices.DeleteFunc(*g, func(r region) bool {
		if n.hi() <= r.lo() || r.hi() <= n.lo() {
			return false
		}
		first, hi := n, max(n.hi(), r.hi())
		if r.lo() < n.lo() {
			first = r
		}
		n.s = unsafe.Slice(&first.s[0], (hi-first.lo())/8)
		return true
	})
	*g = append(*g, n)
	return 0
}

// place says how many numbers there are in all.
func (g regions) place() (n int) {
	for i := range g {
		g[i].at = n
		n += len(g[i].s)
	}
	return n
}

// at is where a slice was put.
func (g *regions) at(s []float64) int {
	n := region{s: s}
	i := slices.IndexFunc(*g, func(r region) bool { return r.lo() <= n.lo() && n.hi() <= r.hi() })
	return (*g)[i].at + int(n.lo()-(*g)[i].lo())/8
}
