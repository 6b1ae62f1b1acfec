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

// process is a running compiled program.
type process struct {
	cell       string // name of the cell
	cmd        *exec.Cmd
	requests   *os.File   // pipe to the program
	memoryFile *os.File   // shared with the program
	mu         sync.Mutex // guards the fields below and those of slots
	memorySize int64      // bytes of memoryFile
	slots      []*slot    // all slots, by number
	freeSlots  []*slot    // slots not used by a call
	exitErr    error      // error of all further calls, once the program has ended
}

// slot holds the resources of one call at a time: a region of the shared memory and a channel for the reply.
type slot struct {
	number int
	offset int64         // position of memory in the file, in bytes
	memory []byte        // mapped part of the file; nil before the first call
	reply  chan *message // closed when the process has ended
}

// minSlotSize is the smallest number of bytes of a slot's memory. It is a multiple of the page size, as all offsets in
// the file must be.
const minSlotSize = 1 << 16

// start runs the compiled program of a cell, with the output streams of this process. It returns the program's first
// message, which says for each function why it cannot be called, or "" if it can. If ctx ends before this message, the
// program is killed.
func start(ctx context.Context, cell, path string) (p *process, refusals *message, err error) {
	p = &process{cell: cell, cmd: exec.Command(path)}
	p.cmd.Stdout, p.cmd.Stderr = os.Stdout, os.Stderr
	p.cmd.Env = append(p.cmd.Environ(), "GOTRACEBACK=none") // a crash prints one line only
	requests, requestEnd, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	replyEnd, replies, err := os.Pipe()
	if err == nil {
		p.memoryFile, err = os.CreateTemp("", "krrlab-memory-")
	}
	if err == nil {
		err = os.Remove(p.memoryFile.Name())
	}
	if err == nil {
		p.requests, p.cmd.ExtraFiles = requestEnd, []*os.File{requests, replies, p.memoryFile}
		err = p.cmd.Start()
	}
	requests.Close() // the program has inherited them
	replies.Close()
	if err != nil {
		requestEnd.Close()
		replyEnd.Close()
		p.memoryFile.Close()
		advice := ""
		if errors.Is(err, fs.ErrPermission) {
			advice = "; set TMPDIR to a folder that programs may be started from"
		}
		return nil, nil, fmt.Errorf("the compiled program cannot be started: %w%s", err, advice)
	}
	r := bufio.NewReader(replyEnd)
	cancelKill := context.AfterFunc(ctx, p.kill) // the init functions of the cell may not terminate
	refusals, err = receive(r)
	cancelKill()
	if err != nil {
		p.finish(replyEnd, "the variables or init of the cell have ended its program (%v)")
		return nil, nil, cmp.Or(ctx.Err(), p.exitErr)
	}
	go func() {
		for m, err := receive(r); err == nil; m, err = receive(r) {
			p.mu.Lock()
			s := p.slots[m.nextWord()]
			p.mu.Unlock()
			s.reply <- m
		}
		p.finish(replyEnd, "the compiled program has ended (%v): run its cell again")
	}()
	return p, refusals, nil
}

// kill kills the program.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// finish waits for the program to end, records its exit status in an error with the given format, and makes the waiting
// calls fail.
func (p *process) finish(replies *os.File, format string) {
	p.kill() // the program has closed its end of the pipe
	_ = p.cmd.Wait()
	p.fail(fmt.Sprintf(format, p.cmd.ProcessState))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		close(s.reply)
	}
	for _, s := range p.freeSlots {
		unmapMemory(s.memory)
	}
	p.freeSlots = nil
	p.requests.Close()
	p.memoryFile.Close()
	replies.Close()
}

// fail makes all further calls fail with the given text. Only the first call of fail has an effect.
func (p *process) fail(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exitErr == nil {
		p.exitErr = &Error{text, p.cell, 1}
	}
}

// acquireSlot returns a slot with at least minSize bytes of memory.
func (p *process) acquireSlot(minSize int) (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exitErr != nil {
		return nil, p.exitErr
	}
	var s *slot
	if n := len(p.freeSlots); n > 0 {
		s, p.freeSlots = p.freeSlots[n-1], p.freeSlots[:n-1]
	} else {
		s = &slot{number: len(p.slots), reply: make(chan *message, 1)}
		p.slots = append(p.slots, s)
	}
	if len(s.memory) > 0 && len(s.memory) >= minSize {
		return s, nil
	}
	size := minSlotSize
	for size < minSize {
		size *= 2
	}
	// Allocate the disk blocks now: a later write to a hole would end the kernel if the disk is full.
	_, err := p.memoryFile.WriteAt(make([]byte, size), p.memorySize)
	if err == nil {
		unmapMemory(s.memory)
		s.offset = p.memorySize
		s.memory, err = mapMemory(p.memoryFile, s.offset, size)
		p.memorySize += int64(size)
	}
	if err != nil {
		p.freeSlots = append(p.freeSlots, s)
		return nil, fmt.Errorf("no memory for the arguments: %w", err)
	}
	return s, nil
}

