package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
)

// compiled returns the routines by name, with registers allocated.
func compiled(t *testing.T) map[string]*ir.Function {
	f, err := file()
	if err == nil {
		err = pass.Compile.Execute(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ir.Function{}
	for _, s := range f.Sections {
		fn := s.(*ir.Function)
		out[fn.Name] = fn
	}
	return out
}

// numbers are elements of one format in a machine's memory.
type numbers struct {
	size int
	addr uint64
	data []byte
}

func (m *machine) numbers(size, n int) numbers {
	addr, data := m.place(n * size)
	return numbers{size, addr, data}
}

func (x numbers) at(i int) float64 {
	if x.size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(x.data[4*i:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(x.data[8*i:]))
}

func (x numbers) set(i int, v float64) {
	if x.size == 4 {
		binary.LittleEndian.PutUint32(x.data[4*i:], math.Float32bits(float32(v)))
	} else {
		binary.LittleEndian.PutUint64(x.data[8*i:], math.Float64bits(v))
	}
}

func (x numbers) fill(f func(i int) float64) numbers {
	for i := range len(x.data) / x.size {
		x.set(i, f(i))
	}
	return x
}

func (x numbers) all() (out []float64) {
	for i := range len(x.data) / x.size {
		out = append(out, x.at(i))
	}
	return out
}

func some(i int) float64 { return float64(i*7%15 - 7) }

// TestKernels interprets every micro-kernel, those of AVX-512 too, and compares it with
// its definition. The operands are exactly as long as they should be.
func TestKernels(t *testing.T) {
	code := compiled(t)
	for _, k := range kernels {
		for _, depth := range []int{0, 1, 3, 4, 5, 9} {
			for _, add := range []bool{false, true} {
				mr, nr := k.rows, k.cols()
				ldc := nr + 3
				m := newMachine()
				a := m.numbers(k.size, mr*depth).fill(some)
				b := m.numbers(k.size, nr*depth).fill(func(i int) float64 { return some(3*i + 1) })
				c := m.numbers(k.size, (mr-1)*ldc+nr).fill(func(i int) float64 { return some(5 * i) })
				want := c.all()
				for i := range mr {
					for j := range nr {
						sum := 0.0
						for p := range depth {
							sum += a.at(p*mr+i) * b.at(p*nr+j)
						}
						if add {
							want[i*ldc+j] += 3 * sum
						} else {
							want[i*ldc+j] = 3 * sum
						}
					}
				}
				alpha, one := uint64(math.Float32bits(3)), uint64(0)
				if k.size == 8 {
					alpha = math.Float64bits(3)
				}
				if add {
					one = 1
				}
				m.frame = map[string]uint64{"k": uint64(depth), "a": a.addr, "b": b.addr, "c": c.addr,
					"ldc": uint64(ldc), "alpha": alpha, "add": one}
				m.run(code[k.name()])
				if got := c.all(); !slices.Equal(got, want) {
					t.Errorf("%s: k = %d, add = %v:\n%v\nwant\n%v", k.name(), depth, add, got, want)
				}
			}
		}
	}
}

// TestByteKernels is TestKernels for those of integers.
func TestByteKernels(t *testing.T) {
	code, le := compiled(t), binary.LittleEndian
	for _, k := range byteKernels {
		for _, depth := range []int{0, 1, 2, 3, 6} {
			mr, nr := k.rows, k.cols()
			ldc := nr + 3
			m := newMachine()
			word := func(data []byte, i int) []byte { return data[4*i:] }
			aAt, a := m.place(4 * mr * depth)
			bAt, b := m.place(4 * nr * depth)
			for i := range a {
				a[i] = byte(37*i + 11)
			}
			for i := range b {
				b[i] = byte(91*i + 255)
			}
			startAt, start := m.place(4 * nr)
			for j := range nr {
				le.PutUint32(word(start, j), uint32(1000*j))
			}
			cAt, c := m.place(4 * ((mr-1)*ldc + nr))
			m.frame = map[string]uint64{"k": uint64(depth), "a": aAt, "b": bAt, "start": startAt, "c": cAt, "ldc": uint64(ldc)}
			m.run(code[k.name()])
			for i := range mr {
				for j := range nr {
					want := int32(1000 * j)
					for p := range depth {
						x, y := word(a, p*mr+i), word(b, p*nr+j)
						for q := range 4 {
							if k.set.bytes == 64 {
								want += int32(int8(x[q])) * int32(y[q])
							} else if q%2 == 0 {
								want += int32(int16(le.Uint16(x[q:]))) * int32(int16(le.Uint16(y[q:])))
							}
						}
					}
					if got := int32(le.Uint32(word(c, i*ldc+j))); got != want {
						t.Fatalf("%s: k = %d: (%d, %d) is %d, want %d", k.name(), depth, i, j, got, want)
					}
				}
			}
		}
	}
}

// TestPacking interprets the packing routines.
func TestPacking(t *testing.T) {
	code := compiled(t)
	const ld = 40
	run := func(name string, size, n, w, length, rows int, want func(p, i int) (from int)) {
		m := newMachine()
		src := m.numbers(size, length).fill(func(i int) float64 { return float64(i) })
		dst := m.numbers(size, max(0, (n-1)*w+rows)).fill(func(int) float64 { return -1 })
		m.frame = map[string]uint64{"n": uint64(n), "src": src.addr, "ld": ld, "dst": dst.addr, "w": uint64(w)}
		m.run(code[name])
		for i, v := range dst.all() {
			expect := -1.0
			if i%w < rows {
				expect = float64(want(i/w, i%w))
			}
			if v != expect {
				t.Fatalf("%s: n = %d: element %d is %v, want %v", name, n, i, v, expect)
			}
		}
	}
	for _, n := range []int{0, 1, 3, 4, 5, 8, 11} {
		for _, x := range transposers {
			run(fmt.Sprintf("%spack%d", x.letter, x.rows), x.size, n, 6, (x.rows-1)*ld+n, x.rows,
				func(p, i int) int { return i*ld + p })
		}
		for _, x := range copiers {
			w := x.bytes / x.size
			run(fmt.Sprintf("%scopy%d", x.letter, w), x.size, n, w, max(0, (n-1)*ld+w), w,
				func(p, i int) int { return p*ld + i })
		}
	}
}
