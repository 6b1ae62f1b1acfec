package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// shift maps a size in bytes to its binary logarithm.
var shift = map[int]uint64{2: 1, 4: 2, 8: 3}

// unroll is the number of registers of columns that one iteration of the loop processes.
const unroll = 2

// tilePass generates one pass over a tile for k right-hand sides, which processes groups of rows.
type tilePass struct {
	format
	set
	way
	rows, k int
	stream  bool // prefetch as many rows as are read, instead of one row for each group
}

// way selects the products with the tile that a pass forms, and names them in the names of routines.
type way struct {
	label      string
	sums, adds bool // u += T·x, y += Tᵀ·z
}

var (
	bothWays = way{"Both", true, true}
	forward  = way{"Forward", true, false}
	backward = way{"Backward", false, true}
)

// name returns the name of the routine.
func (p tilePass) name() string {
	label := p.label
	if p.stream {
		label += "Stream"
	}
	return fmt.Sprintf("%s%s%dx%d%s", p.letter, label, p.rows, p.k, p.set.name)
}

// build generates the routine. For groups of rows r and all columns j, one register of columns at a time, it computes
//
//	sum_rc += T_rj·x_jc   and   y_jc += Σ_r T_rj·z_rc;   then u_rc += Σ_j sum_rc.
//
// It uses rows·k registers for sums, rows·k for broadcast z, rows for T, and one for x and y.
func (p tilePass) build() {
	param := begin(p.name(), fmt.Sprintf("func(groups, cols int, tile *%s, ld int, x, y *%[2]s, stride int, "+
		"z, u *%[2]s, rowStride int, prefetch *%[1]s, step int)", p.tile, p.number),
		fmt.Sprintf("%s is a pass of %s over groups of %d rows for %d right-hand sides; see pass.",
			p.name(), p.set.name, p.rows, p.k))

	groups, tile, ld, stride := param("groups"), param("tile"), param("ld"), param("stride")
	z, u, rowStride, prefetch, pace := param("z"), param("u"), param("rowStride"), param("prefetch"), param("step")
	if !p.formsBoth() { // a group has advanced prefetch by cols entries; step counts from the start of the group
		bytes := Load(Param("cols"), GP64())
		SHLQ(Imm(shift[p.stored]), bytes)
		SUBQ(bytes, pace)
	}
	Comment("Strides in bytes.")
	SHLQ(Imm(shift[p.stored]), ld)
	SHLQ(Imm(shift[p.size]), stride)
	SHLQ(Imm(shift[p.size]), rowStride)

	sums, zs := make([][]VecVirtual, p.rows), make([][]VecVirtual, p.rows)
	for r := range p.rows {
		sums[r], zs[r] = make([]VecVirtual, p.k), make([]VecVirtual, p.k)
		for k := range p.k {
			if p.sums {
				sums[r][k] = p.reg()
			}
			if p.adds {
				zs[r][k] = p.reg()
			}
		}
	}
	xp, yp, tp, tp2, prefetch2, remaining := newColumns(stride, p.k), newColumns(stride, p.k), GP64(),
		GP64(), GP64(), GP64()

	Label("group")
	TESTQ(groups, groups)
	JZ(LabelRef("done"))
	zp := newColumns(rowStride, p.k)
	if p.adds {
		zp.start(z)
	}
	for r := range p.rows {
		for k := range p.k {
			if p.sums {
				p.zero(sums[r][k])
			}
			if p.adds {
				p.broadcast(zp.operand(k, r*p.size), zs[r][k])
			}
		}
	}
	if p.sums {
		Load(Param("x"), xp.base)
		xp.start(xp.base)
	}
	if p.adds {
		Load(Param("y"), yp.base)
		yp.start(yp.base)
	}
	MOVQ(tile, tp)
	if p.rows > 2 {
		LEAQ(Mem{Base: tile, Index: ld, Scale: 2}, tp2)
		if p.stream && !p.formsBoth() {
			LEAQ(Mem{Base: prefetch, Index: ld, Scale: 2}, prefetch2)
		}
	}
	Load(Param("cols"), remaining)
	tileAt := func(r int) Mem { return rowAt(tp, tp2, ld, r) }

	lanes := p.bytes / p.size
	align()
	Label("columns")
	p.prefetches(prefetch, prefetch2, ld)
	for n := range unroll {
		p.multiplyColumns(n, tileAt, xp, yp, sums, zs)
	}
	step := unroll * lanes * p.stored
	ADDQ(U32(step), tp)
	if p.rows > 2 {
		ADDQ(U32(step), tp2)
	}
	if p.formsBoth() {
		ADDQ(pace, prefetch)
	} else {
		ADDQ(U32(step), prefetch)
		if p.stream && p.rows > 2 {
			ADDQ(U32(step), prefetch2)
		}
	}
	if p.sums {
		xp.add(unroll * p.bytes)
	}
	if p.adds {
		yp.add(unroll * p.bytes)
	}
	SUBQ(U32(unroll*lanes), remaining)
	JNZ(LabelRef("columns"))

	if p.sums {
		Comment("The sums of the lanes.")
		up := newColumns(rowStride, p.k)
		up.start(u)
		for r := range p.rows {
			for k := range p.k {
				p.flush(sums[r][k], up.operand(k, r*p.size))
			}
		}
	}
	for range p.rows {
		ADDQ(ld, tile)
	}
	if !p.formsBoth() {
		ADDQ(pace, prefetch)
	}
	if p.adds {
		ADDQ(U32(p.rows*p.size), z)
	}
	if p.sums {
		ADDQ(U32(p.rows*p.size), u)
	}
	DECQ(groups)
	JMP(LabelRef("group"))
	Label("done")
	VZEROUPPER()
	RET()
}

