package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// packing is a routine that packs or unpacks rows, 16 entries in each iteration, with one word of the mask for them.
type packing struct {
	set
	magnitude            Mem // all bits of float32 but the signs
	values, mask, row, i GPVirtual
	lanes                OpmaskVirtual // of the turn, with AVX-512: the last one has fewer
}

// turns generates the loop over n entries. With AVX2 the loop ends when fewer than 16 entries remain. The routine
// returns the number of processed entries and the number of values after start; end generates the code for further
// results.
func (p packing) turns(n, start GPVirtual, turn, end func()) {
	left := GP64()
	if p.bytes == 64 {
		p.first(U32(16), p.lanes)
	}
	XORQ(p.i, p.i)
	align()
	Label("loop")
	MOVQ(n, left)
	SUBQ(p.i, left)
	CMPQ(left, Imm(16))
	if p.bytes == 64 {
		JGE(LabelRef("turn"))
		TESTQ(left, left)
		JLE(LabelRef("done"))
		p.first(left.As32(), p.lanes)
		Label("turn")
	} else {
		JLT(LabelRef("done"))
	}
	turn()
	ADDQ(Imm(2), p.mask)
	ADDQ(Imm(16), p.i)
	JMP(LabelRef("loop"))
	Label("done")
	SUBQ(start, p.values)
	SHRQ(Imm(2), p.values)
	Store(p.i, ReturnIndex(0))
	Store(p.values, ReturnIndex(1))
	end()
	VZEROUPPER()
	RET()
}

// first sets the first count lanes of k.
func (p packing) first(count Op, k OpmaskVirtual) {
	ones, bits := GP32(), GP32()
	MOVL(count, bits)
	MOVL(U32(0xffff), ones)
	BZHIL(bits, ones, ones)
	KMOVW(ones, k)
}

// count returns the number of entries of the bits of word.
func (p packing) count(word Register) Register {
	n := GP32()
	POPCNTL(word, n)
	return n
}

// advance moves on by count values.
func (p packing) advance(count Register) {
	LEAQ(Mem{Base: p.values, Index: count.(GPVirtual).As64(), Scale: 4}, p.values)
}

// order returns the places in a register of eight entries, by the table at from and the bits in the byte.
func (p packing) order(from, bits Register) VecVirtual {
	v := YMM()
	VPMOVSXBD(Mem{Base: from, Index: bits.(GPVirtual).As64(), Scale: 8}, v)
	return v
}

func at(base, i Register, disp int) Mem {
	return Mem{Base: base, Index: i, Scale: 4, Disp: disp}
}

// begin starts the routine.
func (p packing) begin(name, signature, doc string) (packing, func(string) GPVirtual) {
	param := begin(name+p.name, signature, name+p.name+doc)
	p.values, p.mask, p.row, p.i, p.lanes = param("values"), param("mask"), param("row"), GP64(),
		K()
	return p, param
}

// pack writes the routine that packs a row: with AVX-512 it takes as long, so that there is one of AVX2 alone.
func (p packing) pack() {
	p, param := p.begin("sPack",
		"func(n int, values *float32, mask *uint16, row *float32, least float32, dropped *float32, table *uint64) "+
			"(done, kept int, sum float32)",
		" packs the first done of n entries, and returns how many it kept and the sum of the others.")
	n, dropped, table := param("n"), param("dropped"), param("table")
	least, magnitude, sum := p.reg(), p.reg(), p.reg()
	VBROADCASTSS(address(Param("least")), least)
	VBROADCASTSD(p.magnitude, magnitude)
	p.zero(sum)
	start := GP64()
	MOVQ(p.values, start)
	turn := func() {
		for h := range 2 {
			v, size, keep, bits := YMM(), YMM(), YMM(), GP32()
			VMOVUPS(at(p.row, p.i, 32*h), v)
			VANDPS(v, magnitude, size)
			VCMPPS(Imm(5), least, size, keep) // not size < least
			VMOVMSKPS(keep, bits)
			MOVB(bits.As8(), Mem{Base: p.mask, Disp: h})
			VANDNPS(size, keep, size)
			VADDPS(size, sum, sum)
			VADDPS(at(dropped, p.i, 32*h), size, size)
			VMOVUPS(size, at(dropped, p.i, 32*h))
			VPERMPS(v, p.order(table, bits), v)
			VMOVUPS(v, Mem{Base: p.values})
			p.advance(p.count(bits))
		}
	}
	p.turns(n, start, turn, func() {
		to := address(ReturnIndex(2))
		MOVL(U32(0), to)
		tilePass{format: float32s, set: p.set}.flush(sum, to)
	})
}

