package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairLanes is the number of points that pairs takes at once.
const pairLanes = 32

// pairs writes the sums of (x_c−z_cj)², or |x_c−z_cj|, over c, added in the order of c and rounded at each step, as Go
// does.
func pairs(c *build.Context, s set, f format, absolute bool, magnitudes operand.Mem) {
	name := f.letter + map[bool]string{false: "Squares", true: "Absolutes"}[absolute] + s.name
	param := begin(c, name, fmt.Sprintf("func(n int, dst, x, z *%s)", f.number),
		fmt.Sprintf("%s sets dst to the sums over n coordinates for the %d points z, which lie by coordinates.", name,
			pairLanes))
	n, dst, x, z := param("n"), param("dst"), param("x"), param("z")
	v, sign := s.reg(c), s.reg(c)
	if absolute {
		c.VBROADCASTSD(magnitudes, sign)
	}
	sums := make([]reg.VecVirtual, pairLanes*f.size/s.bytes)
	for k := range sums {
		sums[k] = s.reg(c)
		s.zero(c, sums[k])
	}
	c.Label("loop")
	c.TESTQ(n, n)
	c.JE(operand.LabelRef("done"))
	f.broadcast(c, operand.Mem{Base: x}, v)
	for k := range sums {
		e := s.reg(c)
		f.sub(c, operand.Mem{Base: z, Disp: k * s.bytes}, v, e)
		switch {
		case !absolute:
			f.mul(c, e, e, e)
		case s.bytes == 64:
			c.VPANDQ(sign, e, e)
		default:
			c.VPAND(sign, e, e)
		}
		f.add(c, e, sums[k], sums[k])
	}
	c.ADDQ(operand.Imm(uint64(f.size)), x)
	c.ADDQ(operand.U32(pairLanes*f.size), z)
	c.DECQ(n)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	for k := range sums {
		f.move(c, sums[k], operand.Mem{Base: dst, Disp: k * s.bytes})
	}
	c.VZEROUPPER()
	c.RET()
}
