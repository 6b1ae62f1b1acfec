package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// copier is a routine that copies rows of some bytes, those of a row of B in a panel,
// with instructions of AVX.
type copier struct {
	format
	bytes int // of a row
}

var copiers = []copier{
	{float32s, 64}, {float32s, 128},
	{float64s, 64}, {float64s, 128},
}

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
	Comment("The panels to come will read on in these rows.")
	for at := 0; at < t.bytes; at += 64 {
		PREFETCHT0(Mem{Base: src, Disp: 2*t.bytes + at})
	}
	for at := 0; at < t.bytes; at += 32 {
		y := YMM()
		VMOVUPS(Mem{Base: src, Disp: at}, y)
		VMOVUPS(y, Mem{Base: dst, Disp: at})
	}
	ADDQ(ld, src)
	ADDQ(U32(t.bytes), dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
