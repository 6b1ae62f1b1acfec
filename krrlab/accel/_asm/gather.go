package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gathering is a routine of GatherDot: the entries of a row are taken eight at a time, each into a lane of sums, and
// the others one by one.
type gathering struct {
	*build.Context
	col, value, x, at reg.GPVirtual
}

// rows writes the loop over the rows: eight adds eight products, sum leaves the sum of the lanes where one adds a
// product, and store writes it.
func (g gathering) rows(start, rows reg.GPVirtual, clear []reg.VecVirtual, eight, sum, one, store func()) {
	end, full := g.GP64(), g.GP64()
	g.MOVQ(operand.Mem{Base: start}, g.at)
	g.Label("row")
	g.TESTQ(rows, rows)
	g.JZ(operand.LabelRef("done"))
	g.ADDQ(operand.Imm(8), start)
	g.MOVQ(operand.Mem{Base: start}, end)
	for _, v := range clear {
		avx2.zero(g.Context, v)
	}
	align(g.Context)
	g.Label("eight")
	g.LEAQ(operand.Mem{Base: g.at, Disp: 8}, full)
	g.CMPQ(full, end)
	g.JGT(operand.LabelRef("sum"))
	eight()
	g.MOVQ(full, g.at)
	g.JMP(operand.LabelRef("eight"))
	g.Label("sum")
	sum()
	g.Label("one")
	g.CMPQ(g.at, end)
	g.JGE(operand.LabelRef("store"))
	one()
	g.INCQ(g.at)
	g.JMP(operand.LabelRef("one"))
	g.Label("store")
	store()
	g.DECQ(rows)
	g.JMP(operand.LabelRef("row"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// index returns the column of entry n from here.
func (g gathering) index(n int) reg.GPVirtual {
	j := g.GP64().(reg.GPVirtual)
	g.MOVLQSX(at(g.col, g.at, 4*n), j)
	return j
}

// gather writes the product with one vector. Numbers of x are loaded one by one, which takes less time than the
// instructions for gathering, on processors that have to work around a fault of theirs by much.
func gather(c *build.Context) {
	param := begin(c, "gatherAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64)",
		"gatherAVX2 is GatherDot for one vector.")
	g := gathering{c, param("col"), param("value"), param("x"), c.GP64().(reg.GPVirtual)}
	y, low, high := param("y"), c.YMM(), c.YMM()
	number := func(n int) operand.Mem { return operand.Mem{Base: g.x, Index: g.index(n), Scale: 8} }
	g.rows(param("start"), param("rows"), []reg.VecVirtual{low, high}, func() {
		for h, sum := range []reg.VecVirtual{low, high} {
			v, a, b := c.YMM(), c.XMM(), c.XMM()
			for l, pair := range []reg.VecVirtual{a, b} {
				c.VMOVSD(number(4*h+2*l), pair)
				c.VMOVHPD(number(4*h+2*l+1), pair, pair)
			}
			c.VINSERTF128(operand.Imm(1), b, a.AsY(), a.AsY())
			c.VCVTPS2PD(at(g.value, g.at, 16*h), v)
			c.VMULPD(a.AsY(), v, v)
			c.VADDPD(v, sum, sum)
		}
	}, func() {
		c.VADDPD(high, low, low)
		tilePass{format: float64s, set: avx2}.reduce(c, low)
	}, func() {
		v := c.XMM()
		c.VXORPS(v, v, v)
		c.VCVTSS2SD(at(g.value, g.at, 0), v, v)
		c.VMULSD(number(0), v, v)
		c.VADDSD(v, low.AsX(), low.AsX())
	}, func() {
		c.VMOVSD(low.AsX(), operand.Mem{Base: y})
		c.ADDQ(operand.Imm(8), y)
	})
}

// gathers writes the product with up to four vectors, whose numbers lie together.
func gathers(c *build.Context) {
	param := begin(c, "gathersAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64, "+
		"stride int, mask *uint64)",
		"gathersAVX2 is GatherDot for the vectors of up to four that mask has, in rows of x and y of that stride.")
	g := gathering{c, param("col"), param("value"), param("x"), c.GP64().(reg.GPVirtual)}
	y, stride, mask := param("y"), param("stride"), c.YMM()
	c.VMOVDQU(operand.Mem{Base: param("mask")}, mask)
	c.SHLQ(operand.Imm(3), stride)
	sums := make([]reg.VecVirtual, 8)
	for l := range sums {
		sums[l] = c.YMM()
	}
	add := func(n int, sum reg.VecVirtual) {
		j, v, w := g.index(n), c.YMM(), c.YMM()
		c.IMULQ(stride, j)
		c.VBROADCASTSS(at(g.value, g.at, 4*n), v.AsX())
		c.VCVTPS2PD(v.AsX(), v)
		c.VMASKMOVPD(operand.Mem{Base: g.x, Index: j, Scale: 1}, mask, w)
		c.VMULPD(w, v, v)
		c.VADDPD(v, sum, sum)
	}
	g.rows(param("start"), param("rows"), sums, func() {
		for n, sum := range sums {
			add(n, sum)
		}
	}, func() {
		for k := 4; k > 0; k /= 2 {
			for l := range k {
				c.VADDPD(sums[l+k], sums[l], sums[l])
			}
		}
	}, func() { add(0, sums[0]) }, func() {
		c.VMASKMOVPD(sums[0], mask, operand.Mem{Base: y})
		c.ADDQ(stride, y)
	})
}
