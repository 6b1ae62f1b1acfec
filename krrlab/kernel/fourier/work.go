package fourier

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel"
)

// Work, in multiplications of matrix products; fitted to processor seconds.
const (
	// pointWork is that of reading and sorting a point, columnWork that of one value of a polynomial at it, and
	// cellWork that of a cell, as a number of points.
	pointWork, columnWork, cellWork = 1500, 8, 64
	// tableWork is that of a cell in the table of cells, whether it has points or not.
	tableWork = 10
	// coefficientWork is that of one coefficient of a cosine or sine in the polynomials of a cell.
	coefficientWork = 20
	// termWork is that of one term of an entry of ΦᵀΦ.
	termWork = 240
	// triangleWork is that of one number of a Cholesky factor in the two triangular solves of an iteration, which take
	// as long as it takes to read the factor.
	triangleWork = 32
	// transformWork is that of one of the 5N log₂N operations of a fast Fourier transform.
	transformWork = 10
	// rounds is an expected number of solves with one factor.
	rounds = 2
	// iterationFactor is the number of iterations to a relative residual of 10⁻¹² where the eigenvalues of the
	// preconditioned matrix are from 1 to about 1; for others it is multiplied by the square root of the largest.
	iterationFactor = 16
)

// exactCounts are the numbers of modes on which the preconditioner of conjugate gradients may be exact. More cost a
// larger factor, fewer cost iterations.
var exactCounts = []int{1000, 1500, 2000, 3000, 4000, 6000, 8000}

// Work predicts the cost of a solve; work is in multiplications of matrix products.
type Work struct {
	Moments   float64 // of Normal
	Pass      float64 // of Project or Eval; EvalProject takes twice as much
	Factor    float64 // of Normal.Factor
	Iteration float64 // of an iteration of conjugate gradients for one column; 0 if ΦᵀΦ + λI is factored

	Iterations int   // predicted iterations; 0 if ΦᵀΦ + λI is factored
	Bytes      int64 // memory of Normal and Factor
	RowSums    int64 // numbers of the sums of rows of cells in Normal, which ranks exchange
}

// Work predicts the cost of a solve with n points, t columns and λ.
func (s *Series) Work(n, t int, lambda float64) (w Work) {
	w.Bytes = s.bytes(n, t+1, lambda)
	e, moments := s.expansions(2, n, t+1)
	w.Moments = moments
	w.RowSums = int64(e[0].cells*e[1].cells*e[0].terms*e[1].terms*e[2].width) * int64(t+1)
	_, w.Pass = s.expansions(1, n, t)
	if s.Direct() {
		w.Factor = s.factorWork(len(s.modes))
		return w
	}
	exact := s.exactModes(n, lambda)
	w.Factor, w.Iteration, w.Iterations = s.factorWork(exact), s.iterationWork(exact),
		int(s.iterations(n, lambda, exact))
	return w
}

// factorWork returns the work of a Cholesky factor for some modes.
func (s *Series) factorWork(modes int) float64 {
	size := float64(modes)
	return size*size*size/6 + termWork*math.Pow(2, float64(len(s.axes)))*size*size/2
}

// iterationWork returns the work of an iteration with a preconditioner that is exact on some modes.
func (s *Series) iterationWork(exact int) float64 {
	work, modes, moments := triangleWork*float64(exact)*float64(exact)/2, s.tensorWidths(1), s.tensorWidths(2)
	size := float64(modes[0] * modes[1] * modes[2])
	for place, width := range moments { // evaluation and sum along each axis
		nodes, lines := float64(gridNodes(width)), size/float64(modes[place])
		work += 2 * lines * min(nodes*float64(modes[place]), transformWork*5*nodes*math.Log2(nodes+1))
		size = lines * nodes
	}
	return work
}

// exactModes returns on how many modes of largest weight the preconditioner of conjugate gradients is exact, for n
// points: the number for which factor and iterations are predicted to take the least work.
func (s *Series) exactModes(n int, lambda float64) (best int) {
	if s.options.exactModes > 0 {
		return min(s.options.exactModes, len(s.modes))
	}
	lowest := math.Inf(1)
	for _, exact := range exactCounts {
		exact = min(exact, len(s.modes), s.options.DirectModes)
		if w := s.factorWork(exact) + rounds*s.iterations(n, lambda, exact)*s.iterationWork(exact); w < lowest {
			best, lowest = exact, w
		}
	}
	return best
}

