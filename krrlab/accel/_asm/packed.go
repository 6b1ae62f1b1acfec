package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packing is a routine over rows that are packed or to be, 16 entries a turn, beside which it has a word of mask.
type packing struct {
	*build.Context
	set
	magnitude            operand.Mem // all bits of float32 but the signs
	values, mask, row, i reg.GPVirtual
	lanes                reg.OpmaskVirtual // of the turn, with AVX-512: the last one has fewer
}

// turns writes the loop over n entries; with AVX2 it ends where fewer than 16 are left.
func (p packing) turns(n reg.GPVirtual, turn, end func()) {
	left := p.GP64()
	if p.bytes == 64 {
		p.first(operand.U32(16), p.lanes)
	}
	p.XORQ(p.i, p.i)
	align(p.Context)
	p.Label("loop")
	p.MOVQ(n, left)
	p.SUBQ(p.i, left)
	p.CMPQ(left, operand.Imm(16))
	if p.bytes == 64 {
		p.JGE(operand.LabelRef("turn"))
		p.TESTQ(left, left)
		p.JLE(operand.LabelRef("done"))
		p.first(left.As32(), p.lanes)
		p.Label("turn")
	} else {
		p.JLT(operand.LabelRef("done"))
	}
	turn()
	p.ADDQ(operand.Imm(2), p.mask)
	p.ADDQ(operand.Imm(16), p.i)
	p.JMP(operand.LabelRef("loop"))
	p.Label("done")
	end()
	p.VZEROUPPER()
	p.RET()
}

// first sets the first count lanes of k.
func (p packing) first(count operand.Op, k reg.OpmaskVirtual) {
	ones, bits := p.GP32(), p.GP32()
	p.MOVL(count, bits)
	p.MOVL(operand.U32(0xffff), ones)
	p.BZHIL(bits, ones, ones)
	p.KMOVW(ones, k)
}

// count returns the number of entries of the bits of word.
func (p packing) count(word reg.Register) reg.Register {
	n := p.GP32()
	p.POPCNTL(word, n)
	return n
}

// advance moves on by count values.
func (p packing) advance(count reg.Register) {
	p.LEAQ(operand.Mem{Base: p.values, Index: count.(reg.GPVirtual).As64(), Scale: 4}, p.values)
}

// order returns the places in a register of eight entries, by the table at from and the bits in the byte.
func (p packing) order(from, bits reg.Register) reg.VecVirtual {
	v := p.YMM()
	p.VPMOVSXBD(operand.Mem{Base: from, Index: bits.(reg.GPVirtual).As64(), Scale: 8}, v)
	return v
}

func at(base, i reg.Register, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: i, Scale: 4, Disp: disp}
}

// begin starts the routine.
func (p packing) begin(name, signature, doc string) (packing, func(string) reg.GPVirtual) {
	param := begin(p.Context, name+p.name, signature, name+p.name+doc)
	p.values, p.mask, p.row, p.i, p.lanes = param("values"), param("mask"), param("row"), p.GP64().(reg.GPVirtual),
		p.K()
	return p, param
}

// pack writes the routine that packs a row: with AVX-512 it takes as long, so that there is one of AVX2 alone.
func (p packing) pack() {
	p, param := p.begin("sPack",
		"func(n int, values *float32, mask *uint16, row *float32, least float32, dropped *float32, table *uint64) "+
			"(done, kept int, sum float32)",
		" packs the first done of n entries, and returns how many it kept and the sum of the others.")
	n, dropped, table := param("n"), param("dropped"), param("table")
	least, magnitude, sum := p.reg(p.Context), p.reg(p.Context), p.reg(p.Context)
	broadcastParam(p.Context, "least", least)
	p.VBROADCASTSD(p.magnitude, magnitude)
	p.zero(p.Context, sum)
	start := p.GP64()
	p.MOVQ(p.values, start)
	turn := func() {
		for h := range 2 {
			v, size, keep, bits := p.YMM(), p.YMM(), p.YMM(), p.GP32()
			p.VMOVUPS(at(p.row, p.i, 32*h), v)
			p.VANDPS(v, magnitude, size)
			p.VCMPPS(operand.Imm(5), least, size, keep) // not size < least
			p.VMOVMSKPS(keep, bits)
			p.MOVB(bits.As8(), operand.Mem{Base: p.mask, Disp: h})
			p.VANDNPS(size, keep, size)
			p.VADDPS(size, sum, sum)
			p.VADDPS(at(dropped, p.i, 32*h), size, size)
			p.VMOVUPS(size, at(dropped, p.i, 32*h))
			p.VPERMPS(v, p.order(table, bits), v)
			p.VMOVUPS(v, operand.Mem{Base: p.values})
			p.advance(p.count(bits))
		}
	}
	p.turns(n, turn, func() {
		p.SUBQ(start, p.values)
		p.SHRQ(operand.Imm(2), p.values)
		p.Store(p.i, p.ReturnIndex(0))
		p.Store(p.values, p.ReturnIndex(1))
		to, err := p.ReturnIndex(2).Resolve()
		if err != nil {
			panic(err)
		}
		p.MOVL(operand.U32(0), to.Addr)
		tilePass{format: float32s, set: p.set}.flush(p.Context, sum, to.Addr)
	})
}

