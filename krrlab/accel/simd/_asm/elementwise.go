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

// expLanes sets y, four float64 within [expMin, expMax], to e^y as exp.go does.
func expLanes(c *build.Context, y reg.VecVirtual) {
	t, r, r2, p, q := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VMULPD(number(c, 1/math.Ln2), y, t)
	c.VADDPD(number(c, 3<<51), t, t) // n in the low bits
	c.VSUBPD(number(c, 3<<51), t, r)
	c.VMULPD(number(c, math.Ln2), r, r)
	c.VSUBPD(r, y, r)
	c.VMULPD(r, r, r2)
	c.VMULPD(number(c, 0.0083748240430173627), r, p)
	c.VADDPD(number(c, 0.04166822620487864), p, p)
	c.VMULPD(number(c, 0.0013836834748051283), r2, q)
	c.VADDPD(q, p, p)
	c.VMULPD(p, r2, p)
	c.VMULPD(number(c, 0.16666420072253814), r, q)
	c.VADDPD(number(c, 0.49999992075045758), q, q)
	c.VADDPD(p, q, p)
	c.VMULPD(p, r2, p)
	c.VMULPD(number(c, 1.0000000363446836), r, q)
	c.VADDPD(number(c, 1.0000000005546077), q, q)
	c.VADDPD(p, q, p)
	c.VPSLLQ(operand.Imm(52), t, t)
	c.VPADDQ(t, p, y) // adding n to the exponent multiplies by 2ⁿ
}

