package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// widen16 writes the routine that unpacks 16-bit numbers.
func widen16(c *build.Context) {
	param := begin(c, "widen16AVX2", "func(n int, dst *float32, x *uint16)",
		"widen16AVX2 sets dst to x for n numbers, n a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	loop(c, n, 16, func(i reg.GPVirtual) {
		for h := range 2 {
			v := c.YMM()
			c.VPMOVZXWD(operand.Mem{Base: x, Index: i, Scale: 2, Disp: 16 * h}, v)
			c.VCVTDQ2PS(v, v)
			c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4, Disp: 32 * h})
		}
	})
}

// narrow16 writes the routine that packs to 16-bit numbers.
func narrow16(c *build.Context) {
	param := begin(c, "narrow16AVX2", "func(n int, dst *uint16, x *float32, scale float32)",
		"narrow16AVX2 sets dst to scale·x rounded to a whole number for n numbers, n a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	scale := c.YMM()
	broadcastParam(c, "scale", scale)
	loop(c, n, 16, func(i reg.GPVirtual) {
		a, b := c.YMM(), c.YMM()
		c.VMULPS(operand.Mem{Base: x, Index: i, Scale: 4}, scale, a)
		c.VMULPS(operand.Mem{Base: x, Index: i, Scale: 4, Disp: 32}, scale, b)
		c.VCVTPS2DQ(a, a)
		c.VCVTPS2DQ(b, b)
		c.VPACKUSDW(b, a, a) // by halves: a₀b₀a₁b₁
		c.VPERMQ(operand.Imm(0xd8), a, a)
		c.VMOVDQU(a, operand.Mem{Base: dst, Index: i, Scale: 2})
	})
}

// butterfly writes (a, b) ← (a+b, a−b).
func butterfly(c *build.Context, f format) {
	param := begin(c, f.letter+"ButterflyAVX2", fmt.Sprintf("func(n int, a, b *%s)", f.number),
		fmt.Sprintf("%sButterflyAVX2 sets (a, b) to (a+b, a−b) for n numbers, n a multiple of %d.", f.letter,
			32/f.size))
	n, a, b := param("n"), param("a"), param("b")
	loop(c, n, 32/f.size, func(i reg.GPVirtual) {
		u, v, w := c.YMM(), c.YMM(), c.YMM()
		am, bm := operand.Mem{Base: a, Index: i, Scale: uint8(f.size)},
			operand.Mem{Base: b, Index: i, Scale: uint8(f.size)}
		f.move(c, am, u)
		f.move(c, bm, v)
		f.add(c, v, u, w)
		f.sub(c, v, u, u)
		f.move(c, w, am)
		f.move(c, u, bm)
	})
}
