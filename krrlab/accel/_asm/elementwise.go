package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// begin starts a routine of AVX2.
func begin(c *build.Context, name, signature, doc string) func(name string) reg.GPVirtual {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.SignatureExpr(signature)
	c.Doc(doc)
	return func(name string) reg.GPVirtual { return c.Load(c.Param(name), c.GP64()).(reg.GPVirtual) }
}

// loop writes the loop over n numbers, step at a time, and the end of the routine. body is given i, the number
// of those done.
func loop(c *build.Context, n reg.Register, step int, body func(i reg.GPVirtual)) {
	loopThen(c, n, step, body, func(reg.GPVirtual) {})
}

// loopThen is loop with something to do at the end, to which body may jump: the label is done.
func loopThen(c *build.Context, n reg.Register, step int, body, end func(i reg.GPVirtual)) {
	i := c.GP64().(reg.GPVirtual)
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	body(i)
	c.ADDQ(operand.Imm(uint64(step)), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	end(i)
	c.RET()
}

// bits returns the memory of a constant in all four lanes.
func bits(c *build.Context, name string, v uint64) operand.Mem {
	m := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 4 {
		c.AppendDatum(operand.U64(v))
	}
	return m
}

var constants = map[float64]operand.Mem{}

// number is bits of a float64, each made once.
func number(c *build.Context, v float64) operand.Mem {
	m, ok := constants[v]
	if !ok {
		m = bits(c, fmt.Sprintf("c%d", len(constants)), math.Float64bits(v))
		constants[v] = m
	}
	return m
}

// load returns a register with v in all lanes.
func load(c *build.Context, v float64) reg.VecVirtual {
	r := c.YMM()
	c.VMOVUPD(number(c, v), r)
	return r
}

// line returns registers with a·u_i + b for every u_i.
func line(c *build.Context, a, b float64, u [2]reg.VecVirtual) (q [2]reg.VecVirtual) {
	for i := range q {
		q[i] = load(c, a)
		c.VFMADD213PD(number(c, b), u[i], q[i])
	}
	return q
}

// times sets q_i to p_i·u_i + q_i and returns q.
func times(c *build.Context, p, u, q [2]reg.VecVirtual) [2]reg.VecVirtual {
	for i := range q {
		c.VFMADD231PD(p[i], u[i], q[i])
	}
	return q
}

// squares returns registers with the u_i².
func squares(c *build.Context, u [2]reg.VecVirtual) (s [2]reg.VecVirtual) {
	for i := range s {
		s[i] = c.YMM()
		c.VMULPD(u[i], u[i], s[i])
	}
	return s
}

// reduction divides by a period, with 1/period and magic in registers: adding magic
// leaves n + bias in the low bits.
type reduction struct {
	inverse, magic reg.VecVirtual
	period         float64
}

func newReduction(c *build.Context, period, bias float64) reduction {
	return reduction{load(c, 1/period), load(c, 3<<51+bias), period}
}

// reduce sets y to y − n·period, n = round(y/period), and returns t with n in the low bits.
func (d reduction) reduce(c *build.Context, y [2]reg.VecVirtual) (t [2]reg.VecVirtual) {
	var n [2]reg.VecVirtual
	for i := range y {
		t[i], n[i] = c.YMM(), c.YMM()
		c.VMOVAPD(d.magic, t[i])
		c.VFMADD231PD(d.inverse, y[i], t[i])
	}
	for i := range y {
		c.VSUBPD(d.magic, t[i], n[i])
		c.VFNMADD231PD(number(c, d.period), n[i], y[i])
	}
	return t
}

// expReduction is the reduction of e^y: 2ⁿ has the exponent n + 1023.
func expReduction(c *build.Context) reduction { return newReduction(c, math.Ln2, 1023) }

// expLanes sets the y, twice four float64 within [expMin, expMax], to e^y as exp does; NaN
// stays NaN.
func (d reduction) expLanes(c *build.Context, y [2]reg.VecVirtual) {
	t := d.reduce(c, y)
	y2 := squares(c, y)
	p := line(c, 0.0083748240430173627, 0.04166822620487864, y)
	for i := range p {
		c.VFMADD231PD(number(c, 0.0013836834748051283), y2[i], p[i])
	}
	p = times(c, p, y2, line(c, 0.16666420072253814, 0.49999992075045758, y))
	p = times(c, p, y2, line(c, 1.0000000363446836, 1.0000000005546077, y))
	for i := range y {
		c.VPSLLQ(operand.Imm(52), t[i], t[i])
		c.VMULPD(t[i], p[i], y[i]) // times 2ⁿ
	}
}

// exp writes the routine of Exp32 for whole registers within its range.
func exp(c *build.Context) {
	ranged(c, "exp32AVX2", "e^x", func() func(y [2]reg.VecVirtual) {
		d := expReduction(c)
		return func(y [2]reg.VecVirtual) { d.expLanes(c, y) }
	})
}

// ranged writes the routine of a function f(x) that lanes computes within a range.
func ranged(c *build.Context, name, f string, lanes func() func(y [2]reg.VecVirtual)) {
	param := begin(c, name, "func(n int, dst, x *float32, lo, hi float32) int",
		name+" sets dst to "+f+" for n numbers, n a multiple of 8, up to the first 8 that are not all in [lo, hi], "+
			"and returns how many it did.")
	n, dst, x := param("n"), param("dst"), param("x")
	lo, hi := c.YMM(), c.YMM()
	broadcastParam(c, "lo", lo)
	broadcastParam(c, "hi", hi)
	compute := lanes()
	loopThen(c, n, 8, func(i reg.GPVirtual) {
		v, m := c.YMM(), c.YMM()
		c.VMOVUPS(operand.Mem{Base: x, Index: i, Scale: 4}, v)
		outside(c, v, lo, hi, m, "done")
		halves(c, v, compute)
		c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	}, func(i reg.GPVirtual) { c.Store(i, c.ReturnIndex(0)) })
}

// outside jumps to the label unless lo ≤ v ≤ hi in all lanes.
func outside(c *build.Context, v, lo, hi, m reg.VecVirtual, label string) {
	m2 := c.YMM()
	mask := c.GP32()
	c.VCMPPS(operand.Imm(13), lo, v, m) // v ≥ lo
	c.VCMPPS(operand.Imm(2), hi, v, m2) // v ≤ hi
	c.VANDPS(m, m2, m)
	c.VMOVMSKPS(m, mask)
	c.CMPL(mask, operand.Imm(255))
	c.JNE(operand.LabelRef(label))
}

// halves applies f to the two halves of v as float64.
func halves(c *build.Context, v reg.VecVirtual, f func(y [2]reg.VecVirtual)) {
	a, b, h := c.YMM(), c.YMM(), c.XMM()
	c.VEXTRACTF128(operand.Imm(1), v, h)
	c.VCVTPS2PD(v.AsX(), a)
	c.VCVTPS2PD(h, b)
	f([2]reg.VecVirtual{a, b})
	join(c, a, b, v)
}

// join rounds two registers of float64 to one of float32.
func join(c *build.Context, a, b, v reg.VecVirtual) {
	x, h := c.XMM(), c.XMM()
	c.VCVTPD2PSY(a, x)
	c.VCVTPD2PSY(b, h)
	c.VINSERTF128(operand.Imm(1), h, x.AsY(), v)
}

func broadcastParam(c *build.Context, name string, to reg.VecVirtual) {
	a, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	c.VBROADCASTSS(a.Addr, to)
}

func broadcastParam64(c *build.Context, name string, to reg.VecVirtual) {
	a, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	c.VBROADCASTSD(a.Addr, to)
}

// cos writes the routine of Cos32 for whole registers within its range.
func cos(c *build.Context) {
	ranged(c, "cos32AVX2", "cos x", func() func(y [2]reg.VecVirtual) {
		d := newReduction(c, math.Pi, 0)
		return func(y [2]reg.VecVirtual) {
			t := d.reduce(c, y)
			u := squares(c, y)
			u2 := squares(c, u)
			p := line(c, -2.6051201739026343e-7, 2.4760145062779272e-5, u)
			p = times(c, p, u2, line(c, -0.0013888361087732062, 0.041666636233978842, u))
			p = times(c, p, u2, line(c, -0.49999999357835239, 0.99999999978039093, u))
			for i := range y {
				c.VPSLLQ(operand.Imm(63), t[i], t[i])
				c.VPXOR(t[i], p[i], y[i]) // the parity of n becomes the sign
			}
		}
	})
}

// ln2High and ln2Low add up to ln 2: n·ln2High is exact for |n| < 2²⁰.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// exp64 writes the routine of Exp64.
func exp64(c *build.Context) {
	param := begin(c, "exp64AVX2", "func(n int, dst, x *float64, scale, flush float64)",
		"exp64AVX2 sets dst to e^a, a = scale·x, 0 where a < flush, for n numbers, n a multiple of 8.")
	n, dst, x := param("n"), param("dst"), param("x")
	scale, flush := c.YMM(), c.YMM()
	broadcastParam64(c, "scale", scale)
	broadcastParam64(c, "flush", flush)
	d := newReduction(c, math.Ln2, 1023)
	d.period = ln2High
	loop(c, n, 8, func(i reg.GPVirtual) {
		var r, keep, p [2]reg.VecVirtual
		for h := range r {
			r[h], keep[h] = c.YMM(), c.YMM()
			c.VMULPD(operand.Mem{Base: x, Index: i, Scale: 8, Disp: 32 * h}, scale, r[h])
			c.VCMPPD(operand.Imm(5), flush, r[h], keep[h]) // not a < flush: NaN stays
		}
		t := d.reduce(c, r)
		for h := range r {
			p[h] = c.YMM()
			c.VSUBPD(d.magic, t[h], p[h])
			c.VFNMADD231PD(number(c, ln2Low), p[h], r[h])
		}
		p = line(c, 1./6227020800, 1./479001600, r)
		for _, f := range []float64{39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1} {
			for h := range p {
				c.VFMADD213PD(number(c, 1/f), r[h], p[h])
			}
		}
		for h := range p {
			c.VPSLLQ(operand.Imm(52), t[h], t[h])
			c.VMULPD(t[h], p[h], p[h]) // times 2ⁿ
			c.VANDPD(keep[h], p[h], p[h])
			c.VMOVUPD(p[h], operand.Mem{Base: dst, Index: i, Scale: 8, Disp: 32 * h})
		}
	})
}

// gaussian writes the row of a Gaussian tile: inner products to kernel values.
func gaussian(c *build.Context, f format) {
	name := "gaussian" + map[string]string{"float32": "32", "float64": "64", "int32": "Int"}[f.tile] + "AVX2"
	param := begin(c, name, fmt.Sprintf("func(n int, dst *float32, inner *%s, zz *float64, xx, scale, flush float64)",
		f.tile),
		name+" sets dst to e^a, a = scale·max(0, xx + zz − 2·inner), 0 where a < flush, for n numbers, n a multiple "+
			"of 8.")
	n, dst, inner, zz := param("n"), param("dst"), param("inner"), param("zz")
	xx := c.YMM()
	broadcastParam64(c, "xx", xx)
	e := expReduction(c)
	loop(c, n, 8, func(i reg.GPVirtual) {
		scale, flush, zero := c.YMM(), c.YMM(), c.YMM()
		broadcastParam64(c, "scale", scale)
		broadcastParam64(c, "flush", flush)
		c.VXORPD(zero, zero, zero)
		var half, keep [2]reg.VecVirtual
		for h := range half {
			d := squaredDistances(c, f, inner, zz, i, h, xx, zero)
			c.VMULPD(scale, d, d)
			keep[h] = c.YMM()
			c.VCMPPD(operand.Imm(5), flush, d, keep[h]) // not d < flush: NaN stays
			half[h] = d
		}
		e.expLanes(c, half)
		for h := range half {
			c.VANDPD(keep[h], half[h], half[h])
		}
		v := c.YMM()
		join(c, half[0], half[1], v)
		c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	})
}

// squaredDistances returns max(0, xx + zz − 2·inner) of the four numbers from 4h on.
func squaredDistances(c *build.Context, f format, inner, zz, i reg.Register, h int, xx,
	zero reg.VecVirtual) reg.VecVirtual {
	p, d := c.YMM(), c.YMM()
	f.load(c, operand.Mem{Base: inner, Index: i, Scale: uint8(f.stored), Disp: 4 * f.stored * h}, p)
	c.VADDPD(operand.Mem{Base: zz, Index: i, Scale: 8, Disp: 32 * h}, xx, d)
	c.VFMADD231PD(number(c, -2), p, d)
	c.VMAXPD(d, zero, d) // the second operand, d, if it is NaN
	return d
}

// distances writes the row of squared distances: from inner products.
func distances(c *build.Context, f format) {
	name := fmt.Sprintf("distances%dAVX2", 8*f.stored)
	param := begin(c, name, fmt.Sprintf("func(n int, dst *float64, inner *%s, zz *float64, xx float64)", f.tile),
		name+" sets dst to max(0, xx + zz − 2·inner) for n numbers, n a multiple of 8.")
	n, dst, inner, zz := param("n"), param("dst"), param("inner"), param("zz")
	xx, zero := c.YMM(), c.YMM()
	broadcastParam64(c, "xx", xx)
	c.VXORPD(zero, zero, zero)
	loop(c, n, 8, func(i reg.GPVirtual) {
		for h := range 2 {
			c.VMOVUPD(squaredDistances(c, f, inner, zz, i, h, xx, zero),
				operand.Mem{Base: dst, Index: i, Scale: 8, Disp: 32 * h})
		}
	})
}

// round writes the routine that rounds to float32 and flushes.
func round(c *build.Context) {
	param := begin(c, "roundAVX2", "func(n int, dst *float32, x *float64)",
		"roundAVX2 sets dst to x, 0 where |x| < 2⁻¹²⁶, for n numbers, n a multiple of 8.")
	n, dst, x := param("n"), param("dst"), param("x")
	magnitude, smallest := c.YMM(), load(c, 0x1p-126)
	c.VMOVUPD(bits(c, "magnitude", 1<<63-1), magnitude)
	loop(c, n, 8, func(i reg.GPVirtual) {
		var half [2]reg.VecVirtual
		for h := range half {
			v, keep := c.YMM(), c.YMM()
			c.VMOVUPD(operand.Mem{Base: x, Index: i, Scale: 8, Disp: 32 * h}, v)
			c.VANDPD(magnitude, v, keep)
			c.VCMPPD(operand.Imm(5), smallest, keep, keep) // not |v| < 2⁻¹²⁶: NaN stays
			c.VANDPD(keep, v, v)
			half[h] = v
		}
		v := c.YMM()
		join(c, half[0], half[1], v)
		c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	})
}
