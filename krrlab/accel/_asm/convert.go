package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// widen16 generates the routine that converts unsigned 16-bit integers to float32.
func widen16() {
	param := begin("widen16AVX2", "func(n int, dst *float32, x *uint16)",
		"widen16AVX2 converts n numbers from uint16 to float32; n is a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	loop(n, 16, func(i GPVirtual) {
		for half := range 2 {
			v := YMM()
			VPMOVZXWD(Mem{Base: x, Index: i, Scale: 2, Disp: 16 * half}, v)
			VCVTDQ2PS(v, v)
			VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4, Disp: 32 * half})
		}
	})
}

// narrow16 generates the routine that rounds float32 to unsigned 16-bit integers.
func narrow16() {
	param := begin("narrow16AVX2", "func(n int, dst *uint16, x *float32, scale float32)",
		"narrow16AVX2 sets dst to scale·x, from 0 to 65535, rounded to the nearest integer, to even on a tie, for n "+
			"numbers; n is a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	scale := YMM()
	VBROADCASTSS(address(Param("scale")), scale)
	loop(n, 16, func(i GPVirtual) {
		a, b := YMM(), YMM()
		VMULPS(Mem{Base: x, Index: i, Scale: 4}, scale, a)
		VMULPS(Mem{Base: x, Index: i, Scale: 4, Disp: 32}, scale, b)
		VCVTPS2DQ(a, a)
		VCVTPS2DQ(b, b)
		VPACKUSDW(b, a, a) // packs the halves separately: a₀b₀a₁b₁
		VPERMQ(Imm(0xd8), a, a)
		VMOVDQU(a, Mem{Base: dst, Index: i, Scale: 2})
	})
}

// butterfly generates the routine (a, b) ← (a+b, a−b) for vectors of the number type of f. f.letter is the first letter
// of the name of the routine.
func butterfly(f format) {
	param := begin(f.letter+"ButterflyAVX2", fmt.Sprintf("func(n int, a, b *%s)", f.number),
		fmt.Sprintf("%sButterflyAVX2 sets (a, b) to (a+b, a−b) for n numbers, n a multiple of %d.", f.letter,
			32/f.size))
	n, a, b := param("n"), param("a"), param("b")
	loop(n, 32/f.size, func(i GPVirtual) {
		aLanes, bLanes, sum := YMM(), YMM(), YMM()
		aMem, bMem := Mem{Base: a, Index: i, Scale: uint8(f.size)}, Mem{Base: b, Index: i, Scale: uint8(f.size)}
		f.move(aMem, aLanes)
		f.move(bMem, bLanes)
		f.add(bLanes, aLanes, sum)
		f.sub(bLanes, aLanes, aLanes)
		f.move(sum, aMem)
		f.move(aLanes, bMem)
	})
}