// releaseSlot makes a slot available to other calls.
func (p *process) releaseSlot(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exitErr != nil {
		unmapMemory(s.memory)
		return
	}
	p.freeSlots = append(p.freeSlots, s)
}

// interruptGrace is the time that a call may take to return after it was interrupted, before its process is killed.
const interruptGrace = 500 * time.Millisecond

// Call calls function number f of the cell, as its Stub numbers them. in contains the arguments and out pointers to the
// results. If interrupt is closed and the call does not return within interruptGrace, the program is killed and Call
// returns ErrInterrupted.
func (p *process) Call(interrupt <-chan struct{}, f int, in, out []any) error {
	var sliceRegions regions
	collector := &message{offsetOf: sliceRegions.add}
	for _, v := range in {
		collector.put(reflect.ValueOf(v))
	}
	slot, err := p.acquireSlot(8 * sliceRegions.assignOffsets())
	if err != nil {
		return err
	}
	defer p.releaseSlot(slot)
	request := &message{offsetOf: sliceRegions.offsetOf}
	request.putWords(uint64(slot.number), uint64(f), uint64(slot.offset), uint64(len(slot.memory)))
	for _, v := range in {
		request.put(reflect.ValueOf(v))
	}
	for _, reg := range sliceRegions {
		copy(slot.memory[8*reg.offset:], bytesOf(reg.values))
	}
	_ = request.send(p.requests) // an error means that the process has ended; then the reply channel is closed
	reply, ok := (*message)(nil), false
	select {
	case reply, ok = <-slot.reply:
	case <-interrupt:
		select {
		case reply, ok = <-slot.reply:
		case <-time.After(interruptGrace):
			p.kill()
			<-slot.reply
			return ErrInterrupted
		}
	}
	if !ok {
		return p.exitErr
	}
	for _, reg := range sliceRegions {
		// write only if there are changes: other goroutines may read an unchanged slice at the same time
		original, returned := bytesOf(reg.values), slot.memory[8*reg.offset:][:8*len(reg.values)]
		if !bytes.Equal(original, returned) {
			copy(original, returned)
		}
	}
	if line := int(reply.nextWord()); line > 0 {
		return &Error{reply.nextText(), p.cell, line}
	}
	for _, v := range out {
		reply.get(reflect.ValueOf(v).Elem())
	}
	return nil
}

// regions are disjoint memory regions that contain the slices of a call, and their offsets in the memory of the slot.
// Overlapping slices lie in the same region.
type regions []region

// region is one of these regions.
type region struct {
	values []float64
	offset int // position in the memory of the slot, in float64 numbers
}

// lo and hi return the addresses of the first byte of the region and of the byte behind it.
func (r region) lo() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.values))) }
func (r region) hi() uintptr { return r.lo() + 8*uintptr(len(r.values)) }

// add adds a slice. It merges the regions that overlap the slice. The result is always 0; it makes add a
// message.offsetOf.
func (g *regions) add(s []float64) int {
	merged := region{values: s}
	*g = slices.DeleteFunc(*g, func(r region) bool {
		if merged.hi() <= r.lo() || r.hi() <= merged.lo() {
			return false
		}
		lowest, hi := merged, max(merged.hi(), r.hi())
		if r.lo() < merged.lo() {
			lowest = r
		}
		merged.values = unsafe.Slice(&lowest.values[0], (hi-lowest.lo())/8)
		return true
	})
	*g = append(*g, merged)
	return 0
}

// assignOffsets sets the offsets of all regions and returns their total length in float64 numbers.
func (g regions) assignOffsets() (n int) {
	for i := range g {
		g[i].offset = n
		n += len(g[i].values)
	}
	return n
}

// offsetOf returns the offset of a slice that was added, in float64 numbers.
func (g *regions) offsetOf(s []float64) int {
	target := region{values: s}
	i := slices.IndexFunc(*g, func(r region) bool { return r.lo() <= target.lo() && target.hi() <= r.hi() })
	return (*g)[i].offset + int(target.lo()-(*g)[i].lo())/8
}
