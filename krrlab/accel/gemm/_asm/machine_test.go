package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine interprets the instructions that the generator uses, in the meaning of
// Intel's manual (operands in Go's order, destination last). Memory is a few regions
// far apart; an access beyond one is an error.
type machine struct {
	gp      map[reg.Index]uint64
	vec     [32][64]byte
	zero    bool // flags
	sign    bool
	frame   map[string]uint64 // arguments by name
	regions []region
}

type region struct {
	addr uint64
	data []byte
}

func newMachine() *machine { return &machine{gp: map[reg.Index]uint64{}, frame: map[string]uint64{}} }

// place puts n bytes into memory and returns their address.
func (m *machine) place(n int) (uint64, []byte) {
	r := region{uint64(len(m.regions)+1) << 32, make([]byte, n)}
	m.regions = append(m.regions, r)
	return r.addr, r.data
}

func (m *machine) bytes(addr uint64, n int) []byte {
	for _, r := range m.regions {
		if addr >= r.addr && addr+uint64(n) <= r.addr+uint64(len(r.data)) {
			return r.data[addr-r.addr:][:n]
		}
	}
	panic(fmt.Sprintf("access to %d bytes at %#x", n, addr))
}

func (m *machine) address(x operand.Mem) uint64 {
	a := m.gp[reg.ToPhysical(x.Base).PhysicalIndex()] + uint64(x.Disp)
	if x.Index != nil {
		a += uint64(x.Scale) * m.gp[reg.ToPhysical(x.Index).PhysicalIndex()]
	}
	return a
}

// read returns n bytes of an operand, a vector register or memory.
func (m *machine) read(x operand.Op, n int) []byte {
	switch x := x.(type) {
	case operand.Mem:
		if x.Symbol.Name != "" {
			v, ok := m.frame[x.Symbol.Name]
			if !ok {
				panic("no argument " + x.Symbol.Name)
			}
			return binary.LittleEndian.AppendUint64(nil, v)[:n]
		}
		return append([]byte(nil), m.bytes(m.address(x), n)...)
	case reg.Physical:
		return append([]byte(nil), m.vec[x.PhysicalIndex()][:n]...)
	}
	panic(fmt.Sprintf("%T as a vector", x))
}

// write sets a vector register, with zeros above, or memory.
func (m *machine) write(x operand.Op, b []byte) {
	switch x := x.(type) {
	case operand.Mem:
		copy(m.bytes(m.address(x), len(b)), b)
	case reg.Physical:
		m.vec[x.PhysicalIndex()] = [64]byte{}
		copy(m.vec[x.PhysicalIndex()][:], b)
	}
}

func (m *machine) integer(x operand.Op) uint64 {
	switch x := x.(type) {
	case operand.U8:
		return uint64(x)
	case operand.U32:
		return uint64(x)
	case operand.Mem:
		return m.frame[x.Symbol.Name]
	case reg.Physical:
		return m.gp[x.PhysicalIndex()]
	}
	panic(fmt.Sprintf("%T as an integer", x))
}

func (m *machine) set(x operand.Op, v uint64) {
	m.gp[x.(reg.Physical).PhysicalIndex()] = v
	m.zero, m.sign = v == 0, int64(v) < 0
}

// width returns the bytes of the widest vector register among the operands.
func width(ops []operand.Op) int {
	n := 0
	for _, o := range ops {
		if r, ok := o.(reg.Physical); ok && r.Kind() == reg.KindVector {
			n = max(n, int(r.Size()))
		}
	}
	return n
}

// run interprets a function.
func (m *machine) run(f *ir.Function) {
	labels := map[string]int{}
	for i, n := range f.Nodes {
		if l, ok := n.(ir.Label); ok {
			labels[string(l)] = i
		}
	}
	for at, steps := 0, 0; ; at++ {
		if steps++; steps > 1e6 {
			panic("does not end")
		}
		i, ok := f.Nodes[at].(*ir.Instruction)
		if !ok {
			continue
		}
		if i.Opcode == "RET" {
			return
		}
		if i.IsBranch {
			take, known := map[string]bool{"JZ": m.zero, "JNZ": !m.zero, "JL": m.sign, "JGE": !m.sign}[i.Opcode]
			if !known {
				panic(i.Opcode)
			}
			if take {
				at = labels[string(i.Operands[0].(operand.LabelRef))]
			}
			continue
		}
		if strings.HasPrefix(i.Opcode, "V") {
			m.vector(i.Opcode, i.Operands)
		} else {
			m.scalar(i.Opcode, i.Operands)
		}
	}
}

func (m *machine) scalar(op string, x []operand.Op) {
	switch op {
	case "MOVQ", "MOVBLZX":
		m.gp[x[1].(reg.Physical).PhysicalIndex()] = m.integer(x[0])
	case "LEAQ":
		m.gp[x[1].(reg.Physical).PhysicalIndex()] = m.address(x[0].(operand.Mem))
	case "ADDQ":
		m.set(x[1], m.integer(x[1])+m.integer(x[0]))
	case "SUBQ":
		m.set(x[1], m.integer(x[1])-m.integer(x[0]))
	case "SHLQ":
		m.set(x[1], m.integer(x[1])<<m.integer(x[0]))
	case "SHRQ":
		m.set(x[1], m.integer(x[1])>>m.integer(x[0]))
	case "ANDQ":
		m.set(x[1], m.integer(x[1])&m.integer(x[0]))
	case "DECQ":
		m.set(x[0], m.integer(x[0])-1)
	case "TESTQ", "TESTL":
		v := m.integer(x[0]) & m.integer(x[1])
		m.zero, m.sign = v == 0, int64(v) < 0
	case "PREFETCHT0":
	default:
		panic(op)
	}
}

