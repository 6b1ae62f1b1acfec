package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// copier generates a routine that copies rows with a given number of bytes, the part of a row of B in a panel, with
// instructions of AVX.
type copier struct {
	format
	bytes int // size of a row
}

var copiers = []copier{
	{float32s, 64}, {float32s, 128},
	{float64s, 64}, {float64s, 128},
}

// build generates the routine.
func (t copier) build() {
	w := t.bytes / t.size
	name := fmt.Sprintf("%scopy%d", t.letter, w)
	param := begin(name, fmt.Sprintf("func(n int, src *%s, ld int, dst *%s)", t.number, t.number),
		fmt.Sprintf("%s sets dst[p·%d+i] = src[p·ld+i] for i < %d and p < n, with AVX.", name, w, w))

	n, src, ld, dst := param("n"), param("src"), param("ld"), param("dst")
	SHLQ(Imm(shift[t.size]), ld)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("row")
	Comment("The next panels continue in these rows.")
	for offset := 0; offset < t.bytes; offset += 64 {
		PREFETCHT0(Mem{Base: src, Disp: 2*t.bytes + offset})
	}
	for offset := 0; offset < t.bytes; offset += 32 {
		y := YMM()
		VMOVUPS(Mem{Base: src, Disp: offset}, y)
		VMOVUPS(y, Mem{Base: dst, Disp: offset})
	}
	ADDQ(ld, src)
	ADDQ(U32(t.bytes), dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