// iterations predicts the iterations of conjugate gradients to a relative residual of 10⁻¹² with a preconditioner that
// is exact on some modes. For points spread evenly over the box the largest eigenvalue of the preconditioned matrix is
// about 1 + nw/(λ Π_a 2L_a/P_a), where w is the largest weight of the other modes.
func (s *Series) iterations(n int, lambda float64, exact int) float64 {
	if exact >= len(s.modes) {
		return 1
	}
	largest := float64(n) * s.modes[exact].weight / lambda
	for _, a := range s.axes {
		if a.side > 0 {
			largest /= 2 * a.side * a.spacing
		}
	}
	return min(maxIterations, iterationFactor*math.Sqrt(1+largest))
}

// expansions returns the expansions of the three axes for frequencies of the series times a factor, n points and a
// number of tensors: those of least work, and this work in multiplications. An axis that the points do not have gets
// one cell with one constant.
func (s *Series) expansions(factor, n, tensors int) (best [MaxDim]expansion, work float64) {
	work = math.Inf(1)
	for _, angle := range cellAngles {
		var all [MaxDim]expansion
		for place := range all {
			all[place] = newExpansion(axis{}, 0, angle)
			all[place].width = 1
		}
		for a := range s.axes {
			all[slot(a, len(s.axes))] = newExpansion(s.axes[a], factor*s.axes[a].top, angle)
		}
		if w := passWork(&all, float64(n), float64(tensors)); w < work {
			best, work = all, w
		}
	}
	return best, work
}

// passWork returns the multiplications of a pass over n points with a number of tensors: of the points, and of the
// cells, rows of cells and slabs that they may occupy.
func passWork(e *[MaxDim]expansion, n, tensors float64) float64 {
	terms := [MaxDim]float64{float64(e[0].terms), float64(e[1].terms), float64(e[2].terms)}
	widths := [MaxDim]float64{float64(e[0].width), float64(e[1].width), float64(e[2].width)}
	slabs := min(n, float64(e[0].cells))
	rows := min(n, slabs*float64(e[1].cells))
	cells := min(n, rows*float64(e[2].cells))
	values := tableWork*tableCells(e) + n*(pointWork+columnWork*(terms[0]+terms[1]+terms[2])) +
		coefficientWork*(slabs*terms[0]*widths[0]+rows*terms[1]*widths[1]+cells*terms[2]*widths[2])
	products := (n+cells*(cellWork+widths[2]))*terms[0]*terms[1]*terms[2] +
		rows*terms[0]*terms[1]*widths[1]*widths[2] +
		slabs*terms[0]*widths[0]*widths[1]*widths[2]
	return values + tensors*products
}

// tableCells returns the number of cells.
func tableCells(e *[MaxDim]expansion) float64 {
	return float64(e[0].cells) * float64(e[1].cells) * float64(e[2].cells)
}

// bytes returns the memory that Normal and Factor take for n points, a number of tensors and λ: the order of the
// points, the moments, the memory of a pass, and the matrix of the modes, or the grid with the factor of the
// preconditioner.
func (s *Series) bytes(n, tensors int, lambda float64) int64 {
	double := s.tensorWidths(2)
	cells := float64(double[0] * double[1] * double[2])
	e, _ := s.expansions(2, n, tensors)
	pairs, terms := float64(e[0].terms*e[1].terms), float64(e[2].terms)
	threads, sums := float64(accel.Threads()), float64(tensors)
	numbers := cells + float64(n) + // order: two arrays of int32
		2*tableCells(&e) +
		sums*float64(e[1].cells)*pairs*float64(double[2]) + // sums of the rows of cells
		sums*float64(e[0].terms*double[1]*double[2]) + // sums of a slab
		threads*(blockRows*(2*pairs+3*terms+sums)+sums*pairs*(terms+float64(double[2])))
	for place := range e {
		numbers += float64(2 * e[place].terms * double[place])
	}
	if s.options.Comm.Size() > 1 {
		numbers += float64(n) * sums // values of the points of the other ranks
	}
	modes := float64(len(s.modes))
	if s.Direct() {
		return int64(8*(numbers+modes*modes) + 80*modes)
	}
	grid, exact := 1.0, float64(s.exactModes(n, lambda))
	for _, width := range double {
		grid *= float64(gridNodes(width))
	}
	return int64(8*(numbers+5*grid+exact*exact) + 120*modes)
}
