package engine

import (
	"go/token"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goplus/ixgo"
	"github.com/timandy/routine"
	"golang.org/x/tools/go/ssa"
)

// Stopped is the panic value of a goroutine of a cell that was stopped.
type Stopped struct {
	File string // file of the interrupted statement, which is the name of its cell, or "" if unknown
	Line int    // line of the statement, or 0 if unknown
}

func (Stopped) Error() string { return "the goroutine was stopped" }

// A goroutine whose ID is in stopping panics with Stopped at its next loop iteration or function call.
var (
	stopping  sync.Map     // keys are goroutine IDs
	stopCount atomic.Int32 // number of entries of stopping, which makes the check cheap while there are none
)

// StopGoroutine requests that a goroutine stops: its interpreted code panics with Stopped until ResumeGoroutine is
// called.
func StopGoroutine(goid uint64) {
	if _, wasStopped := stopping.LoadOrStore(goid, true); !wasStopped {
		stopCount.Add(1)
	}
}

// ResumeGoroutine withdraws the request of StopGoroutine, if there is one.
func ResumeGoroutine(goid uint64) {
	if _, wasStopped := stopping.LoadAndDelete(goid); wasStopped {
		stopCount.Add(-1)
	}
}

// GoroutineID returns the ID that the Go runtime gave the calling goroutine.
func GoroutineID() uint64 { return routine.Goid() }

// instrumentBlocks makes a function check at its entry and at the head of each loop whether its goroutine is to stop.
// It also corrects the phi nodes.
func (f function) instrumentBlocks() {
	starts := *fieldAddr[[]int](f.object, blocksField)
	for _, block := range f.ssa.Blocks {
		if block.Index >= len(starts) {
			break
		}
		isEntryOrLoopHead := block.Index == 0
		for _, pred := range block.Preds {
			isEntryOrLoopHead = isEntryOrLoopHead || block.Dominates(pred)
		}
		if phiFeature.available() {
			f.fixPhis(block, f.code[starts[block.Index]:])
		}
		if isEntryOrLoopHead {
			insertStopCheck(f.code, starts[block.Index], blockPosition(block))
		}
	}
}

// blockPosition returns the source position of the start of a block. If the block has no position, its successors and
// then its function are used.
func blockPosition(block *ssa.BasicBlock) token.Position {
	pos := block.Parent().Pos()
	for _, candidate := range slices.Backward(append([]*ssa.BasicBlock{block}, block.Succs...)) {
		for _, instr := range slices.Backward(candidate.Instrs) {
			if instr.Pos().IsValid() {
				pos = instr.Pos()
			}
		}
	}
	return block.Parent().Prog.Fset.Position(pos)
}

// insertStopCheck replaces instruction i with a check for a stop request, followed by that instruction.
func insertStopCheck(code []func(*ixgo.Frame), i int, pos token.Position) {
	instr := code[i]
	code[i] = func(frame *ixgo.Frame) {
		if stopCount.Load() > 0 {
			if _, isStopping := stopping.Load(GoroutineID()); isStopping {
				panic(ixgo.PanicError{Value: Stopped{pos.Filename, pos.Line}})
			}
		}
		instr(frame)
	}
}
