package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// begin starts a routine. The function that it returns loads a parameter into a register.
func begin(name, signature, doc string) func(name string) GPVirtual {
	TEXT(name, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
	return func(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }
}

// loop generates the loop over n numbers, step at a time, and the end of the routine. The register i, which body
// receives, has the number of processed numbers.
func loop(n Register, step int, body func(i GPVirtual)) {
	loopThen(n, step, body, func(GPVirtual) {})
}

// loopThen is like loop, with code at the end of the routine. body may jump there, to the label done.
func loopThen(n Register, step int, body, end func(i GPVirtual)) {
	i := GP64()
	XORQ(i, i)
	Label("loop")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	body(i)
	ADDQ(Imm(uint64(step)), i)
	JMP(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	end(i)
	RET()
}

// lanes is the instruction set whose registers the following functions use.
var lanes = avx2

// bits defines a constant that fills all lanes of the longest registers with v, and returns the address of the
// constant.
func bits(name string, v uint64) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for lane := range 8 {
		DATA(8*lane, U64(v))
	}
	return m
}

// constants holds the addresses of the constants that number has defined.
var constants = map[float64]Mem{}

// number returns the address of a float64 constant in all lanes. Equal constants share an address.
func number(v float64) Mem {
	m, ok := constants[v]
	if !ok {
		m = bits(fmt.Sprintf("c%d", len(constants)), math.Float64bits(v))
		constants[v] = m
	}
	return m
}

// load returns a register with v in all lanes.
func load(v float64) VecVirtual {
	r := lanes.reg()
	VMOVUPD(number(v), r)
	return r
}

// line generates and returns registers with a·u_i + b for every u_i.
func line(a, b float64, u [2]VecVirtual) (q [2]VecVirtual) {
	for i := range q {
		q[i] = load(a)
		VFMADD213PD(number(b), u[i], q[i])
	}
	return q
}

// times sets q_i to p_i·u_i + q_i and returns q.
func times(p, u, q [2]VecVirtual) [2]VecVirtual {
	for i := range q {
		VFMADD231PD(p[i], u[i], q[i])
	}
	return q
}

// squares returns registers with the u_i².
func squares(u [2]VecVirtual) (s [2]VecVirtual) {
	for i := range s {
		s[i] = lanes.reg()
		VMULPD(u[i], u[i], s[i])
	}
	return s
}

// reduction subtracts a multiple n of a period from an argument. The sum of n and magic has n + bias in its low bits.
type reduction struct {
	inverse, magic VecVirtual
	period         float64
}

// newReduction loads the constants of a reduction into registers. The bias is an integer.
func newReduction(period, bias float64) reduction {
	return reduction{load(1 / period), load(3<<51 + bias), period}
}

// reduce sets y to y − n·period, n = round(y/period), and returns t with n in the low bits.
func (d reduction) reduce(y [2]VecVirtual) (t [2]VecVirtual) {
	var n [2]VecVirtual
	for i := range y {
		t[i], n[i] = lanes.reg(), lanes.reg()
		VMOVAPD(d.magic, t[i])
		VFMADD231PD(d.inverse, y[i], t[i])
	}
	for i := range y {
		VSUBPD(d.magic, t[i], n[i])
		VFNMADD231PD(number(d.period), n[i], y[i])
	}
	return t
}

// expReduction returns the reduction for e^y. Its bias is that of a float64 exponent: 2ⁿ has the exponent n + 1023.
func expReduction() reduction { return newReduction(math.Ln2, 1023) }

// expLanes sets y, two registers of float64 within [expMin, expMax], to e^y with the operations of the Go function exp
// of package simd, whose polynomial it evaluates. NaN stays NaN.
func (d reduction) expLanes(y [2]VecVirtual) {
	t := d.reduce(y)
	y2 := squares(y)
	p := line(0.0083748240430173627, 0.04166822620487864, y)
	for i := range p {
		VFMADD231PD(number(0.0013836834748051283), y2[i], p[i])
	}
	p = times(p, y2, line(0.16666420072253814, 0.49999992075045758, y))
	p = times(p, y2, line(1.0000000363446836, 1.0000000005546077, y))
	for i := range y {
		VPSLLQ(Imm(52), t[i], t[i])
		VMULPD(t[i], p[i], y[i]) // times 2ⁿ
	}
}

// exp generates the routine of Exp32 for complete registers within its range.
func exp() {
	ranged("exp32AVX2", "e^x", func() func(y [2]VecVirtual) { return expReduction().expLanes })
}

// ranged generates the routine of an elementwise function, which lanes computes within a range; formula describes the
// function.
func ranged(name, formula string, lanes func() func(y [2]VecVirtual)) {
	param := begin(name, "func(n int, dst, x *float32, lo, hi float32) int",
		name+" sets dst to "+formula+" for n numbers, n a multiple of 8, up to the first 8 that are not all in "+
			"[lo, hi], "+
			"and returns the number of computed values.")
	n, dst, x := param("n"), param("dst"), param("x")
	lo, hi := YMM(), YMM()
	VBROADCASTSS(address(Param("lo")), lo)
	VBROADCASTSS(address(Param("hi")), hi)
	compute := lanes()
	loopThen(n, 8, func(i GPVirtual) {
		v, isInside := YMM(), YMM()
		VMOVUPS(Mem{Base: x, Index: i, Scale: 4}, v)
		outside(v, lo, hi, isInside, "done")
		halves(v, compute)
		VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4})
	}, func(i GPVirtual) { Store(i, ReturnIndex(0)) })
}

