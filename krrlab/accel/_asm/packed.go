package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// packing generates a routine that packs or unpacks rows. An iteration processes 16 entries, which have one word of the
// mask. i is the register with the number of processed entries.
type packing struct {
	set
	magnitude            Mem // constant: all bits of a float32 except the sign
	values, mask, row, i GPVirtual
	lanes                OpmaskVirtual // with AVX-512, the lanes of the iteration; fewer than 16 in the last one
}

// loop generates the loop over n entries. With AVX2 the loop ends when fewer than 16 entries remain. The routine
// returns the number of processed entries and the number of values after start; end generates the code for further
// results.
func (p packing) loop(n, start GPVirtual, iteration, end func()) {
	remaining := GP64()
	if p.bytes == 64 {
		p.setFirstLanes(U32(16), p.lanes)
	}
	XORQ(p.i, p.i)
	align()
	Label("loop")
	MOVQ(n, remaining)
	SUBQ(p.i, remaining)
	CMPQ(remaining, Imm(16))
	if p.bytes == 64 {
		JGE(LabelRef("turn"))
		TESTQ(remaining, remaining)
		JLE(LabelRef("done"))
		p.setFirstLanes(remaining.As32(), p.lanes)
		Label("turn")
	} else {
		JLT(LabelRef("done"))
	}
	iteration()
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

// setFirstLanes sets the first count lanes of k and clears the others.
func (p packing) setFirstLanes(count Op, k OpmaskVirtual) {
	ones, bits := GP32(), GP32()
	MOVL(count, bits)
	MOVL(U32(0xffff), ones)
	BZHIL(bits, ones, ones)
	KMOVW(ones, k)
}

// count returns a register with the number of set bits of word.
func (p packing) count(word Register) Register {
	n := GP32()
	POPCNTL(word, n)
	return n
}

// advance moves the address of values forward by count values.
func (p packing) advance(count Register) {
	LEAQ(Mem{Base: p.values, Index: count.(GPVirtual).As64(), Scale: 4}, p.values)
}

// order returns a register with the row of table for the byte bits: eight lane numbers, see packOrder and unpackOrder.
func (p packing) order(table, bits Register) VecVirtual {
	laneNumbers := YMM()
	VPMOVSXBD(Mem{Base: table, Index: bits.(GPVirtual).As64(), Scale: 8}, laneNumbers)
	return laneNumbers
}

// element returns the address disp bytes after the 4-byte element i of base.
func element(base, i Register, disp int) Mem {
	return Mem{Base: base, Index: i, Scale: 4, Disp: disp}
}

// beginRoutine starts the routine with the given Go declaration. It returns p with the registers of the parameters, and
// a function that loads further parameters.
func (p packing) beginRoutine(name, signature, doc string) (packing, func(string) GPVirtual) {
	param := begin(name+p.name, signature, name+p.name+doc)
	p.values, p.mask, p.row, p.i, p.lanes = param("values"), param("mask"), param("row"), GP64(),
		K()
	return p, param
}

// pack generates the routine that packs a row, for AVX2. A routine for AVX-512 would take as long, so there is none.
func (p packing) pack() {
	p, param := p.beginRoutine("sPack",
		"func(n int, values *float32, mask *uint16, row *float32, cutoff float32, dropped *float32, table *uint64) "+
			"(processed, valueCount int, droppedSum float32)",
		" packs the first entries of a row of n. It is a rowPacker.")
	n, dropped, table := param("n"), param("dropped"), param("table")
	cutoff, magnitude, sum := p.reg(), p.reg(), p.reg()
	VBROADCASTSS(address(Param("cutoff")), cutoff)
	VBROADCASTSD(p.magnitude, magnitude)
	p.zero(sum)
	start := GP64()
	MOVQ(p.values, start)
	iteration := func() {
		for half := range 2 {
			v, size, keep, bits := YMM(), YMM(), YMM(), GP32()
			VMOVUPS(element(p.row, p.i, 32*half), v)
			VANDPS(v, magnitude, size)
			VCMPPS(Imm(5), cutoff, size, keep) // not size < cutoff
			VMOVMSKPS(keep, bits)
			MOVB(bits.As8(), Mem{Base: p.mask, Disp: half})
			VANDNPS(size, keep, size)
			VADDPS(size, sum, sum)
			VADDPS(element(dropped, p.i, 32*half), size, size)
			VMOVUPS(size, element(dropped, p.i, 32*half))
			VPERMPS(v, p.order(table, bits), v)
			VMOVUPS(v, Mem{Base: p.values})
			p.advance(p.count(bits))
		}
	}
	p.loop(n, start, iteration, func() {
		sumAddress := address(ReturnIndex(2))
		MOVL(U32(0), sumAddress)
		tilePass{format: float32s, set: p.set}.flush(sum, sumAddress)
	})
}

// unpack generates the routine that unpacks a row.
func (p packing) unpack() {
	p, param := p.beginRoutine("sUnpack",
		"func(n int, row *float32, mask *uint16, values *float32, length int, table *uint64) "+
			"(processed, valueCount int)",
		" unpacks the first entries of a row of n. It is a rowUnpacker.")
	n, end, table, start, zeros := param("n"), param("length"), param("table"), GP64(), p.reg()
	MOVQ(p.values, start)
	LEAQ(Mem{Base: p.values, Index: end, Scale: 4, Disp: -64}, end) // last address with 16 values
	p.zero(zeros)
	iteration := func() {
		CMPQ(p.values, end)
		JGT(LabelRef("done"))
		for half := range 2 {
			v, bits := YMM(), GP32()
			MOVBLZX(Mem{Base: p.mask, Disp: half}, bits)
			order := p.order(table, bits)
			VPERMPS(Mem{Base: p.values}, order, v)
			VBLENDVPS(order, zeros, v, v) // lanes without a value have negative numbers
			VMOVUPS(v, element(p.row, p.i, 32*half))
			p.advance(p.count(bits))
		}
	}
	if p.bytes == 64 {
		iteration = func() {
			v, bits, keep, valueLanes, nextValues := ZMM(), GP32(), K(), K(), GP64()
			MOVWLZX(Mem{Base: p.mask}, bits)
			KMOVW(bits, keep)
			count := p.count(bits)
			LEAQ(element(p.values, count.(GPVirtual).As64(), -64), nextValues)
			CMPQ(nextValues, end)
			JGT(LabelRef("done"))
			p.setFirstLanes(count, valueLanes)
			VMOVUPS_Z(Mem{Base: p.values}, valueLanes, v)
			VEXPANDPS_Z(v, keep, v)
			VMOVUPS(v, p.lanes, element(p.row, p.i, 0))
			p.advance(count)
		}
	}
	p.loop(n, start, iteration, func() {})
}

// selectMagnitudes generates the routine that finds the numbers whose magnitude is at least their threshold. magnitudes
// is a constant with all bits except the signs.
func selectMagnitudes(magnitudes Mem) {
	p := packing{set: avx2}
	param := begin("selectMagnitudes32AVX2",
		"func(n int, indices *int32, row, thresholds *float32, positions *int32, rowThreshold float32, "+
			"rowPosition int32, table *uint64) int",
		"selectMagnitudes32AVX2 is SelectMagnitudes for n numbers, n a multiple of 8. Its table is packOrder.")
	n, row, thresholds, positions, table, start := param("n"), param("row"), param("thresholds"), param("positions"),
		param("table"), GP64()
	p.values = param("indices")
	MOVQ(p.values, start)
	rowThreshold, rowPosition, magnitude := YMM(), YMM(), YMM()
	VBROADCASTSS(address(Param("rowThreshold")), rowThreshold)
	VBROADCASTSS(address(Param("rowPosition")), rowPosition)
	VBROADCASTSD(magnitudes, magnitude)
	loopThen(n, 8, func(i GPVirtual) {
		v, threshold, isEarlier, bits, base := YMM(), YMM(), YMM(), GP32(), YMM()
		VANDPS(element(row, i, 0), magnitude, v)
		VMOVUPS(element(thresholds, i, 0), threshold)
		VPCMPGTD(element(positions, i, 0), rowPosition, isEarlier)
		VBLENDVPS(isEarlier, rowThreshold, threshold, threshold)
		VCMPPS(Imm(13), threshold, v, v) // v ≥ threshold
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
