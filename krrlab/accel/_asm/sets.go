package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type op = func(c *build.Context, ops ...operand.Op)

// format is how the entries of a tile lie in memory and how they are computed with.
type format struct {
	letter string // in names
	tile   string // Go type of the tile's entries
	number string // Go type of the vectors
	stored int    // bytes of a tile's entry
	size   int    // bytes of a vector's entry

	load, move, broadcast, fma, add, store1, add1, sub, mul, fma213 op
}

var (
	float32s = format{"s", "float32", "float32", 4, 4,
		(*build.Context).VMOVUPS, (*build.Context).VMOVUPS, (*build.Context).VBROADCASTSS, (*build.Context).VFMADD231PS,
		(*build.Context).VADDPS, (*build.Context).VMOVSS, (*build.Context).VADDSS, (*build.Context).VSUBPS,
		(*build.Context).VMULPS, (*build.Context).VFMADD213PS}
	float64s = format{"d", "float64", "float64", 8, 8,
		(*build.Context).VMOVUPD, (*build.Context).VMOVUPD, (*build.Context).VBROADCASTSD, (*build.Context).VFMADD231PD,
		(*build.Context).VADDPD, (*build.Context).VMOVSD, (*build.Context).VADDSD, (*build.Context).VSUBPD,
		(*build.Context).VMULPD, (*build.Context).VFMADD213PD}
	// A tile of 16-bit whole numbers times vectors of float32.
	fixed = float32s.of("h", "uint16", 2, unpack)
	// A tile of float32 times vectors of float64.
	widened = float64s.of("w", "float32", 4, (*build.Context).VCVTPS2PD)
)

// of is the format of a tile of other numbers.
func (f format) of(letter, tile string, stored int, load op) format {
	f.letter, f.tile, f.stored, f.load = letter, tile, stored, load
	return f
}

// unpack loads 16-bit numbers and converts them, exactly. The units for shuffles and
// conversions are not those for multiplications.
func unpack(c *build.Context, ops ...operand.Op) {
	c.VPMOVZXWD(ops...)
	c.VCVTDQ2PS(ops[1], ops[1])
}

// set is an instruction set.
type set struct {
	name  string
	bytes int // of a register
	reg   func(c *build.Context) reg.VecVirtual
	zero  func(c *build.Context, r operand.Op)
	// rows of a pass by right-hand sides, both ways, forward and backward
	both, forward, backward []int
}

var (
	avx2 = set{"AVX2", 32, (*build.Context).YMM, func(c *build.Context, r operand.Op) { c.VXORPS(r, r, r) },
		[]int{4, 3, 2}, []int{4, 4, 4, 3, 2, 2}, []int{4, 4, 4, 3}}
	avx512 = set{"AVX512", 64, (*build.Context).ZMM, func(c *build.Context, r operand.Op) { c.VPXORD(r, r, r) },
		[]int{4, 4, 4}, []int{4, 4, 4, 4, 4, 4}, []int{4, 4, 4, 4, 4, 4}}
)

// shapes are the rows and right-hand sides of the passes.
func (p tilePass) shapes() (out [][2]int) {
	rows := p.set.backward
	if p.both() {
		rows = p.set.both
	} else if p.sums {
		rows = p.set.forward
	}
	for k, r := range rows {
		out = append(out, [2]int{r, k + 1}, [2]int{1, k + 1})
	}
	return out
}
