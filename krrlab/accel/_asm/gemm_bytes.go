package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// byteKernel is a micro-kernel of integers: rows × two registers of int32. An element of a
// panel is a word of 32 bits: two numbers of 16 bits for AVX2, four bytes for VNNI.
type byteKernel struct {
	set  set
	rows int
	// dot adds the products of the numbers of y, those of B, and x, those of A, to sum.
	dot func(c *build.Context, y, x, sum reg.VecVirtual)
}

var byteKernels = []byteKernel{
	{avx2, 6, func(c *build.Context, y, x, sum reg.VecVirtual) {
		t := c.YMM()
		c.VPMADDWD(y, x, t)
		c.VPADDD(t, sum, sum)
	}},
	{avx512, 14,
		// of VNNI: y's bytes unsigned, x's signed
		func(c *build.Context, y, x, sum reg.VecVirtual) { c.VPDPBUSD(x, y, sum) }},
}

func (k byteKernel) cols() int    { return vectors * k.set.bytes / 4 }
func (k byteKernel) name() string { return fmt.Sprintf("igemm%dx%d", k.rows, k.cols()) }

// build writes the kernel, with the registers of kernel.build; AVX2 has one for a product in
// place of the second element of A.
func (k byteKernel) build(c *build.Context) {
	param := begin(c, k.name(), "func(k int, a, b *uint32, start, c *int32, ldc int)",
		fmt.Sprintf("%s is a micro-kernel of %s; see byteKernel.", k.name(), k.set.name))

	n, a, b, start, out, ldc := param("k"), param("a"), param("b"), param("start"), param("c"), param("ldc")
	c.SHLQ(operand.U8(2), ldc)

	sums := make([][vectors]reg.VecVirtual, k.rows)
	for i := range sums {
		for v := range sums[i] {
			sums[i][v] = k.set.reg(c)
			c.VMOVUPS(operand.Mem{Base: start, Disp: v * k.set.bytes}, sums[i][v])
		}
	}
	var y [vectors]reg.VecVirtual
	for v := range y {
		y[v] = k.set.reg(c)
	}
	x := k.set.reg(c)
	step := func(p int) {
		for v := range y {
			c.VMOVUPS(operand.Mem{Base: b, Disp: (p*vectors + v) * k.set.bytes}, y[v])
		}
		for i := range sums {
			c.VBROADCASTSS(operand.Mem{Base: a, Disp: (p*k.rows + i) * 4}, x)
			for v := range y {
				k.dot(c, y[v], x, sums[i][v])
			}
		}
	}
	c.Comment("Two steps in a turn: sums += a·b.")
	c.SUBQ(operand.U8(2), n)
	c.JL(operand.LabelRef("rest"))
	c.Label("turn")
	step(0)
	step(1)
	c.ADDQ(operand.U32(2*k.rows*4), a)
	c.ADDQ(operand.U32(2*vectors*k.set.bytes), b)
	c.SUBQ(operand.U8(2), n)
	c.JGE(operand.LabelRef("turn"))
	c.Label("rest")
	c.ADDQ(operand.U8(2), n)
	c.JZ(operand.LabelRef("write"))
	step(0)
	c.Label("write")
	for i := range sums {
		for v := range sums[i] {
			c.VMOVUPS(sums[i][v], operand.Mem{Base: out, Disp: v * k.set.bytes})
		}
		if i < k.rows-1 {
			c.ADDQ(ldc, out)
		}
	}
	c.VZEROUPPER()
	c.RET()
}