// unpack writes the routine that unpacks a row.
func (p packing) unpack() {
	p, param := p.begin("sUnpack",
		"func(n int, row *float32, mask *uint16, values *float32, length int, table *uint64) (done, read int)",
		" unpacks the first done of n entries from length values, and returns how many it read.")
	n, end, table, start, none := param("n"), param("length"), param("table"), GP64(), p.reg()
	MOVQ(p.values, start)
	LEAQ(Mem{Base: p.values, Index: end, Scale: 4, Disp: -64}, end) // the last place of 16 values
	p.zero(none)
	turn := func() {
		CMPQ(p.values, end)
		JGT(LabelRef("done"))
		for h := range 2 {
			v, bits := YMM(), GP32()
			MOVBLZX(Mem{Base: p.mask, Disp: h}, bits)
			order := p.order(table, bits)
			VPERMPS(Mem{Base: p.values}, order, v)
			VBLENDVPS(order, none, v, v) // places of no value are negative
			VMOVUPS(v, at(p.row, p.i, 32*h))
			p.advance(p.count(bits))
		}
	}
	if p.bytes == 64 {
		turn = func() {
			v, bits, keep, some, next := ZMM(), GP32(), K(), K(), GP64()
			MOVWLZX(Mem{Base: p.mask}, bits)
			KMOVW(bits, keep)
			count := p.count(bits)
			LEAQ(at(p.values, count.(GPVirtual).As64(), -64), next)
			CMPQ(next, end)
			JGT(LabelRef("done"))
			p.first(count, some)
			VMOVUPS_Z(Mem{Base: p.values}, some, v)
			VEXPANDPS_Z(v, keep, v)
			VMOVUPS(v, p.lanes, at(p.row, p.i, 0))
			p.advance(count)
		}
	}
	p.turns(n, start, turn, func() {})
}

// candidates writes the routine that finds the numbers that are not below their floors.
func candidates(magnitudes Mem) {
	p := packing{set: avx2}
	param := begin("candidates32AVX2",
		"func(n int, at *int32, row, floors *float32, before *int32, own float32, place int32, table *uint64) int",
		"candidates32AVX2 is Candidates for n numbers, n a multiple of 8.")
	n, row, floors, before, table, start := param("n"), param("row"), param("floors"), param("before"), param("table"),
		GP64()
	p.values = param("at")
	MOVQ(p.values, start)
	own, place, magnitude := YMM(), YMM(), YMM()
	VBROADCASTSS(address(Param("own")), own)
	VBROADCASTSS(address(Param("place")), place)
	VBROADCASTSD(magnitudes, magnitude)
	loopThen(n, 8, func(i GPVirtual) {
		v, floor, earlier, bits, base := YMM(), YMM(), YMM(), GP32(), YMM()
		VANDPS(at(row, i, 0), magnitude, v)
		VMOVUPS(at(floors, i, 0), floor)
		VPCMPGTD(at(before, i, 0), place, earlier)
		VBLENDVPS(earlier, own, floor, floor)
		VCMPPS(Imm(13), floor, v, v) // v ≥ floor
		VMOVMSKPS(v, bits)
		TESTL(bits, bits)
		JZ(LabelRef("next"))
		order := p.order(table, bits)
		VMOVD(i.As32(), base.AsX())
		VPBROADCASTD(base.AsX(), base)
		VPADDD(base, order, order)
		VMOVDQU(order, Mem{Base: p.values})
		p.advance(p.count(bits))
		Label("next")
	}, func(GPVirtual) {
		SUBQ(start, p.values)
		SHRQ(Imm(2), p.values)
		Store(p.values, ReturnIndex(0))
	})
}