// multiplyColumns generates the code for the n-th register of columns in an iteration of the loop. If there are fewer
// rows of T than right-hand sides, the rows stay in registers and the right-hand sides are loaded one after the other,
// and vice versa.
func (p tilePass) multiplyColumns(n int, tileAt func(r int) Mem, xp, yp columns, sums, zs [][]VecVirtual) {
	disp := n * p.bytes
	load := func(r int) VecVirtual {
		t, v := tileAt(r), p.reg()
		t.Disp = disp / p.size * p.stored
		p.load(t, v)
		return v
	}
	if p.rows > p.k && !p.formsBoth() {
		vs := make([]VecVirtual, p.k) // registers of x or y
		source := xp
		if p.adds {
			source = yp
		}
		for k := range vs {
			vs[k] = p.reg()
			p.move(source.operand(k, disp), vs[k])
		}
		for r := range p.rows {
			t := load(r)
			for k, v := range vs {
				if p.sums {
					p.fma(v, t, sums[r][k])
				} else {
					p.fma(zs[r][k], t, v)
				}
			}
		}
		for k, v := range vs {
			if p.adds {
				p.move(v, yp.operand(k, disp))
			}
		}
		return
	}
	ts := make([]VecVirtual, p.rows)
	for r := range ts {
		ts[r] = load(r)
	}
	for k := range p.k {
		if p.sums {
			v := p.reg()
			p.move(xp.operand(k, disp), v)
			for r, t := range ts {
				p.fma(v, t, sums[r][k])
			}
		}
		if p.adds {
			v := p.reg()
			p.move(yp.operand(k, disp), v)
			for r, t := range ts {
				p.fma(zs[r][k], t, v)
			}
			p.move(v, yp.operand(k, disp))
		}
	}
}

// columns holds the address of k columns of a block with a stride: the first three are relative to base, and the others
// to high, which is three columns after base.
type columns struct {
	base, high, stride GPVirtual
	k                  int
}

// newColumns returns columns whose address is set by start.
func newColumns(stride GPVirtual, k int) columns {
	return columns{GP64(), GP64(), stride, k}
}

// start sets the address of the first column.
func (c *columns) start(base GPVirtual) {
	c.base = base
	if c.k > 3 {
		LEAQ(Mem{Base: base, Index: c.stride, Scale: 2}, c.high)
		ADDQ(c.stride, c.high)
	}
}

// add advances the addresses by the given number of bytes.
func (c *columns) add(bytes int) {
	ADDQ(U32(bytes), c.base)
	if c.k > 3 {
		ADDQ(U32(bytes), c.high)
	}
}

// operand returns the address disp bytes after the current one in column k.
func (c *columns) operand(k, disp int) Mem {
	m := Mem{Base: c.base, Disp: disp}
	if k >= 3 {
		m.Base, k = c.high, k-3
	}
	if k > 0 {
		m.Index, m.Scale = c.stride, uint8(k)
	}
	return m
}

// align aligns a loop to a cache line. The decoded instructions of a pass then fit the cache of the decoders, and the
// time of the loop does not depend on the code before it.
func align() {
	Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []Op{Imm(64)}})
}

// prefetches generates the prefetches of an iteration. A pass that forms both products prefetches one row of the
// iteration's columns, or as many bytes as it reads. Other passes prefetch the next columns of one row, or of as many
// rows as they read.
func (p tilePass) prefetches(prefetch, prefetch2, ld GPVirtual) {
	bytes := unroll * p.bytes / p.size * p.stored
	switch {
	case !p.formsBoth() && p.stream:
		for r := range p.rows {
			PREFETCHT1(rowAt(prefetch, prefetch2, ld, r))
		}
	case p.formsBoth() && p.stream:
		bytes *= p.rows
		fallthrough
	default:
		for line := range (bytes + 63) / 64 {
			PREFETCHT1(Mem{Base: prefetch, Disp: 64 * line})
		}
	}
}

// formsBoth reports whether the pass forms both products.
func (p tilePass) formsBoth() bool { return p.sums && p.adds }

// rowAt returns the address of row r ≤ 3. Rows 0 and 1 start at low, rows 2 and 3 at high, with stride ld.
func rowAt(low, high, ld GPVirtual, r int) Mem {
	m := Mem{Base: low}
	if r >= 2 {
		m.Base = high
	}
	if r%2 == 1 {
		m.Index, m.Scale = ld, 1
	}
	return m
}

// flush adds the sum of the lanes of a register to the number at target.
func (p tilePass) flush(sum VecVirtual, target Mem) {
	p.reduce(sum)
	p.add1(target, sum.AsX(), sum.AsX())
	p.store1(sum.AsX(), target)
}

// reduce replaces the first lane of a register by the sum of its lanes.
func (p tilePass) reduce(sum VecVirtual) {
	half := YMM()
	low, one := sum.AsY(), sum.AsX()
	if p.bytes == 64 {
		VEXTRACTF64X4(Imm(1), sum, half)
		p.add(half, low, low)
	}
	quarter := XMM()
	if p.bytes == 64 { // registers above 15 have EVEX forms only
		VEXTRACTF32X4(Imm(1), low, quarter)
	} else {
		VEXTRACTF128(Imm(1), low, quarter)
	}
	p.add(quarter, one, one)
	if p.size == 4 {
		VMOVHLPS(one, one, quarter)
		VADDPS(quarter, one, one)
		VMOVSHDUP(one, quarter)
	} else {
		VUNPCKHPD(one, one, quarter)
	}
	p.add1(quarter, one, one)
}