// outside generates the jump to the label unless lo ≤ v ≤ hi in all lanes. It overwrites the register isInside.
func outside(v, lo, hi, isInside VecVirtual, label string) {
	isBelow := YMM()
	mask := GP32()
	VCMPPS(Imm(13), lo, v, isInside) // v ≥ lo
	VCMPPS(Imm(2), hi, v, isBelow)   // v ≤ hi
	VANDPS(isInside, isBelow, isInside)
	VMOVMSKPS(isInside, mask)
	CMPL(mask, Imm(255))
	JNE(LabelRef(label))
}

// halves applies compute to the two halves of v as float64, and rounds the results to float32.
func halves(v VecVirtual, compute func(y [2]VecVirtual)) {
	a, b, high := YMM(), YMM(), XMM()
	VEXTRACTF128(Imm(1), v, high)
	VCVTPS2PD(v.AsX(), a)
	VCVTPS2PD(high, b)
	compute([2]VecVirtual{a, b})
	join(a, b, v)
}

// join rounds two registers of float64 to one of float32.
func join(a, b, v VecVirtual) {
	if lanes.bytes == 64 {
		x, high := YMM(), YMM()
		VCVTPD2PS(a, x)
		VCVTPD2PS(b, high)
		VINSERTF64X4(Imm(1), high, x.AsZ(), v)
		return
	}
	x, high := XMM(), XMM()
	VCVTPD2PSY(a, x)
	VCVTPD2PSY(b, high)
	VINSERTF128(Imm(1), high, x.AsY(), v)
}

// address returns the address of a parameter or a result.
func address(component gotypes.Component) Mem {
	a, err := component.Resolve()
	if err != nil {
		panic(err)
	}
	return a.Addr
}

// cos generates the routine of Cos32 for complete registers within its range.
func cos() {
	ranged("cos32AVX2", "cos x", func() func(y [2]VecVirtual) {
		d := newReduction(math.Pi, 0)
		return func(y [2]VecVirtual) {
			t := d.reduce(y)
			u := squares(y)
			u2 := squares(u)
			p := line(-2.6051201739026343e-7, 2.4760145062779272e-5, u)
			p = times(p, u2, line(-0.0013888361087732062, 0.041666636233978842, u))
			p = times(p, u2, line(-0.49999999357835239, 0.99999999978039093, u))
			for i := range y {
				VPSLLQ(Imm(63), t[i], t[i])
				VPXOR(t[i], p[i], y[i]) // the parity of n becomes the sign
			}
		}
	})
}

// ln2High and ln2Low add up to ln 2: n·ln2High is exact for |n| < 2²⁰.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// exp64 generates the routine of Exp64.
func exp64() {
	param := begin("exp64AVX2", "func(n int, dst, x *float64, scale, flush float64)",
		"exp64AVX2 sets dst to e^a with a = scale·x, or to 0 where a < flush, for n numbers, n a multiple of 8.")
	n, dst, x := param("n"), param("dst"), param("x")
	scale, flush := YMM(), YMM()
	VBROADCASTSD(address(Param("scale")), scale)
	VBROADCASTSD(address(Param("flush")), flush)
	d := newReduction(math.Ln2, 1023)
	d.period = ln2High
	loop(n, 8, func(i GPVirtual) {
		var r, keep, p [2]VecVirtual
		for half := range r {
			r[half], keep[half] = YMM(), YMM()
			VMULPD(Mem{Base: x, Index: i, Scale: 8, Disp: 32 * half}, scale, r[half])
			VCMPPD(Imm(5), flush, r[half], keep[half]) // true unless a < flush, so that NaN stays
		}
		t := d.reduce(r)
		for half := range r {
			p[half] = YMM()
			VSUBPD(d.magic, t[half], p[half])
			VFNMADD231PD(number(ln2Low), p[half], r[half])
		}
		p = line(1./6227020800, 1./479001600, r)
		for _, factorial := range []float64{39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1} {
			for half := range p {
				VFMADD213PD(number(1/factorial), r[half], p[half])
			}
		}
		for half := range p {
			VPSLLQ(Imm(52), t[half], t[half])
			VMULPD(t[half], p[half], p[half]) // times 2ⁿ
			VANDPD(keep[half], p[half], p[half])
			VMOVUPD(p[half], Mem{Base: dst, Index: i, Scale: 8, Disp: 32 * half})
		}
	})
}