func (m *machine) vector(op string, x []operand.Op) {
	n := width(x)
	last := x[max(0, len(x)-1):]
	switch op {
	case "VZEROUPPER":
	case "VMOVUPS", "VMOVUPD":
		m.write(last[0], m.read(x[0], n))
	case "VMOVSS":
		m.write(last[0], m.read(x[0], 4))
	case "VMOVSD":
		m.write(last[0], m.read(x[0], 8))
	case "VMOVLPS":
		m.write(last[0], m.read(x[0], 16)[:8])
	case "VMOVHPS":
		m.write(last[0], m.read(x[0], 16)[8:])
	case "VEXTRACTF128":
		m.write(last[0], m.read(x[1], 32)[16*m.integer(x[0]):][:16])
	case "VPERM2F128":
		both, c := append(m.read(x[2], n), m.read(x[1], n)...), m.integer(x[0])
		m.write(last[0], append(both[c%4*16:][:16:16], both[c/16%4*16:][:16]...))
	case "VBROADCASTSS":
		m.write(last[0], repeat(m.read(x[0], 4), n))
	case "VBROADCASTSD":
		m.write(last[0], repeat(m.read(x[0], 8), n))
	case "VXORPS", "VPXORD":
		a, b := m.read(x[0], n), m.read(x[1], n)
		for i := range a {
			a[i] ^= b[i]
		}
		m.write(last[0], a)
	case "VUNPCKLPS", "VUNPCKHPS", "VUNPCKLPD", "VUNPCKHPD":
		size := map[byte]int{'S': 4, 'D': 8}[op[len(op)-1]]
		a, b := m.read(x[1], n), m.read(x[0], n)
		var out []byte
		for lane := 0; lane < n; lane += 16 {
			from := lane
			if op[6] == 'H' {
				from += 8
			}
			for i := from; i < from+8; i += size {
				out = append(append(out, a[i:i+size]...), b[i:i+size]...)
			}
		}
		m.write(last[0], out)
	case "VPMADDWD", "VPADDD", "VPDPBUSD":
		m.write(last[0], integers(op, m.read(x[0], n), m.read(x[1], n), m.read(x[2], n)))
	case "VMULPS", "VFMADD231PS", "VFMADD213PS", "VMULPD", "VFMADD231PD", "VFMADD213PD":
		m.write(last[0], arithmetic(op, m.read(x[0], n), m.read(x[1], n), m.read(x[2], n)))
	default:
		panic(op)
	}
}

func repeat(b []byte, n int) (out []byte) {
	for len(out) < n {
		out = append(out, b...)
	}
	return out
}

// integers computes with all words of 32 bits, the operands in Go's order. The products of
// VPDPBUSD are of unsigned bytes of b and signed ones of a.
func integers(op string, a, b, c []byte) []byte {
	le := binary.LittleEndian
	for i := 0; i < len(a); i += 4 {
		sum := int32(le.Uint32(a[i:])) + int32(le.Uint32(b[i:])) // VPADDD
		switch op {
		case "VPMADDWD":
			sum = 0
			for j := i; j < i+4; j += 2 {
				sum += int32(int16(le.Uint16(a[j:]))) * int32(int16(le.Uint16(b[j:])))
			}
		case "VPDPBUSD":
			sum = int32(le.Uint32(c[i:]))
			for j := i; j < i+4; j++ {
				sum += int32(int8(a[j])) * int32(b[j])
			}
		}
		le.PutUint32(c[i:], uint32(sum))
	}
	return c
}

// arithmetic computes with all elements; a, b and c are the operands in Go's order, so
// FMA213 is c = b·c + a and FMA231 is c = b·a + c. The numbers of the tests are small
// integers, so float64 serves for float32 too.
func arithmetic(op string, a, b, c []byte) []byte {
	f := func(a, b, c float64) float64 {
		switch op[:len(op)-2] {
		case "VMUL":
			return a * b
		case "VFMADD231":
			return math.FMA(b, a, c)
		}
		return math.FMA(b, c, a)
	}
	le := binary.LittleEndian
	for i := 0; i < len(a); {
		if op[len(op)-1] == 'S' {
			v := func(s []byte) float64 { return float64(math.Float32frombits(le.Uint32(s[i:]))) }
			le.PutUint32(c[i:], math.Float32bits(float32(f(v(a), v(b), v(c)))))
			i += 4
		} else {
			v := func(s []byte) float64 { return math.Float64frombits(le.Uint64(s[i:])) }
			le.PutUint64(c[i:], math.Float64bits(f(v(a), v(b), v(c))))
			i += 8
		}
	}
	return c
}
