package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// copier generates a routine that copies the parts of the rows of B that belong to a panel, with instructions of AVX.
type copier struct {
	format
	bytes int // size of the part of a row
}

var copiers = []copier{
	{float32s, 64}, {float32s, 128},
	{float64s, 64}, {float64s, 128},
}

// build generates the routine.
func (c copier) build() {
	width := c.bytes / c.size
	name := fmt.Sprintf("%scopy%d", c.letter, width)
	param := begin(name, fmt.Sprintf("func(n int, src *%s, ld int, dst *%s)", c.number, c.number),
		fmt.Sprintf("%s sets dst[p·%d+i] = src[p·ld+i] for i < %d and p < n, with AVX.", name, width, width))

	n, src, ld, dst := param("n"), param("src"), param("ld"), param("dst")
	SHLQ(Imm(shift[c.size]), ld)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("row")
	Comment("The next panels continue in these rows.")
	for offset := 0; offset < c.bytes; offset += 64 {
		PREFETCHT0(Mem{Base: src, Disp: 2*c.bytes + offset})
	}
	for offset := 0; offset < c.bytes; offset += 32 {
		y := YMM()
		VMOVUPS(Mem{Base: src, Disp: offset}, y)
		VMOVUPS(y, Mem{Base: dst, Disp: offset})
	}
	ADDQ(ld, src)
	ADDQ(U32(c.bytes), dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
