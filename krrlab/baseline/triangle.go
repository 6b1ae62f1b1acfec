package baseline

import (
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

const triangleBlock = 512 // rows or columns of L⁻¹ in a task

// triangle is the inverse of a lower triangular matrix L, s×s, to be multiplied by often:
// products are read at memory speed, which triangular solves of a few columns are not. The
// upper triangle is zero.
type triangle struct {
	s   int
	inv []float64 // L⁻¹
}

// newTriangle overwrites l, whose upper triangle is zero, by its inverse. It returns nil if L
// is singular.
func newTriangle(l []float64, s int) *triangle {
	if !accel.Dtrtri(s, l, s) {
		return nil
	}
	return &triangle{s, l}
}

func (a *triangle) blocks() int { return (a.s + triangleBlock - 1) / triangleBlock }

// forwardBlock sets block b of dst = L⁻¹·src, both t×s with each row a column.
func (a *triangle) forwardBlock(b int, dst, src []float64, t int) {
	c0, c1 := b*triangleBlock, min((b+1)*triangleBlock, a.s)
	for j := range t {
		clear(dst[j*a.s+c0 : j*a.s+c1])
	}
	simd.Forward64(c1-c0, c1, a.inv[c0*a.s:], a.s, src, a.s, dst[c0:], a.s, t) // Σ_{J≤I} (L⁻¹)_IJ src_J
}

// backwardBlock sets block b of dst = L⁻ᵀ·src.
func (a *triangle) backwardBlock(b int, dst, src []float64, t int, w *simd.Workspace) {
	c0, c1 := b*triangleBlock, min((b+1)*triangleBlock, a.s)
	for j := range t {
		clear(dst[j*a.s+c0 : j*a.s+c1])
	}
	simd.Backward64(a.s-c0, c1-c0, a.inv[c0*a.s+c0:], a.s, dst[c0:], a.s, src[c0:], a.s, t, w) // Σ_{I≥J} (L⁻¹)_IJᵀ src_I
}
