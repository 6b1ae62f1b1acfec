package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// op is a function that generates an instruction with the given operands.
type op = func(ops ...Op)

// format describes how the entries of a tile are stored and the instructions that compute with them.
type format struct {
	letter string // first letter of the routine's name
	tile   string // Go type of the tile's entries
	number string // Go type of the vectors
	stored int    // size of a tile's entry in bytes
	size   int    // size of a vector's entry in bytes

	load         op // load of entries of a tile, converted to numbers of the vectors
	move         op // load or store of a register
	broadcast    op // load of one number to all lanes
	fma          op // fused multiply-add whose last operand is the sum
	add          op // addition of all lanes
	store1, add1 op // load or store, and addition, of the first lane only
	sub, mul     op // subtraction and multiplication of all lanes
	fma213       op // fused multiply-add whose last operand is a factor
}

var (
	float32s = format{"s", "float32", "float32", 4, 4,
		VMOVUPS, VMOVUPS, VBROADCASTSS, VFMADD231PS,
		VADDPS, VMOVSS, VADDSS, VSUBPS,
		VMULPS, VFMADD213PS}
	float64s = format{"d", "float64", "float64", 8, 8,
		VMOVUPD, VMOVUPD, VBROADCASTSD, VFMADD231PD,
		VADDPD, VMOVSD, VADDSD, VSUBPD,
		VMULPD, VFMADD213PD}
	// fixed is the format of a tile of 16-bit whole numbers, which is multiplied by vectors of float32.
	fixed = float32s.withTile("h", "uint16", 2, unpack)
	// widened is the format of a tile of float32, which is multiplied by vectors of float64.
	widened = float64s.withTile("w", "float32", 4, VCVTPS2PD)
)

// withTile returns the format f with another type of tile entries.
func (f format) withTile(letter, tile string, stored int, load op) format {
	f.letter, f.tile, f.stored, f.load = letter, tile, stored, load
	return f
}

// unpack loads 16-bit numbers and converts them exactly. The processor does this in other execution units than the
// multiplications.
func unpack(ops ...Op) {
	VPMOVZXWD(ops...)
	VCVTDQ2PS(ops[1], ops[1])
}

// set is an instruction set.
type set struct {
	name  string
	bytes int               // size of a register
	reg   func() VecVirtual // allocates a register
	zero  func(r Op)        // sets a register to 0
	// These are the rows of a group, for 1, 2, … right-hand sides, of the passes that form both products, T·x, or Tᵀ·z.
	bothRows, forwardRows, backwardRows []int
}

var (
	avx2 = set{"AVX2", 32, YMM, func(r Op) { VXORPS(r, r, r) },
		[]int{4, 3, 2}, []int{4, 4, 4, 3, 2, 2}, []int{4, 4, 4, 3}}
	avx512 = set{"AVX512", 64, ZMM, func(r Op) { VPXORD(r, r, r) },
		[]int{4, 4, 4}, []int{4, 4, 4, 4, 4, 4}, []int{4, 4, 4, 4, 4, 4}}
)

var sets = []set{avx2, avx512}

// shapes returns, for each pass of the kind of p, its numbers of rows and of right-hand sides.
func (p tilePass) shapes() (shapes [][2]int) {
	rows := p.set.backwardRows
	if p.formsBoth() {
		rows = p.set.bothRows
	} else if p.sums {
		rows = p.set.forwardRows
	}
	for index, rowCount := range rows {
		shapes = append(shapes, [2]int{rowCount, index + 1}, [2]int{1, index + 1})
	}
	return shapes
}
