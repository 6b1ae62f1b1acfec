package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kernel is a micro-kernel: rows × two registers of elements of C.
type kernel struct {
	format
	set  set
	rows int
}

var kernels = []kernel{
	{float32s, avx2, 6}, {float64s, avx2, 6},
	{float32s, avx512, 14}, {float64s, avx512, 14},
}

const (
	vectors = 2 // registers of one row of C
	steps   = 4 // steps p in one turn of the loop
)

func (k kernel) cols() int    { return vectors * k.set.bytes / k.size }
func (k kernel) name() string { return fmt.Sprintf("%sgemm%dx%d", k.letter, k.rows, k.cols()) }

// build writes the kernel. Its registers are rows·vectors sums, one row of B (vectors)
// and two elements of A in turn: all 16 of AVX2 for 6 rows, all 32 of AVX-512 for 14.
func (k kernel) build(c *build.Context) {
	param := begin(c, k.name(), fmt.Sprintf("func(k int, a, b, c *%s, ldc int, alpha %s, add bool)", k.number,
		k.number),
		fmt.Sprintf("%s is a micro-kernel of %s; see kernel.", k.name(), k.set.name))

	n, a, b, out, ldc := param("k"), param("a"), param("b"), param("c"), param("ldc")
	c.Comment("The stride in bytes.")
	c.SHLQ(operand.U8(map[int]int{4: 2, 8: 3}[k.size]), ldc)

	c.Comment("C will be needed in the end.")
	row := c.GP64()
	c.MOVQ(out, row)
	for i := range k.rows {
		for v := 0; v < vectors*k.set.bytes; v += 64 {
			c.PREFETCHT0(operand.Mem{Base: row, Disp: v})
		}
		if i < k.rows-1 {
			c.ADDQ(ldc, row)
		}
	}

	sums := make([][vectors]reg.VecVirtual, k.rows)
	for i := range sums {
		for v := range sums[i] {
			sums[i][v] = k.set.reg(c)
			k.set.zero(c, sums[i][v])
		}
	}
	var y [vectors]reg.VecVirtual
	for v := range y {
		y[v] = k.set.reg(c)
	}
	x := [2]reg.VecVirtual{k.set.reg(c), k.set.reg(c)}
	step := func(p int) {
		for v := range y {
			k.move(c, operand.Mem{Base: b, Disp: (p*vectors + v) * k.set.bytes}, y[v])
		}
		for i := range sums {
			k.broadcast(c, operand.Mem{Base: a, Disp: (p*k.rows + i) * k.size}, x[i%2])
			for v := range y {
				k.fma(c, y[v], x[i%2], sums[i][v])
			}
		}
	}
	advance := func(p int) {
		c.ADDQ(operand.U32(p*k.rows*k.size), a)
		c.ADDQ(operand.U32(p*vectors*k.set.bytes), b)
	}

	c.Comment(fmt.Sprintf("%d steps in a turn: sums += a·b.", steps))
	turns := c.GP64()
	c.MOVQ(n, turns)
	c.SHRQ(operand.U8(2), turns)
	c.JZ(operand.LabelRef("rest"))
	c.Label("turn")
	for p := range steps {
		step(p)
	}
	advance(steps)
	c.DECQ(turns)
	c.JNZ(operand.LabelRef("turn"))

	c.Label("rest")
	c.ANDQ(operand.U8(steps-1), n)
	c.JZ(operand.LabelRef("write"))
	c.Label("one")
	step(0)
	advance(1)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("one"))

	c.Label("write")
	alpha := y[0]
	addr, err := c.Param("alpha").Resolve()
	if err != nil {
		panic(err)
	}
	k.broadcast(c, addr.Addr, alpha)
	add := c.Load(c.Param("add"), c.GP32()).(reg.GPVirtual)
	c.TESTL(add, add)
	c.JZ(operand.LabelRef("store"))
	c.Comment("C += alpha·sums, rounded once.")
	for i := range sums {
		for v := range sums[i] {
			at := operand.Mem{Base: out, Disp: v * k.set.bytes}
			k.fma213(c, at, alpha, sums[i][v])
			k.move(c, sums[i][v], at)
		}
		if i < k.rows-1 {
			c.ADDQ(ldc, out)
		}
	}
	c.VZEROUPPER()
	c.RET()

	c.Label("store")
	c.Comment("C = alpha·sums.")
	for i := range sums {
		for v := range sums[i] {
			k.mul(c, alpha, sums[i][v], sums[i][v])
			k.move(c, sums[i][v], operand.Mem{Base: out, Disp: v * k.set.bytes})
		}
		if i < k.rows-1 {
			c.ADDQ(ldc, out)
		}
	}
	c.VZEROUPPER()
	c.RET()
}
