package fourier

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

const (
	// expansionError bounds |e^{iqθ} − its Chebyshev expansion|. A smaller value needs more polynomials in a cell.
	expansionError = 2e-16
	// boxTolerance is the distance, relative to the side of the box, by which rounding may place a point outside the
	// box.
	boxTolerance = 1e-9
)

// cellAngles are the candidates for the size of a cell: qr, the highest frequency times half of the angle of the cell.
// The larger the cells, the fewer there are, and the more polynomials each has. Above 8 the rounding of the polynomials
// becomes noticeable.
var cellAngles = []float64{0.5, 1, 2, 4, 8}

// expansion computes the cosines and sines of one axis by polynomials. The axis is cut into equal cells. In a cell
// whose center has the angle c and whose half-width has the angle r,
//
//	e^{iqθ} = e^{iqc} Σ_{j<terms} (2−δ_j0) i^j J_j(qr) T_j((θ−c)/r) + e,   |e| ≤ 2 Σ_{j≥terms} (qr/2)^j/j!,
//
// with the Bessel functions J_j and the Chebyshev polynomials T_j, by the Jacobi-Anger expansion and |J_j(z)| ≤
// (z/2)^j/j! (DLMF 10.12.2 and 10.14.4). For each point, only the values of the first `terms` polynomials are computed;
// all further work is done once for a cell.
type expansion struct {
	axis
	topFrequency int       // highest frequency
	width        int       // number of cosines and sines; 1 for an axis that the points do not have
	cells        int       // number of cells along the axis
	terms        int       // number of polynomials T_0, …, T_{terms−1}
	halfAngle    float64   // half-width r of a cell, as an angle
	bessel       []float64 // (2−δ_j0) J_j(qr), terms×(topFrequency+1)
}

// newExpansion returns an expansion up to topFrequency, with cells of at most the size angle (see cellAngles). It does
// not compute the Bessel functions; see setBessel.
func newExpansion(a axis, topFrequency int, angle float64) expansion {
	span := 2 * math.Pi * a.spacing * a.side // angle of the box
	e := expansion{axis: a, topFrequency: topFrequency, width: functionCount(topFrequency), cells: max(1,
		int(math.Ceil(float64(topFrequency)*span/2/angle))),
		terms: 1}
	e.halfAngle = span / 2 / float64(e.cells)
	for truncation(float64(topFrequency)*e.halfAngle, e.terms) > expansionError {
		e.terms++
	}
	return e
}

// truncation bounds the error of an expansion with the given number of terms, 2 Σ_{j≥terms} (z/2)^j/j! for z = qr, by a
// geometric series. It returns +Inf if the geometric series does not converge.
func truncation(z float64, terms int) float64 {
	ratio := z / 2 / float64(terms+1)
	if ratio >= 1 {
		return math.Inf(1)
	}
	bound := 2.0
	for j := 1; j <= terms; j++ {
		bound *= z / 2 / float64(j)
	}
	return bound / (1 - ratio)
}

// evaluationError bounds the error of the expansions in an entry of K̃, and 1/n times the 2-norm of their error in ΦᵀΦ.
// weights is the sum of the weights of all products of cosines. Each cosine and sine of an axis has an error η of at
// most expansionError, so that an entry of K̃, a sum of products of 2d of them, has an error of at most (1+η)^2d − 1
// times weights. The M weights of ΦᵀΦ add up to at most 2^d·weights.
func evaluationError(d int, weights float64) float64 {
	return weights * math.Pow(2, float64(d)) * math.Expm1(2*float64(d)*math.Log1p(expansionError))
}

// setBessel computes the Bessel functions.
func (e *expansion) setBessel() {
	e.bessel = make([]float64, 0, e.terms*(e.topFrequency+1))
	for j := range e.terms {
		for q := range e.topFrequency + 1 {
			e.bessel = append(e.bessel, float64(min(j, 1)+1)*math.Jn(j, float64(q)*e.halfAngle))
		}
	}
}

// locate returns the cell of a coordinate x and the position of x in this cell, from −1 to 1. It panics outside the
// box.
func (e *expansion) locate(x float64) (cell int, position float64) {
	offset := x - e.low
	if tolerance := boxTolerance * e.side; !(offset >= -tolerance && offset <= e.side+tolerance) {
		panic("fourier: a point outside the box of the series")
	}
	if e.side == 0 {
		return 0, 0
	}
	cellCoordinate := offset / e.side * float64(e.cells)
	cell = min(max(int(cellCoordinate), 0), e.cells-1)
	return cell, 2*(cellCoordinate-float64(cell)) - 1
}

// chebyshev sets row to T_j(x), j = 0, 1, ….
func chebyshev(row []float64, x float64) {
	previous, value := x, 1.0 // T_{−1} = T_1
	for j := range row {
		row[j] = value
		previous, value = value, 2*x*value-previous
	}
}

// coefficients returns the coefficients of the functions cos 0, sin 0, cos θ, sin θ, cos 2θ, … in the polynomials of a
// cell, as a terms×width matrix with one column for each function. The matrix is in the memory of scratch, which grows
// if necessary.
func (e *expansion) coefficients(cell int, scratch *[]float64) blas64.General {
	phaseCount := functionCount(e.topFrequency)
	if need := phaseCount + e.terms*e.width; len(*scratch) < need {
		*scratch = make([]float64, need)
	}
	phases, dst := (*scratch)[:phaseCount], matrix(e.terms, e.width, (*scratch)[phaseCount:])
	cosinesAndSines(phases, float64(2*cell+1)*e.halfAngle)
	for j := range e.terms {
		// i^j e^{iφ} = cos φ + i sin φ, −sin φ + i cos φ, −cos φ − i sin φ, sin φ − i cos φ for j = 0, 1, 2, 3
		row, sign, odd := dst.Data[j*dst.Stride:j*dst.Stride+dst.Cols], []float64{1, 1, -1, -1}[j%4], j%2
		for q, v := range e.bessel[j*(e.topFrequency+1) : (j+1)*(e.topFrequency+1)] {
			v *= sign
			cos, sin := v*phases[2*q+odd], v*phases[2*q+1-odd]
			if odd == 1 {
				cos = -cos
			}
			if row[2*q] = cos; e.width > 1 {
				row[2*q+1] = sin
			}
		}
	}
	return dst
}
