package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transposer is a routine that transposes rows × n elements, 4 columns at a time, with
// instructions of AVX.
type transposer struct {
	format
	rows int
	// square transposes rows×4 elements: row i is at(i), column p goes to to(p).
	square func(c *build.Context, at, to func(i int) operand.Mem)
}

var transposers = []transposer{
	{float32s, 4, square4x4s},
	{float32s, 2, square2x4s},
	{float64s, 4, square4x4d},
	{float64s, 2, square2x4d},
}

func (t transposer) build(c *build.Context) {
	name := fmt.Sprintf("%spack%d", t.letter, t.rows)
	param := begin(c, name, fmt.Sprintf("func(n int, src *%s, ld int, dst *%s, w int)", t.number, t.number),
		fmt.Sprintf("%s sets dst[p·w+i] = src[i·ld+p] for i < %d and p < n, with AVX.", name, t.rows))

	n, src, ld, dst, w := param("n"), param("src"), param("ld"), param("dst"), param("w")
	shift := operand.U8(map[int]int{4: 2, 8: 3}[t.size])
	c.Comment("Strides in bytes, and three of each.")
	c.SHLQ(shift, ld)
	c.SHLQ(shift, w)
	ld3, w3 := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	c.LEAQ(operand.Mem{Base: w, Index: w, Scale: 2}, w3)
	stride := func(base, one, three reg.Register) func(i int) operand.Mem {
		return func(i int) operand.Mem {
			switch i {
			case 0:
				return operand.Mem{Base: base}
			case 3:
				return operand.Mem{Base: base, Index: three, Scale: 1}
			}
			return operand.Mem{Base: base, Index: one, Scale: uint8(i)}
		}
	}
	at := stride(src, ld, ld3)

	c.Comment("4 columns in a turn.")
	c.SUBQ(operand.U8(4), n)
	c.JL(operand.LabelRef("rest"))
	c.Label("turn")
	t.square(c, at, stride(dst, w, w3))
	c.ADDQ(operand.U8(4*t.size), src)
	c.LEAQ(operand.Mem{Base: dst, Index: w, Scale: 4}, dst)
	c.SUBQ(operand.U8(4), n)
	c.JGE(operand.LabelRef("turn"))

	c.Label("rest")
	c.ADDQ(operand.U8(4), n)
	c.JZ(operand.LabelRef("done"))
	c.Label("one")
	for i := range t.rows {
		x := c.XMM()
		t.store1(c, at(i), x)
		t.store1(c, x, operand.Mem{Base: dst, Disp: i * t.size})
	}
	c.ADDQ(operand.U8(t.size), src)
	c.ADDQ(w, dst)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("one"))

	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// square4x4s interleaves the rows a, b, c, d twice: a0 b0 a1 b1 and c0 d0 c1 d1, then
// a0 b0 c0 d0.
func square4x4s(c *build.Context, at, to func(i int) operand.Mem) {
	var x, y [4]reg.VecVirtual
	for i := range x {
		x[i], y[i] = c.XMM(), c.XMM()
		c.VMOVUPS(at(i), x[i])
	}
	c.VUNPCKLPS(x[1], x[0], y[0])
	c.VUNPCKHPS(x[1], x[0], y[1])
	c.VUNPCKLPS(x[3], x[2], y[2])
	c.VUNPCKHPS(x[3], x[2], y[3])
	c.VUNPCKLPD(y[2], y[0], x[0])
	c.VUNPCKHPD(y[2], y[0], x[1])
	c.VUNPCKLPD(y[3], y[1], x[2])
	c.VUNPCKHPD(y[3], y[1], x[3])
	for p := range x {
		c.VMOVUPS(x[p], to(p))
	}
}

// square2x4s interleaves two rows: a0 b0 a1 b1 and a2 b2 a3 b3.
func square2x4s(c *build.Context, at, to func(i int) operand.Mem) {
	a, b, y := c.XMM(), c.XMM(), c.XMM()
	c.VMOVUPS(at(0), a)
	c.VMOVUPS(at(1), b)
	c.VUNPCKLPS(b, a, y)
	c.VUNPCKHPS(b, a, a)
	c.VMOVLPS(y, to(0))
	c.VMOVHPS(y, to(1))
	c.VMOVLPS(a, to(2))
	c.VMOVHPS(a, to(3))
}

// square4x4d interleaves the rows a, b, c, d in the halves of registers, a0 b0 | a2 b2
// and c0 d0 | c2 d2, then joins the halves: a0 b0 c0 d0.
func square4x4d(c *build.Context, at, to func(i int) operand.Mem) {
	var x, y [4]reg.VecVirtual
	for i := range x {
		x[i], y[i] = c.YMM(), c.YMM()
		c.VMOVUPD(at(i), x[i])
	}
	c.VUNPCKLPD(x[1], x[0], y[0])
	c.VUNPCKHPD(x[1], x[0], y[1])
	c.VUNPCKLPD(x[3], x[2], y[2])
	c.VUNPCKHPD(x[3], x[2], y[3])
	const low, high = 0x20, 0x31
	c.VPERM2F128(operand.U8(low), y[2], y[0], x[0])
	c.VPERM2F128(operand.U8(low), y[3], y[1], x[1])
	c.VPERM2F128(operand.U8(high), y[2], y[0], x[2])
	c.VPERM2F128(operand.U8(high), y[3], y[1], x[3])
	for p := range x {
		c.VMOVUPD(x[p], to(p))
	}
}

// square2x4d interleaves two rows in the halves of registers: a0 b0 | a2 b2 and
// a1 b1 | a3 b3.
func square2x4d(c *build.Context, at, to func(i int) operand.Mem) {
	a, b, y := c.YMM(), c.YMM(), c.YMM()
	c.VMOVUPD(at(0), a)
	c.VMOVUPD(at(1), b)
	c.VUNPCKLPD(b, a, y)
	c.VUNPCKHPD(b, a, a)
	c.VMOVUPD(y.AsX(), to(0))
	c.VEXTRACTF128(operand.U8(1), y, to(2))
	c.VMOVUPD(a.AsX(), to(1))
	c.VEXTRACTF128(operand.U8(1), a, to(3))
}
