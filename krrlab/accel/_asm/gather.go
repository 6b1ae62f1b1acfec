package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gathering is a routine of GatherDot: the entries of a row are taken eight at a time, each into a lane of sums, and
// the others one by one.
type gathering struct {
	col, value, x, at GPVirtual
}

// rows writes the loop over the rows: eight adds eight products, sum leaves the sum of the lanes where one adds a
// product, and store writes it.
func (g gathering) rows(start, rows GPVirtual, clear []VecVirtual, eight, sum, one, store func()) {
	end, full := GP64(), GP64()
	MOVQ(Mem{Base: start}, g.at)
	Label("row")
	TESTQ(rows, rows)
	JZ(LabelRef("done"))
	ADDQ(Imm(8), start)
	MOVQ(Mem{Base: start}, end)
	for _, v := range clear {
		avx2.zero(v)
	}
	align()
	Label("eight")
	LEAQ(Mem{Base: g.at, Disp: 8}, full)
	CMPQ(full, end)
	JGT(LabelRef("sum"))
	eight()
	MOVQ(full, g.at)
	JMP(LabelRef("eight"))
	Label("sum")
	sum()
	Label("one")
	CMPQ(g.at, end)
	JGE(LabelRef("store"))
	one()
	INCQ(g.at)
	JMP(LabelRef("one"))
	Label("store")
	store()
	DECQ(rows)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// index returns the column of entry n from here.
func (g gathering) index(n int) GPVirtual {
	j := GP64()
	MOVLQSX(at(g.col, g.at, 4*n), j)
	return j
}

// gather writes the product with one vector. Numbers of x are loaded one by one, which takes less time than the
// instructions for gathering, on processors that have to work around a fault of theirs by much.
func gather() {
	param := begin("gatherAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64)",
		"gatherAVX2 is GatherDot for one vector.")
	g := gathering{param("col"), param("value"), param("x"), GP64()}
	y, low, high := param("y"), YMM(), YMM()
	number := func(n int) Mem { return Mem{Base: g.x, Index: g.index(n), Scale: 8} }
	g.rows(param("start"), param("rows"), []VecVirtual{low, high}, func() {
		for h, sum := range []VecVirtual{low, high} {
			v, a, b := YMM(), XMM(), XMM()
			for l, pair := range []VecVirtual{a, b} {
				VMOVSD(number(4*h+2*l), pair)
				VMOVHPD(number(4*h+2*l+1), pair, pair)
			}
			VINSERTF128(Imm(1), b, a.AsY(), a.AsY())
			VCVTPS2PD(at(g.value, g.at, 16*h), v)
			VMULPD(a.AsY(), v, v)
			VADDPD(v, sum, sum)
		}
	}, func() {
		VADDPD(high, low, low)
		tilePass{format: float64s, set: avx2}.reduce(low)
	}, func() {
		v := XMM()
		VXORPS(v, v, v)
		VCVTSS2SD(at(g.value, g.at, 0), v, v)
		VMULSD(number(0), v, v)
		VADDSD(v, low.AsX(), low.AsX())
	}, func() {
		VMOVSD(low.AsX(), Mem{Base: y})
		ADDQ(Imm(8), y)
	})
}

// gathers writes the product with up to four vectors, whose numbers lie together.
func gathers() {
	param := begin("gathersAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64, "+
		"stride int, mask *uint64)",
		"gathersAVX2 is GatherDot for the vectors of up to four that mask has, in rows of x and y of that stride.")
	g := gathering{param("col"), param("value"), param("x"), GP64()}
	y, stride, mask := param("y"), param("stride"), YMM()
	VMOVDQU(Mem{Base: param("mask")}, mask)
	SHLQ(Imm(3), stride)
	sums := make([]VecVirtual, 8)
	for l := range sums {
		sums[l] = YMM()
	}
	add := func(n int, sum VecVirtual) {
		j, v, w := g.index(n), YMM(), YMM()
		IMULQ(stride, j)
		VBROADCASTSS(at(g.value, g.at, 4*n), v.AsX())
		VCVTPS2PD(v.AsX(), v)
		VMASKMOVPD(Mem{Base: g.x, Index: j, Scale: 1}, mask, w)
		VMULPD(w, v, v)
		VADDPD(v, sum, sum)
	}
	g.rows(param("start"), param("rows"), sums, func() {
		for n, sum := range sums {
			add(n, sum)
		}
	}, func() {
		for k := 4; k > 0; k /= 2 {
			for l := range k {
				VADDPD(sums[l+k], sums[l], sums[l])
			}
		}
	}, func() { add(0, sums[0]) }, func() {
		VMASKMOVPD(sums[0], mask, Mem{Base: y})
		ADDQ(stride, y)
	})
}
