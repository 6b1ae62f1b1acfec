package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unroll is the number of registers of columns in one turn of the loop.
const unroll = 2

// tilePass is one pass over a tile for k right-hand sides, rows of it at a time.
type tilePass struct {
	format
	set
	way
	rows, k int
	stream  bool // fetch up to as much ahead as is read, and not up to one row in all
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
	c.Function(p.name())
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.SignatureExpr(fmt.Sprintf("func(groups, cols int, tile *%s, ld int, x, y *%[2]s, stride int, z, u *%[2]s, rowStride int, ahead *%s, step int)", p.tile, p.number, p.tile))
	c.Doc(fmt.Sprintf("%s is a pass of %s over groups of %d rows for %d right-hand sides; see pass.", p.name(), p.set.name, p.rows, p.k))

	param := func(name string) reg.GPVirtual { return c.Load(c.Param(name), c.GP64()).(reg.GPVirtual) }
	groups, tile, ld, stride := param("groups"), param("tile"), param("ld"), param("stride")
	z, u, rowStride, ahead, pace := param("z"), param("u"), param("rowStride"), param("ahead"), param("step")
	shift := map[int]uint64{2: 1, 4: 2, 8: 3}
	c.Comment("Strides in bytes.")
	c.SHLQ(operand.Imm(shift[p.stored]), ld)
	c.SHLQ(operand.Imm(shift[p.size]), stride)
	c.SHLQ(operand.Imm(shift[p.size]), rowStride)

	sums, zs := make([][]reg.VecVirtual, p.rows), make([][]reg.VecVirtual, p.rows)
	ts := make([]reg.VecVirtual, p.rows)
	for r := range p.rows {
		ts[r] = p.reg(c)
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
	v := p.reg(c)
	// column k of a block with that stride, for k ≤ 2
	at := func(base, index reg.GPVirtual, k, disp int) operand.Mem {
		m := operand.Mem{Base: base, Disp: disp}
		if k > 0 {
			m.Index, m.Scale = index, uint8(k)
		}
		return m
	}
	xp, yp, tp, tp2, left := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()

	c.Label("group")
	c.TESTQ(groups, groups)
	c.JZ(operand.LabelRef("done"))
	for r := range p.rows {
		for k := range p.k {
			if p.sums {
				p.zero(c, sums[r][k])
			}
			if p.adds {
				p.broadcast(c, at(z, rowStride, k, r*p.size), zs[r][k])
			}
		}
	}
	if p.sums {
		c.Load(c.Param("x"), xp)
	}
	if p.adds {
		c.Load(c.Param("y"), yp)
	}
	c.MOVQ(tile, tp)
	c.LEAQ(operand.Mem{Base: tile, Index: ld, Scale: 2}, tp2)
	c.Load(c.Param("cols"), left)
	tileAt := func(r int) operand.Mem {
		m := operand.Mem{Base: tp}
		if r >= 2 {
			m.Base = tp2
		}
		if r%2 == 1 {
			m.Index, m.Scale = ld, 1
		}
		return m
	}

	lanes := p.bytes / p.size
	align(c)
	c.Label("columns")
	for l := range p.lines() {
		c.PREFETCHT1(operand.Mem{Base: ahead, Disp: 64 * l})
	}
	for n := range unroll {
		for r := range p.rows {
			t := tileAt(r)
			t.Disp = n * lanes * p.stored
			p.load(c, t, ts[r])
		}
		for k := range p.k {
			if p.sums {
				p.move(c, at(xp, stride, k, n*p.bytes), v)
				for r := range p.rows {
					p.fma(c, v, ts[r], sums[r][k])
				}
			}
			if p.adds {
				p.move(c, at(yp, stride, k, n*p.bytes), v)
				for r := range p.rows {
					p.fma(c, zs[r][k], ts[r], v)
				}
				p.move(c, v, at(yp, stride, k, n*p.bytes))
			}
		}
	}
	step := unroll * lanes * p.stored
	c.ADDQ(operand.U32(step), tp)
	if p.rows > 2 {
		c.ADDQ(operand.U32(step), tp2)
	}
	c.ADDQ(pace, ahead)
	if p.sums {
		c.ADDQ(operand.U32(unroll*p.bytes), xp)
	}
	if p.adds {
		c.ADDQ(operand.U32(unroll*p.bytes), yp)
	}
	c.SUBQ(operand.U32(unroll*lanes), left)
	c.JNZ(operand.LabelRef("columns"))

	if p.sums {
		c.Comment("The sums of the lanes.")
		for r := range p.rows {
			for k := range p.k {
				p.flush(c, sums[r][k], at(u, rowStride, k, r*p.size))
			}
		}
	}
	for range p.rows {
		c.ADDQ(ld, tile)
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

// align starts a loop at the start of a cache line: what the decoders make of that of a pass
// fits their cache, and the time does not depend on what is written before.
func align(c *build.Context) {
	c.Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []operand.Op{operand.Imm(64)}})
}

// lines is the number of cache lines fetched ahead in a turn of the loop.
func (p tilePass) lines() int {
	read := unroll * p.bytes / p.size * p.stored
	if p.stream {
		read *= p.rows
	}
	return (read + 63) / 64
}

// flush adds the lanes of a register to a number in memory.
func (p tilePass) flush(c *build.Context, sum reg.VecVirtual, to operand.Mem) {
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
	p.add1(c, to, one, one)
	p.store1(c, one, to)
}
