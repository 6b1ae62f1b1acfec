package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pairLanes is the number of points that pairs takes at once.
const pairLanes = 32

// pairSum names the terms of a sum over the coordinates of two points.
type pairSum string

const (
	sumOfSquares   pairSum = "Squares"   // (x_c−z_cj)²
	sumOfAbsolutes pairSum = "Absolutes" // |x_c−z_cj|
)

// pairs generates the routine for the sums of one kind over the coordinates c. It adds the terms in the order of c and
// rounds after each step, as the Go code does. magnitudes is the constant with all bits except the sign.
func pairs(s set, f format, kind pairSum, magnitudes Mem) {
	name := f.letter + string(kind) + s.name
	param := begin(name, fmt.Sprintf("func(n int, dst, x, z *%s)", f.number),
		fmt.Sprintf("%s sets dst to the sums over n coordinates for the %d points z, which are stored by coordinates.",
			name, pairLanes))
	n, dst, x, z := param("n"), param("dst"), param("x"), param("z")
	coordinate, sign := s.reg(), s.reg()
	if kind == sumOfAbsolutes {
		VBROADCASTSD(magnitudes, sign)
	}
	sums := make([]VecVirtual, pairLanes*f.size/s.bytes)
	for k := range sums {
		sums[k] = s.reg()
		s.zero(sums[k])
	}
	Label("loop")
	TESTQ(n, n)
	JE(LabelRef("done"))
	f.broadcast(Mem{Base: x}, coordinate)
	for k := range sums {
		difference := s.reg()
		f.sub(Mem{Base: z, Disp: k * s.bytes}, coordinate, difference)
		switch {
		case kind == sumOfSquares:
			f.mul(difference, difference, difference)
		case s.bytes == 64:
			VPANDQ(sign, difference, difference)
		default:
			VPAND(sign, difference, difference)
		}
		f.add(difference, sums[k], sums[k])
	}
	ADDQ(Imm(uint64(f.size)), x)
	ADDQ(U32(pairLanes*f.size), z)
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("done")
	for k := range sums {
		f.move(sums[k], Mem{Base: dst, Disp: k * s.bytes})
	}
	VZEROUPPER()
	RET()
}
