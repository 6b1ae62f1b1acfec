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
	exitErr    error      // error of all further calls after the program has ended
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
	reader := bufio.NewReader(replyEnd)
	cancelKill := context.AfterFunc(ctx, p.kill) // the init functions of the cell may not terminate
	refusals, err = receive(reader)
	cancelKill()
	if err != nil {
		p.finish(replyEnd, "the variables or init of the cell have ended its program (%v)")
		return nil, nil, cmp.Or(ctx.Err(), p.exitErr)
	}
	go func() {
		for reply, err := receive(reader); err == nil; reply, err = receive(reader) {
			p.mu.Lock()
			waiting := p.slots[reply.nextWord()]
			p.mu.Unlock()
			waiting.reply <- reply
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
	var acquired *slot
	if n := len(p.freeSlots); n > 0 {
		acquired, p.freeSlots = p.freeSlots[n-1], p.freeSlots[:n-1]
	} else {
		acquired = &slot{number: len(p.slots), reply: make(chan *message, 1)}
		p.slots = append(p.slots, acquired)
	}
	if len(acquired.memory) > 0 && len(acquired.memory) >= minSize {
		return acquired, nil
	}
	size := minSlotSize
	for size < minSize {
		size *= 2
	}
	// Allocate the disk blocks now: a later write to a hole would end the kernel if the disk is full.
	_, err := p.memoryFile.WriteAt(make([]byte, size), p.memorySize)
	if err == nil {
		unmapMemory(acquired.memory)
		acquired.offset = p.memorySize
		acquired.memory, err = mapMemory(p.memoryFile, acquired.offset, size)
		p.memorySize += int64(size)
	}
	if err != nil {
		p.freeSlots = append(p.freeSlots, acquired)
		return nil, fmt.Errorf("no memory for the arguments: %w", err)
	}
	return acquired, nil
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

// Call calls the function of the cell with the given number, as Stub numbers the functions. results contains pointers
// to the results. If interrupt is closed and the call does not return within interruptGrace, the program is killed and
// Call returns ErrInterrupted.
func (p *process) Call(interrupt <-chan struct{}, function int, arguments, results []any) error {
	var sliceRegions regions
	collector := &message{offsetOf: sliceRegions.add}
	for _, value := range arguments {
		collector.putValue(reflect.ValueOf(value))
	}
	acquired, err := p.acquireSlot(8 * sliceRegions.assignOffsets())
	if err != nil {
		return err
	}
	defer p.releaseSlot(acquired)
	request := &message{offsetOf: sliceRegions.offsetOf}
	request.putWords(uint64(acquired.number), uint64(function), uint64(acquired.offset), uint64(len(acquired.memory)))
	for _, value := range arguments {
		request.putValue(reflect.ValueOf(value))
	}
	for _, part := range sliceRegions {
		copy(acquired.memory[8*part.offset:], bytesOf(part.values))
	}
	_ = request.send(p.requests) // an error means that the process has ended; then the reply channel is closed
	reply, ok := (*message)(nil), false
	select {
	case reply, ok = <-acquired.reply:
	case <-interrupt:
		select {
		case reply, ok = <-acquired.reply:
		case <-time.After(interruptGrace):
			p.kill()
			<-acquired.reply
			return ErrInterrupted
		}
	}
	if !ok {
		return p.exitErr
	}
	for _, part := range sliceRegions {
		// An unchanged slice is not written, because other goroutines may read it at the same time.
		original, returned := bytesOf(part.values), acquired.memory[8*part.offset:][:8*len(part.values)]
		if !bytes.Equal(original, returned) {
			copy(original, returned)
		}
	}
	if line := int(reply.nextWord()); line > 0 {
		return &Error{reply.nextText(), p.cell, line}
	}
	for _, value := range results {
		reply.readValue(reflect.ValueOf(value).Elem())
	}
	return nil
}

// regions are disjoint memory regions that contain the slices of a call, and their offsets in the memory of the slot.
// Overlapping slices lie in the same region.
type regions []region

// region is a memory region with its offset.
type region struct {
	values []float64
	offset int // position in the memory of the slot, in float64 numbers
}

// start and end return the addresses of the first byte of the region and of the byte behind the region.
func (r region) start() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.values))) }
func (r region) end() uintptr   { return r.start() + 8*uintptr(len(r.values)) }

// add adds a slice. It merges the regions that overlap the slice. The result is always 0; with a result, add can serve
// as message.offsetOf.
func (rs *regions) add(values []float64) int {
	merged := region{values: values}
	*rs = slices.DeleteFunc(*rs, func(r region) bool {
		if merged.end() <= r.start() || r.end() <= merged.start() {
			return false
		}
		lowest, end := merged, max(merged.end(), r.end())
		if r.start() < merged.start() {
			lowest = r
		}
		merged.values = unsafe.Slice(&lowest.values[0], (end-lowest.start())/8)
		return true
	})
	*rs = append(*rs, merged)
	return 0
}

// assignOffsets sets the offsets of all regions and returns their total length in float64 numbers.
func (rs regions) assignOffsets() (total int) {
	for i := range rs {
		rs[i].offset = total
		total += len(rs[i].values)
	}
	return total
}

// offsetOf returns the offset of a slice that was added, in float64 numbers.
func (rs *regions) offsetOf(values []float64) int {
	target := region{values: values}
	i := slices.IndexFunc(*rs, func(r region) bool { return r.start() <= target.start() && target.end() <= r.end() })
	return (*rs)[i].offset + int(target.start()-(*rs)[i].start())/8
}
