package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transposer generates a routine that transposes rows × n elements, 4 columns at a time, with instructions of AVX.
type transposer struct {
	format
	rows int
	// square generates the transposition of rows×4 elements. source(i) is the address of row i, and target(p) that of
	// column p.
	square func(source, target func(i int) Mem)
}

var transposers = []transposer{
	{float32s, 4, square4x4(XMM, VMOVUPS, VUNPCKLPS, VUNPCKHPS, joinPairs)},
	{float32s, 2, square2x4s},
	{float64s, 4, square4x4(YMM, VMOVUPD, VUNPCKLPD, VUNPCKHPD, joinHalves)},
	{float64s, 2, square2x4d},
}

// build generates the routine.
func (t transposer) build() {
	name := fmt.Sprintf("%spack%d", t.letter, t.rows)
	param := begin(name, fmt.Sprintf("func(n int, src *%s, ld int, dst *%s, w int)", t.number, t.number),
		fmt.Sprintf("%s sets dst[p·w+i] = src[i·ld+p] for i < %d and p < n, with AVX.", name, t.rows))

	n, src, ld, dst, w := param("n"), param("src"), param("ld"), param("dst"), param("w")
	shift := Imm(shift[t.size])
	Comment("Strides in bytes, and three of each.")
	SHLQ(shift, ld)
	SHLQ(shift, w)
	ld3, w3 := GP64(), GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	LEAQ(Mem{Base: w, Index: w, Scale: 2}, w3)
	rowsFrom := func(base, one, three Register) func(i int) Mem {
		return func(i int) Mem {
			switch i {
			case 0:
				return Mem{Base: base}
			case 3:
				return Mem{Base: base, Index: three, Scale: 1}
			}
			return Mem{Base: base, Index: one, Scale: uint8(i)}
		}
	}
	source := rowsFrom(src, ld, ld3)

	Comment("4 columns in a turn.")
	SUBQ(U8(4), n)
	JL(LabelRef("rest"))
	Label("turn")
	t.square(source, rowsFrom(dst, w, w3))
	ADDQ(U8(4*t.size), src)
	LEAQ(Mem{Base: dst, Index: w, Scale: 4}, dst)
	SUBQ(U8(4), n)
	JGE(LabelRef("turn"))

	Label("rest")
	ADDQ(U8(4), n)
	JZ(LabelRef("done"))
	Label("one")
	for i := range t.rows {
		x := XMM()
		t.store1(source(i), x)
		t.store1(x, Mem{Base: dst, Disp: i * t.size})
	}
	ADDQ(U8(t.size), src)
	ADDQ(w, dst)
	DECQ(n)
	JNZ(LabelRef("one"))

	Label("done")
	VZEROUPPER()
	RET()
}

// square4x4 returns a generator of code that loads the rows a, b, c, d to registers x with move, interleaves a with b
// and c with d to registers y with low and high, joins these to the columns x, and stores them with move.
func square4x4(register func() VecVirtual, move, low, high op, join func(x, y [4]VecVirtual)) func(source,
	target func(i int) Mem) {
	return func(source, target func(i int) Mem) {
		var x, y [4]VecVirtual
		for i := range x {
			x[i], y[i] = register(), register()
			move(source(i), x[i])
		}
		for i := 0; i < len(x); i += 2 {
			low(x[i+1], x[i], y[i])
			high(x[i+1], x[i], y[i+1])
		}
		join(x, y)
		for p := range x {
			move(x[p], target(p))
		}
	}
}

// joinPairs generates code that turns the registers y, a0 b0 a1 b1 and a2 b2 a3 b3 and the same for c and d, into
// a0 b0 c0 d0 … in the registers x.
func joinPairs(x, y [4]VecVirtual) {
	for i := range 2 {
		VUNPCKLPD(y[i+2], y[i], x[2*i])
		VUNPCKHPD(y[i+2], y[i], x[2*i+1])
	}
}

// joinHalves generates code that turns the registers y, with the halves a0 b0 | a2 b2 and a1 b1 | a3 b3 and the same
// for c and d, into a0 b0 c0 d0 … in the registers x.
func joinHalves(x, y [4]VecVirtual) {
	for half, selector := range []U8{0x20, 0x31} {
		VPERM2F128(selector, y[2], y[0], x[2*half])
		VPERM2F128(selector, y[3], y[1], x[2*half+1])
	}
}

// square2x4s generates code that interleaves two rows of float32: a0 b0 a1 b1 and a2 b2 a3 b3.
func square2x4s(source, target func(i int) Mem) {
	a, b, y := XMM(), XMM(), XMM()
	VMOVUPS(source(0), a)
	VMOVUPS(source(1), b)
	VUNPCKLPS(b, a, y)
	VUNPCKHPS(b, a, a)
	VMOVLPS(y, target(0))
	VMOVHPS(y, target(1))
	VMOVLPS(a, target(2))
	VMOVHPS(a, target(3))
}

// square2x4d generates code that interleaves two rows of float64 in the halves of registers: a0 b0 | a2 b2 and
// a1 b1 | a3 b3.
func square2x4d(source, target func(i int) Mem) {
	a, b, y := YMM(), YMM(), YMM()
	VMOVUPD(source(0), a)
	VMOVUPD(source(1), b)
	VUNPCKLPD(b, a, y)
	VUNPCKHPD(b, a, a)
	VMOVUPD(y.AsX(), target(0))
	VEXTRACTF128(U8(1), y, target(2))
	VMOVUPD(a.AsX(), target(1))
	VEXTRACTF128(U8(1), a, target(3))
}