// gaussian generates the routine that turns a row of inner products into values of a Gaussian kernel.
func gaussian(s set, f format) {
	lanes = s
	defer func() { lanes = avx2 }()
	name := "gaussian" + map[string]string{"float32": "32", "float64": "64", "int32": "Int"}[f.tile] + s.name
	param := begin(name, fmt.Sprintf("func(n int, dst *float32, inner *%s, zz *float64, xx, scale, flush float64)",
		f.tile),
		name+" sets dst to e^a with a = scale·max(0, xx + zz − 2·inner), or to 0 where a < flush, for n numbers, n a "+
			"multiple of 16.")
	n, dst, inner, zz := param("n"), param("dst"), param("inner"), param("zz")
	xx := s.reg()
	VBROADCASTSD(address(Param("xx")), xx)
	e := expReduction()
	loop(n, s.bytes/4, func(i GPVirtual) {
		scale, flush, zero := s.reg(), s.reg(), s.reg()
		VBROADCASTSD(address(Param("scale")), scale)
		VBROADCASTSD(address(Param("flush")), flush)
		s.zero(zero)
		var half [2]VecVirtual
		var clear [2]func()
		for index := range half {
			d := distanceRow{f, inner, zz, xx, zero}.squared(i, index)
			VMULPD(scale, d, d)
			if half[index] = d; s.bytes == 64 {
				keep := K()
				VCMPPD(Imm(5), flush, d, keep) // true unless d < flush, so that NaN stays
				clear[index] = func() { VMOVAPD_Z(d, keep, d) }
				continue
			}
			keep := YMM()
			VCMPPD(Imm(5), flush, d, keep)
			clear[index] = func() { VANDPD(keep, d, d) }
		}
		e.expLanes(half)
		for _, f := range clear {
			f()
		}
		v := s.reg()
		join(half[0], half[1], v)
		VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4})
	})
}

// distanceRow holds the addresses and registers of a row of squared distances max(0, xx + zz − 2·inner).
type distanceRow struct {
	format
	inner, zz Register
	xx, zero  VecVirtual
}

// squared returns the squared distances in the h-th register after index i.
func (r distanceRow) squared(i Register, h int) VecVirtual {
	p, d := lanes.reg(), lanes.reg()
	r.load(Mem{Base: r.inner, Index: i, Scale: uint8(r.stored), Disp: lanes.bytes / 8 * r.stored * h}, p)
	VADDPD(Mem{Base: r.zz, Index: i, Scale: 8, Disp: lanes.bytes * h}, r.xx, d)
	VFMADD231PD(number(-2), p, d)
	VMAXPD(d, r.zero, d) // the result is the second operand, d, if d is NaN
	return d
}

// distances generates the routine that turns a row of inner products into squared distances.
func distances(f format) {
	name := fmt.Sprintf("distances%dAVX2", 8*f.stored)
	param := begin(name, fmt.Sprintf("func(n int, dst *float64, inner *%s, zz *float64, xx float64)", f.tile),
		name+" sets dst to max(0, xx + zz − 2·inner) for n numbers, n a multiple of 8.")
	n, dst, inner, zz := param("n"), param("dst"), param("inner"), param("zz")
	xx, zero := YMM(), YMM()
	VBROADCASTSD(address(Param("xx")), xx)
	VXORPD(zero, zero, zero)
	loop(n, 8, func(i GPVirtual) {
		for h := range 2 {
			VMOVUPD(distanceRow{f, inner, zz, xx, zero}.squared(i, h),
				Mem{Base: dst, Index: i, Scale: 8, Disp: 32 * h})
		}
	})
}

// round generates the routine that rounds to float32 and replaces subnormal numbers by 0.
func round() {
	param := begin("roundAVX2", "func(n int, dst *float32, x *float64)",
		"roundAVX2 sets dst to x rounded to float32, or to 0 where |x| < 2⁻¹²⁶, for n numbers, n a multiple of 8.")
	n, dst, x := param("n"), param("dst"), param("x")
	magnitude, smallest := YMM(), load(0x1p-126)
	VMOVUPD(bits("magnitude", 1<<63-1), magnitude)
	loop(n, 8, func(i GPVirtual) {
		var half [2]VecVirtual
		for h := range half {
			v, keep := YMM(), YMM()
			VMOVUPD(Mem{Base: x, Index: i, Scale: 8, Disp: 32 * h}, v)
			VANDPD(magnitude, v, keep)
			VCMPPD(Imm(5), smallest, keep, keep) // true unless |v| < 2⁻¹²⁶, so that NaN stays
			VANDPD(keep, v, v)
			half[h] = v
		}
		v := YMM()
		join(half[0], half[1], v)
		VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4})
	})
}