// unpack writes the routine that unpacks a row.
func (p packing) unpack() {
	p, param := p.begin("sUnpack",
		"func(n int, row *float32, mask *uint16, values *float32, length int, table *uint64) (done, read int)",
		" unpacks the first done of n entries from length values, and returns how many it read.")
	n, end, table, start, none := param("n"), param("length"), param("table"), p.GP64(), p.reg(p.Context)
	p.MOVQ(p.values, start)
	p.LEAQ(operand.Mem{Base: p.values, Index: end, Scale: 4, Disp: -64}, end) // the last place of 16 values
	p.zero(p.Context, none)
	turn := func() {
		p.CMPQ(p.values, end)
		p.JGT(operand.LabelRef("done"))
		for h := range 2 {
			v, bits := p.YMM(), p.GP32()
			p.MOVBLZX(operand.Mem{Base: p.mask, Disp: h}, bits)
			order := p.order(table, bits)
			p.VPERMPS(operand.Mem{Base: p.values}, order, v)
			p.VBLENDVPS(order, none, v, v) // places of no value are negative
			p.VMOVUPS(v, at(p.row, p.i, 32*h))
			p.advance(p.count(bits))
		}
	}
	if p.bytes == 64 {
		turn = func() {
			v, bits, keep, some, next := p.ZMM(), p.GP32(), p.K(), p.K(), p.GP64()
			p.MOVWLZX(operand.Mem{Base: p.mask}, bits)
			p.KMOVW(bits, keep)
			count := p.count(bits)
			p.LEAQ(at(p.values, count.(reg.GPVirtual).As64(), -64), next)
			p.CMPQ(next, end)
			p.JGT(operand.LabelRef("done"))
			p.first(count, some)
			p.VMOVUPS_Z(operand.Mem{Base: p.values}, some, v)
			p.VEXPANDPS_Z(v, keep, v)
			p.VMOVUPS(v, p.lanes, at(p.row, p.i, 0))
			p.advance(count)
		}
	}
	p.turns(n, turn, func() {
		p.SUBQ(start, p.values)
		p.SHRQ(operand.Imm(2), p.values)
		p.Store(p.i, p.ReturnIndex(0))
		p.Store(p.values, p.ReturnIndex(1))
	})
}

// candidates writes the routine that finds the numbers that are not below their floors.
func candidates(c *build.Context, magnitudes operand.Mem) {
	p := packing{Context: c, set: avx2}
	param := begin(c, "candidates32AVX2",
		"func(n int, at *int32, row, floors *float32, before *int32, own float32, place int32, table *uint64) int",
		"candidates32AVX2 is Candidates for n numbers, n a multiple of 8.")
	n, row, floors, before, table, start := param("n"), param("row"), param("floors"), param("before"), param("table"),
		c.GP64()
	p.values = param("at")
	c.MOVQ(p.values, start)
	own, place, magnitude := c.YMM(), c.YMM(), c.YMM()
	broadcastParam(c, "own", own)
	broadcastParam(c, "place", place)
	c.VBROADCASTSD(magnitudes, magnitude)
	loopThen(c, n, 8, func(i reg.GPVirtual) {
		v, floor, earlier, bits, base := c.YMM(), c.YMM(), c.YMM(), c.GP32(), c.YMM()
		c.VANDPS(at(row, i, 0), magnitude, v)
		c.VMOVUPS(at(floors, i, 0), floor)
		c.VPCMPGTD(at(before, i, 0), place, earlier)
		c.VBLENDVPS(earlier, own, floor, floor)
		c.VCMPPS(operand.Imm(13), floor, v, v) // v ≥ floor
		c.VMOVMSKPS(v, bits)
		c.TESTL(bits, bits)
		c.JZ(operand.LabelRef("next"))
		order := p.order(table, bits)
		c.VMOVD(i.As32(), base.AsX())
		c.VPBROADCASTD(base.AsX(), base)
		c.VPADDD(base, order, order)
		c.VMOVDQU(order, operand.Mem{Base: p.values})
		p.advance(p.count(bits))
		c.Label("next")
	}, func(reg.GPVirtual) {
		c.SUBQ(start, p.values)
		c.SHRQ(operand.Imm(2), p.values)
		c.Store(p.values, c.ReturnIndex(0))
	})
}
