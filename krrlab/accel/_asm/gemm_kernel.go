package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// kernel generates a micro-kernel, which computes a block of C of rows × two registers. It uses rows·vectors registers
// for sums, vectors for a row of B, and two for elements of A in turn: for 6 rows all 16 registers of AVX2, for 14 rows
// all 32 of AVX-512.
type kernel struct {
	format
	set  set
	rows int
	// dot generates sum += y·x for integer kernels, where y holds elements of B and x one broadcast element of A. An
	// element is then a word of 32 bits: two numbers of 16 bits for AVX2, four bytes for VNNI. dot is nil for floating
	// point.
	dot func(y, x, sum VecVirtual)
}

var kernels = []kernel{
	{float32s, avx2, 6, nil}, {float64s, avx2, 6, nil},
	{float32s, avx512, 14, nil}, {float64s, avx512, 14, nil},
	{packedInts, avx2, 6, func(y, x, sum VecVirtual) {
		t := YMM()
		VPMADDWD(y, x, t)
		VPADDD(t, sum, sum)
	}},
	// The bytes of y are unsigned, those of x signed.
	{packedInts, avx512, 14, func(y, x, sum VecVirtual) { VPDPBUSD(x, y, sum) }},
}

// packedInts describes the elements of an integer kernel.
var packedInts = float32s.withTile("i", "uint32", 4, nil)

const (
	vectors   = 2             // number of registers of one row of C
	logSteps  = 2             // log₂ of steps
	steps     = 1 << logSteps // number of steps p in one iteration of the loop
	cacheLine = 64            // bytes
)

// cols returns the number of columns of the block.
func (k kernel) cols() int { return vectors * k.set.bytes / k.size }

// name returns the name of the routine.
func (k kernel) name() string { return fmt.Sprintf("%sgemm%dx%d", k.letter, k.rows, k.cols()) }

// build generates the kernel.
func (k kernel) build() {
	doc := fmt.Sprintf("%s is a micro-kernel of %s; see ", k.name(), k.set.name)
	if k.dot == nil {
		k.buildFloat(begin(k.name(), fmt.Sprintf("func(k int, a, b, c *%s, ldc int, alpha %[1]s, add bool)", k.number),
			doc+"kernel."))
		return
	}
	param := begin(k.name(), "func(k int, a, b *uint32, start, c *int32, ldc int)", doc+"byteKernel.")
	depth, a, b, start, out, ldc := param("k"), param("a"), param("b"), param("start"), param("c"), param("ldc")
	SHLQ(Imm(2), ldc)
	sums := make([][vectors]VecVirtual, k.rows)
	k.forEachSum(sums, nil, nil, func(_, vector int, sum *VecVirtual) {
		*sum = k.set.reg()
		k.move(Mem{Base: start, Disp: vector * k.set.bytes}, *sum)
	})
	k.accumulate(depth, a, b, sums, 1, k.dot)
	k.forEachSum(sums, ldc, out, func(_, vector int, sum *VecVirtual) {
		k.move(*sum, Mem{Base: out,
			Disp: vector * k.set.bytes})
	})
	VZEROUPPER()
	RET()
}

// forEachSum calls visit for every register of sums, row by row. If out is not nil, the generated code adds ld to it
// after each row except the last.
func (k kernel) forEachSum(sums [][vectors]VecVirtual, ld, out Register, visit func(row, vector int, sum *VecVirtual)) {
	for row := range sums {
		for vector := range sums[row] {
			visit(row, vector, &sums[row][vector])
		}
		if out != nil && row < k.rows-1 {
			ADDQ(ld, out)
		}
	}
}

// buildFloat generates a kernel of float32 or float64.
func (k kernel) buildFloat(param func(name string) GPVirtual) {
	depth, a, b, out, ldc := param("k"), param("a"), param("b"), param("c"), param("ldc")
	Comment("The stride in bytes.")
	SHLQ(Imm(shift[k.size]), ldc)

	Comment("Prefetch C.")
	rowAddress := GP64()
	MOVQ(out, rowAddress)
	for i := range k.rows {
		for offset := 0; offset < vectors*k.set.bytes; offset += cacheLine {
			PREFETCHT0(Mem{Base: rowAddress, Disp: offset})
		}
		if i < k.rows-1 {
			ADDQ(ldc, rowAddress)
		}
	}
	sums := make([][vectors]VecVirtual, k.rows)
	k.forEachSum(sums, nil, nil, func(_, _ int, sum *VecVirtual) {
		*sum = k.set.reg()
		k.set.zero(*sum)
	})
	alpha := k.accumulate(depth, a, b, sums, 2, func(y, x, sum VecVirtual) { k.fma(y, x, sum) })

	k.broadcast(address(Param("alpha")), alpha)
	add := Load(Param("add"), GP32()).(GPVirtual)
	TESTL(add, add)
	JZ(LabelRef("store"))
	write := func(comment string, scale func(target Mem, sum VecVirtual)) {
		Comment(comment)
		k.forEachSum(sums, ldc, out, func(_, vector int, sum *VecVirtual) {
			target := Mem{Base: out, Disp: vector * k.set.bytes}
			scale(target, *sum)
			k.move(*sum, target)
		})
		VZEROUPPER()
		RET()
	}
	write("C += alpha·sums, rounded once.", func(target Mem, sum VecVirtual) { k.fma213(target, alpha, sum) })
	Label("store")
	write("C = alpha·sums.", func(_ Mem, sum VecVirtual) { k.mul(alpha, sum, sum) })
}

// accumulate generates sums += a·b over depth steps, with the given number of registers for elements of A. The
// generated code ends with the label write, to which it jumps if no step remains. accumulate returns a register that
// the code after the label may use.
func (k kernel) accumulate(depth, a, b GPVirtual, sums [][vectors]VecVirtual, elements int,
	dot func(y, x, sum VecVirtual)) VecVirtual {
	var y [vectors]VecVirtual
	for vector := range y {
		y[vector] = k.set.reg()
	}
	x := make([]VecVirtual, elements)
	for row := range x {
		x[row] = k.set.reg()
	}
	step := func(p int) {
		for vector := range y {
			k.move(Mem{Base: b, Disp: (p*vectors + vector) * k.set.bytes}, y[vector])
		}
		k.forEachSum(sums, nil, nil, func(row, vector int, sum *VecVirtual) {
			if vector == 0 {
				k.broadcast(Mem{Base: a, Disp: (p*k.rows + row) * k.size}, x[row%len(x)])
			}
			dot(y[vector], x[row%len(x)], *sum)
		})
	}
	advance := func(p int) {
		ADDQ(U32(p*k.rows*k.size), a)
		ADDQ(U32(p*vectors*k.set.bytes), b)
	}
	Comment(fmt.Sprintf("%d steps in an iteration: sums += a·b.", steps))
	iterations := GP64()
	MOVQ(depth, iterations)
	SHRQ(Imm(logSteps), iterations)
	JZ(LabelRef("remainder"))
	Label("iteration")
	for p := range steps {
		step(p)
	}
	advance(steps)
	DECQ(iterations)
	JNZ(LabelRef("iteration"))

	Label("remainder")
	ANDQ(U8(steps-1), depth)
	JZ(LabelRef("write"))
	Label("step")
	step(0)
	advance(1)
	DECQ(depth)
	JNZ(LabelRef("step"))
	Label("write")
	return y[0]
}
