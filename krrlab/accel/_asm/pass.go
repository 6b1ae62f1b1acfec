package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shift are the logarithms of sizes in bytes.
var shift = map[int]uint64{2: 1, 4: 2, 8: 3}

// unroll is the number of registers of columns in one turn of the loop.
const unroll = 2

// tilePass is one pass over a tile for k right-hand sides, rows of it at a time.
type tilePass struct {
	format
	set
	way
	rows, k int
	stream  bool // fetch up to as much ahead as is read, and not one row for all
}

// way is which products with the tile are formed.
type way struct {
	label      string
	sums, adds bool // u += T·x, y += Tᵀ·z
}

var (
	both     = way{"Both", true, true}
	forward  = way{"Forward", true, false}
	backward = way{"Backward", false, true}
)

func (p tilePass) name() string {
	label := p.label
	if p.stream {
		label += "Stream"
	}
	return fmt.Sprintf("%s%s%dx%d%s", p.letter, label, p.rows, p.k, p.set.name)
}

// build writes the routine. For groups of rows r and all columns j, a register of them
// at a time,
//
//	sum_rc += T_rj·x_jc   and   y_jc += Σ_r T_rj·z_rc;   then u_rc += Σ_j sum_rc.
//
// Registers: rows·k sums, rows·k broadcast z, rows of T, and one for x and y.
func (p tilePass) build(c *build.Context) {
	param := begin(c, p.name(), fmt.Sprintf("func(groups, cols int, tile *%s, ld int, x, y *%[2]s, stride int, "+
		"z, u *%[2]s, rowStride int, ahead *%[1]s, step int)", p.tile, p.number),
		fmt.Sprintf("%s is a pass of %s over groups of %d rows for %d right-hand sides; see pass.",
			p.name(), p.set.name, p.rows, p.k))

	groups, tile, ld, stride := param("groups"), param("tile"), param("ld"), param("stride")
	z, u, rowStride, ahead, pace := param("z"), param("u"), param("rowStride"), param("ahead"), param("step")
	if !p.both() { // from the end of what is fetched beside a group on to the next
		bytes := c.Load(c.Param("cols"), c.GP64())
		c.SHLQ(operand.Imm(shift[p.stored]), bytes)
		c.SUBQ(bytes, pace)
	}
	c.Comment("Strides in bytes.")
	c.SHLQ(operand.Imm(shift[p.stored]), ld)
	c.SHLQ(operand.Imm(shift[p.size]), stride)
	c.SHLQ(operand.Imm(shift[p.size]), rowStride)

	sums, zs := make([][]reg.VecVirtual, p.rows), make([][]reg.VecVirtual, p.rows)
	for r := range p.rows {
		sums[r], zs[r] = make([]reg.VecVirtual, p.k), make([]reg.VecVirtual, p.k)
		for k := range p.k {
			if p.sums {
				sums[r][k] = p.reg(c)
			}
			if p.adds {
				zs[r][k] = p.reg(c)
			}
		}
	}
	xp, yp, tp, tp2, ahead2, left := newColumns(c, stride, p.k), newColumns(c, stride, p.k), c.GP64().(reg.GPVirtual),
		c.GP64().(reg.GPVirtual), c.GP64().(reg.GPVirtual), c.GP64()

	c.Label("group")
	c.TESTQ(groups, groups)
	c.JZ(operand.LabelRef("done"))
	zp := newColumns(c, rowStride, p.k)
	if p.adds {
		zp.start(c, z)
	}
	for r := range p.rows {
		for k := range p.k {
			if p.sums {
				p.zero(c, sums[r][k])
			}
			if p.adds {
				p.broadcast(c, zp.at(k, r*p.size), zs[r][k])
			}
		}
	}
	if p.sums {
		c.Load(c.Param("x"), xp.base)
		xp.start(c, xp.base)
	}
	if p.adds {
		c.Load(c.Param("y"), yp.base)
		yp.start(c, yp.base)
	}
	c.MOVQ(tile, tp)
	if p.rows > 2 {
		c.LEAQ(operand.Mem{Base: tile, Index: ld, Scale: 2}, tp2)
		if p.stream && !p.both() {
			c.LEAQ(operand.Mem{Base: ahead, Index: ld, Scale: 2}, ahead2)
		}
	}
	c.Load(c.Param("cols"), left)
	tileAt := func(r int) operand.Mem { return rowAt(tp, tp2, ld, r) }

	lanes := p.bytes / p.size
	align(c)
	c.Label("columns")
	p.fetch(c, ahead, ahead2, ld)
	for n := range unroll {
		p.columns(c, n, tileAt, xp, yp, sums, zs)
	}
	step := unroll * lanes * p.stored
	c.ADDQ(operand.U32(step), tp)
	if p.rows > 2 {
		c.ADDQ(operand.U32(step), tp2)
	}
	if p.both() {
		c.ADDQ(pace, ahead)
	} else {
		c.ADDQ(operand.U32(step), ahead)
		if p.stream && p.rows > 2 {
			c.ADDQ(operand.U32(step), ahead2)
		}
	}
	if p.sums {
		xp.add(c, unroll*p.bytes)
	}
	if p.adds {
		yp.add(c, unroll*p.bytes)
	}
	c.SUBQ(operand.U32(unroll*lanes), left)
	c.JNZ(operand.LabelRef("columns"))

	if p.sums {
		c.Comment("The sums of the lanes.")
		up := newColumns(c, rowStride, p.k)
		up.start(c, u)
		for r := range p.rows {
			for k := range p.k {
				p.flush(c, sums[r][k], up.at(k, r*p.size))
			}
		}
	}
	for range p.rows {
		c.ADDQ(ld, tile)
	}
	if !p.both() {
		c.ADDQ(pace, ahead)
	}
	if p.adds {
		c.ADDQ(operand.U32(p.rows*p.size), z)
	}
	if p.sums {
		c.ADDQ(operand.U32(p.rows*p.size), u)
	}
	c.DECQ(groups)
	c.JMP(operand.LabelRef("group"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// columns writes the n-th register of columns of a turn of the loop. Of the rows of T and the
// right-hand sides the fewer are kept in registers and the others loaded one after the other.
func (p tilePass) columns(c *build.Context, n int, tileAt func(r int) operand.Mem, xp, yp columns, sums,
	zs [][]reg.VecVirtual) {
	disp := n * p.bytes
	load := func(r int) reg.VecVirtual {
		t, v := tileAt(r), p.reg(c)
		t.Disp = disp / p.size * p.stored
		p.load(c, t, v)
		return v
	}
	if p.rows > p.k && !p.both() {
		vs := make([]reg.VecVirtual, p.k) // of x, or of y
		from := xp
		if p.adds {
			from = yp
		}
		for k := range vs {
			vs[k] = p.reg(c)
			p.move(c, from.at(k, disp), vs[k])
		}
		for r := range p.rows {
			t := load(r)
			for k, v := range vs {
				if p.sums {
					p.fma(c, v, t, sums[r][k])
				} else {
					p.fma(c, zs[r][k], t, v)
				}
			}
		}
		for k, v := range vs {
			if p.adds {
				p.move(c, v, yp.at(k, disp))
			}
		}
		return
	}
	ts := make([]reg.VecVirtual, p.rows)
	for r := range ts {
		ts[r] = load(r)
	}
	for k := range p.k {
		if p.sums {
			v := p.reg(c)
			p.move(c, xp.at(k, disp), v)
			for r, t := range ts {
				p.fma(c, v, t, sums[r][k])
			}
		}
		if p.adds {
			v := p.reg(c)
			p.move(c, yp.at(k, disp), v)
			for r, t := range ts {
				p.fma(c, zs[r][k], t, v)
			}
			p.move(c, v, yp.at(k, disp))
		}
	}
}

// columns addresses k columns of a block with a stride: the first three from base, the others
// from high, three columns on.
type columns struct {
	base, high, stride reg.GPVirtual
	k                  int
}

func newColumns(c *build.Context, stride reg.GPVirtual, k int) columns {
	return columns{c.GP64().(reg.GPVirtual), c.GP64().(reg.GPVirtual), stride, k}
}

// start sets the address of the first column.
func (b *columns) start(c *build.Context, base reg.GPVirtual) {
	b.base = base
	if b.k > 3 {
		c.LEAQ(operand.Mem{Base: base, Index: b.stride, Scale: 2}, b.high)
		c.ADDQ(b.stride, b.high)
	}
}

// add moves on by that many bytes.
func (b *columns) add(c *build.Context, bytes int) {
	c.ADDQ(operand.U32(bytes), b.base)
	if b.k > 3 {
		c.ADDQ(operand.U32(bytes), b.high)
	}
}

// at is the address disp bytes on in column k.
func (b *columns) at(k, disp int) operand.Mem {
	m := operand.Mem{Base: b.base, Disp: disp}
	if k >= 3 {
		m.Base, k = b.high, k-3
	}
	if k > 0 {
		m.Index, m.Scale = b.stride, uint8(k)
	}
	return m
}

// align starts a loop at the start of a cache line: what the decoders make of that of a pass
// fits their cache, and the time does not depend on what is written before.
func align(c *build.Context) {
	c.Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []operand.Op{operand.Imm(64)}})
}

// fetch fetches what is ahead, of a tile to be multiplied both ways a row of the turn's columns
// or as much as is read, and else the next columns of one row or of as many as are read.
func (p tilePass) fetch(c *build.Context, ahead, ahead2, ld reg.GPVirtual) {
	row := unroll * p.bytes / p.size * p.stored
	switch {
	case !p.both() && p.stream:
		for r := range p.rows {
			c.PREFETCHT1(rowAt(ahead, ahead2, ld, r))
		}
	case p.both() && p.stream:
		row *= p.rows
		fallthrough
	default:
		for l := range (row + 63) / 64 {
			c.PREFETCHT1(operand.Mem{Base: ahead, Disp: 64 * l})
		}
	}
}

// both reports whether the pass forms both products.
func (p tilePass) both() bool { return p.sums && p.adds }

// rowAt is row r ≤ 3 of rows of stride ld, two of which are at low and two at high.
func rowAt(low, high, ld reg.GPVirtual, r int) operand.Mem {
	m := operand.Mem{Base: low}
	if r >= 2 {
		m.Base = high
	}
	if r%2 == 1 {
		m.Index, m.Scale = ld, 1
	}
	return m
}

// flush adds the lanes of a register to a number in memory.
func (p tilePass) flush(c *build.Context, sum reg.VecVirtual, to operand.Mem) {
	p.reduce(c, sum)
	p.add1(c, to, sum.AsX(), sum.AsX())
	p.store1(c, sum.AsX(), to)
}

// reduce leaves the sum of the lanes of a register in the first.
func (p tilePass) reduce(c *build.Context, sum reg.VecVirtual) {
	half := c.YMM()
	low, one := sum.AsY(), sum.AsX()
	if p.bytes == 64 {
		c.VEXTRACTF64X4(operand.Imm(1), sum, half)
		p.add(c, half, low, low)
	}
	quarter := c.XMM()
	if p.bytes == 64 { // registers above 15 have EVEX forms only
		c.VEXTRACTF32X4(operand.Imm(1), low, quarter)
	} else {
		c.VEXTRACTF128(operand.Imm(1), low, quarter)
	}
	p.add(c, quarter, one, one)
	if p.size == 4 {
		c.VMOVHLPS(one, one, quarter)
		c.VADDPS(quarter, one, one)
		c.VMOVSHDUP(one, quarter)
	} else {
		c.VUNPCKHPD(one, one, quarter)
	}
	p.add1(c, quarter, one, one)
}
