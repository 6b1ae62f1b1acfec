package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gathering generates a routine of GatherDot. It processes eight entries of a row at a time, each in a lane of the
// sums, and the remaining entries one by one. Its fields are the registers with the addresses of the columns, the
// values and x, and with the index of the current entry.
type gathering struct {
	col, value, x, entry GPVirtual
}

// gatherSteps are the parts of the loop over the entries of a row.
type gatherSteps struct {
	sums  []VecVirtual // registers that are set to 0 before the row
	eight func()       // adds eight products to the lanes
	sum   func()       // adds up the lanes, in the register to which the function one adds
	one   func()       // adds one product to the sum
	store func()       // stores the sum
}

// rows generates the loop over the rows. start is the register with the address of the indices of the first entries of
// the rows, which end with the end of the last row.
func (g gathering) rows(start, rows GPVirtual, steps gatherSteps) {
	end, groupEnd := GP64(), GP64()
	MOVQ(Mem{Base: start}, g.entry)
	Label("row")
	TESTQ(rows, rows)
	JZ(LabelRef("done"))
	ADDQ(Imm(8), start)
	MOVQ(Mem{Base: start}, end)
	for _, sum := range steps.sums {
		avx2.zero(sum)
	}
	align()
	Label("eight")
	LEAQ(Mem{Base: g.entry, Disp: 8}, groupEnd)
	CMPQ(groupEnd, end)
	JGT(LabelRef("sum"))
	steps.eight()
	MOVQ(groupEnd, g.entry)
	JMP(LabelRef("eight"))
	Label("sum")
	steps.sum()
	Label("one")
	CMPQ(g.entry, end)
	JGE(LabelRef("store"))
	steps.one()
	INCQ(g.entry)
	JMP(LabelRef("one"))
	Label("store")
	steps.store()
	DECQ(rows)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}

// index returns a register with the column of entry n after the current one.
func (g gathering) index(n int) GPVirtual {
	j := GP64()
	MOVLQSX(element(g.col, g.entry, 4*n), j)
	return j
}

// gather generates the product with one vector. It loads the numbers of x one by one. The gather instructions are
// slower, and much slower on processors whose microcode works around a security fault of these instructions.
func gather() {
	param := begin("gatherAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64)",
		"gatherAVX2 is GatherDot for one vector.")
	g := gathering{param("col"), param("value"), param("x"), GP64()}
	y, low, high := param("y"), YMM(), YMM()
	number := func(n int) Mem { return Mem{Base: g.x, Index: g.index(n), Scale: 8} }
	sums := []VecVirtual{low, high}
	g.rows(param("start"), param("rows"), gatherSteps{sums, func() {
		for half, sum := range sums {
			v, a, b := YMM(), XMM(), XMM()
			for position, pair := range []VecVirtual{a, b} {
				VMOVSD(number(4*half+2*position), pair)
				VMOVHPD(number(4*half+2*position+1), pair, pair)
			}
			VINSERTF128(Imm(1), b, a.AsY(), a.AsY())
			VCVTPS2PD(element(g.value, g.entry, 16*half), v)
			VMULPD(a.AsY(), v, v)
			VADDPD(v, sum, sum)
		}
	}, func() {
		VADDPD(high, low, low)
		tilePass{format: float64s, set: avx2}.reduce(low)
	}, func() {
		v := XMM()
		VXORPS(v, v, v)
		VCVTSS2SD(element(g.value, g.entry, 0), v, v)
		VMULSD(number(0), v, v)
		VADDSD(v, low.AsX(), low.AsX())
	}, func() {
		VMOVSD(low.AsX(), Mem{Base: y})
		ADDQ(Imm(8), y)
	}})
}

// gathers generates the product with up to four vectors. The numbers of the vectors for one column are adjacent.
func gathers() {
	param := begin("gathersAVX2", "func(rows int, start *int64, col *int32, value *float32, x, y *float64, "+
		"stride int, mask *uint64)",
		"gathersAVX2 is GatherDot for the vectors that mask selects, at most four, in rows of x and y with the given "+
			"stride.")
	g := gathering{param("col"), param("value"), param("x"), GP64()}
	y, stride, mask := param("y"), param("stride"), YMM()
	VMOVDQU(Mem{Base: param("mask")}, mask)
	SHLQ(Imm(3), stride)
	sums := make([]VecVirtual, 8)
	for lane := range sums {
		sums[lane] = YMM()
	}
	add := func(n int, sum VecVirtual) {
		j, v, w := g.index(n), YMM(), YMM()
		IMULQ(stride, j)
		VBROADCASTSS(element(g.value, g.entry, 4*n), v.AsX())
		VCVTPS2PD(v.AsX(), v)
		VMASKMOVPD(Mem{Base: g.x, Index: j, Scale: 1}, mask, w)
		VMULPD(w, v, v)
		VADDPD(v, sum, sum)
	}
	g.rows(param("start"), param("rows"), gatherSteps{sums, func() {
		for n, sum := range sums {
			add(n, sum)
		}
	}, func() {
		for lanes := 4; lanes > 0; lanes /= 2 {
			for lane := range lanes {
				VADDPD(sums[lane+lanes], sums[lane], sums[lane])
			}
		}
	}, func() { add(0, sums[0]) }, func() {
		VMASKMOVPD(sums[0], mask, Mem{Base: y})
		ADDQ(stride, y)
	}})
}