// exp writes the routine of Exp32 for whole registers within its range.
func exp(c *build.Context) {
	param := begin(c, "exp32AVX2", "func(n int, dst, x *float32, lo, hi float32) int",
		"exp32AVX2 sets dst to e^x for n numbers, n a multiple of 8, up to the first 8 that are not all in [lo, hi], and returns how many it did.")
	n, dst, x := param("n"), param("dst"), param("x")
	lo, hi := c.YMM(), c.YMM()
	broadcastParam(c, "lo", lo)
	broadcastParam(c, "hi", hi)
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	v, m := c.YMM(), c.YMM()
	c.VMOVUPS(operand.Mem{Base: x, Index: i, Scale: 4}, v)
	outside(c, v, lo, hi, m, "done")
	halves(c, v, func(y reg.VecVirtual) { expLanes(c, y) })
	c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	c.ADDQ(operand.Imm(8), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.Store(i, c.ReturnIndex(0))
	c.RET()
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
func halves(c *build.Context, v reg.VecVirtual, f func(y reg.VecVirtual)) {
	a, b, h := c.YMM(), c.YMM(), c.XMM()
	c.VEXTRACTF128(operand.Imm(1), v, h)
	c.VCVTPS2PD(v.AsX(), a)
	c.VCVTPS2PD(h, b)
	f(a)
	f(b)
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
	const (
		piHi = 3373259426.0 / (1 << 30)
		piLo = math.Pi - piHi
	)
	param := begin(c, "cos32AVX2", "func(n int, dst, x *float32, lo, hi float32) int",
		"cos32AVX2 sets dst to cos x for n numbers, n a multiple of 8, up to the first 8 that are not all in [lo, hi], and returns how many it did.")
	n, dst, x := param("n"), param("dst"), param("x")
	lo, hi := c.YMM(), c.YMM()
	broadcastParam(c, "lo", lo)
	broadcastParam(c, "hi", hi)
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	v, m := c.YMM(), c.YMM()
	c.VMOVUPS(operand.Mem{Base: x, Index: i, Scale: 4}, v)
	outside(c, v, lo, hi, m, "done")
	halves(c, v, func(y reg.VecVirtual) {
		t, k, r, u, u2, p, q := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
		c.VMULPD(number(c, 1/math.Pi), y, t)
		c.VADDPD(number(c, 3<<51), t, t) // n in the low bits
		c.VSUBPD(number(c, 3<<51), t, k)
		c.VMULPD(number(c, piHi), k, r)
		c.VSUBPD(r, y, r)
		c.VMULPD(number(c, piLo), k, k)
		c.VSUBPD(k, r, r)
		c.VMULPD(r, r, u)
		c.VMULPD(u, u, u2)
		c.VMULPD(number(c, -2.6051201739026343e-7), u, p)
		c.VADDPD(number(c, 2.4760145062779272e-5), p, p)
		c.VMULPD(p, u2, p)
		c.VMULPD(number(c, -0.0013888361087732062), u, q)
		c.VADDPD(number(c, 0.041666636233978842), q, q)
		c.VADDPD(p, q, p)
		c.VMULPD(p, u2, p)
		c.VMULPD(number(c, -0.49999999357835239), u, q)
		c.VADDPD(number(c, 0.99999999978039093), q, q)
		c.VADDPD(p, q, p)
		c.VPSLLQ(operand.Imm(63), t, t)
		c.VPXOR(t, p, y) // the parity of n becomes the sign
	})
	c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	c.ADDQ(operand.Imm(8), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.Store(i, c.ReturnIndex(0))
	c.RET()
}

// gaussian writes the row of a Gaussian tile: inner products to kernel values.
func gaussian(c *build.Context, f format) {
	name := fmt.Sprintf("gaussian%dAVX2", 8*f.stored)
	param := begin(c, name, fmt.Sprintf("func(n int, dst *float32, inner *%s, zz *float64, xx, scale, flush float64)", f.tile),
		name+" sets dst to e^a, a = scale·max(0, xx + zz − 2·inner) rounded to float32, 0 where a < flush, for n numbers, n a multiple of 8.")
	n, dst, inner, zz := param("n"), param("dst"), param("inner"), param("zz")
	xx, scale, flush, zero := c.YMM(), c.YMM(), c.YMM(), c.YMM()
	broadcastParam64(c, "xx", xx)
	broadcastParam64(c, "scale", scale)
	broadcastParam64(c, "flush", flush)
	c.VXORPD(zero, zero, zero)
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	var half [2]reg.VecVirtual
	for h := range half {
		p, d, x4, keep := c.YMM(), c.YMM(), c.XMM(), c.YMM()
		f.load(c, operand.Mem{Base: inner, Index: i, Scale: uint8(f.stored), Disp: 4 * f.stored * h}, p)
		c.VADDPD(p, p, p)
		c.VADDPD(operand.Mem{Base: zz, Index: i, Scale: 8, Disp: 32 * h}, xx, d)
		c.VSUBPD(p, d, d)
		c.VMAXPD(d, zero, d) // the second operand, d, if it is NaN
		c.VMULPD(scale, d, d)
		c.VCMPPD(operand.Imm(5), flush, d, keep) // not d < flush: NaN stays
		c.VCVTPD2PSY(d, x4)
		c.VCVTPS2PD(x4, d)
		expLanes(c, d)
		c.VANDPD(keep, d, d)
		half[h] = d
	}
	v := c.YMM()
	join(c, half[0], half[1], v)
	c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4})
	c.ADDQ(operand.Imm(8), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// widen16 writes the routine that unpacks 16-bit numbers.
func widen16(c *build.Context) {
	param := begin(c, "widen16AVX2", "func(n int, dst *float32, x *uint16)",
		"widen16AVX2 sets dst to x for n numbers, n a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	for h := range 2 {
		v := c.YMM()
		c.VPMOVZXWD(operand.Mem{Base: x, Index: i, Scale: 2, Disp: 16 * h}, v)
		c.VCVTDQ2PS(v, v)
		c.VMOVUPS(v, operand.Mem{Base: dst, Index: i, Scale: 4, Disp: 32 * h})
	}
	c.ADDQ(operand.Imm(16), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// narrow16 writes the routine that packs to 16-bit numbers.
func narrow16(c *build.Context) {
	param := begin(c, "narrow16AVX2", "func(n int, dst *uint16, x *float32, scale float32)",
		"narrow16AVX2 sets dst to scale·x rounded to a whole number for n numbers, n a multiple of 16.")
	n, dst, x := param("n"), param("dst"), param("x")
	scale := c.YMM()
	broadcastParam(c, "scale", scale)
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	a, b := c.YMM(), c.YMM()
	c.VMULPS(operand.Mem{Base: x, Index: i, Scale: 4}, scale, a)
	c.VMULPS(operand.Mem{Base: x, Index: i, Scale: 4, Disp: 32}, scale, b)
	c.VCVTPS2DQ(a, a)
	c.VCVTPS2DQ(b, b)
	c.VPACKUSDW(b, a, a) // by halves: a₀b₀a₁b₁
	c.VPERMQ(operand.Imm(0xd8), a, a)
	c.VMOVDQU(a, operand.Mem{Base: dst, Index: i, Scale: 2})
	c.ADDQ(operand.Imm(16), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// butterfly writes (a, b) ← (a+b, a−b).
func butterfly(c *build.Context, f format) {
	param := begin(c, f.letter+"ButterflyAVX2", fmt.Sprintf("func(n int, a, b *%s)", f.number),
		fmt.Sprintf("%sButterflyAVX2 sets (a, b) to (a+b, a−b) for n numbers, n a multiple of %d.", f.letter, 32/f.size))
	n, a, b := param("n"), param("a"), param("b")
	i := c.GP64()
	c.XORQ(i, i)
	c.Label("loop")
	c.CMPQ(i, n)
	c.JGE(operand.LabelRef("done"))
	u, v, w := c.YMM(), c.YMM(), c.YMM()
	am, bm := operand.Mem{Base: a, Index: i, Scale: uint8(f.size)}, operand.Mem{Base: b, Index: i, Scale: uint8(f.size)}
	f.move(c, am, u)
	f.move(c, bm, v)
	f.add(c, v, u, w)
	if f.size == 4 {
		c.VSUBPS(v, u, u)
	} else {
		c.VSUBPD(v, u, u)
	}
	f.move(c, w, am)
	f.move(c, u, bm)
	c.ADDQ(operand.Imm(uint64(32/f.size)), i)
	c.JMP(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}
