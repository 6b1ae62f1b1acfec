package fourier

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel"
)

// These constants are times of steps of a solve, fitted to measured processor seconds. The unit is the time of one
// multiply-add of a matrix product, except for cellWork.
const (
	pointWork       = 1500 // reading and sorting a point
	columnWork      = 8    // one value of a polynomial at a point
	cellWork        = 64   // fixed work of a cell with points, in units of the products of one point
	tableWork       = 10   // an entry of the table of all cells, which includes cells without points
	coefficientWork = 20   // one coefficient of a cosine or sine in the polynomials of a cell
	termWork        = 240  // one term of an entry of ΦᵀΦ
	transformWork   = 10   // one of the 5N log₂N operations of a fast Fourier transform of N numbers
	// triangleWork is the time of one number of a Cholesky factor in the two triangular solves of an iteration. It is
	// large because the factor is read from memory in each solve.
	triangleWork = 32
)

const (
	// expectedSolves is the number of solves with one factor for which exactModes balances factor and iterations. A
	// larger number leads to larger factors.
	expectedSolves = 2
	// iterationFactor is the predicted number of iterations to a relative residual of 10⁻¹² for condition number κ = 1;
	// for others it is multiplied by √κ. The bound of conjugate gradients is ln(2·10¹²)/2 ≈ 14.
	iterationFactor = 16
	// modeBytes is the memory of a mode in a slice whose capacity append may have doubled.
	modeBytes = 80
)

// exactCounts are the candidates for the number of modes on which the preconditioner of conjugate gradients is exact.
// With more modes the factor takes longer, with fewer there are more iterations.
var exactCounts = []int{1000, 1500, 2000, 3000, 4000, 6000, 8000}

// Work is the predicted cost of a solve. Moments, Pass, Factor and Iteration are times in units of a multiply-add of a
// matrix product.
type Work struct {
	Moments   float64 // time of NormalEquations
	Pass      float64 // time of Project or Eval; EvalProject takes twice as much
	Factor    float64 // time of NormalMatrix.Factor
	Iteration float64 // time of a conjugate gradient iteration for one column; 0 if ΦᵀΦ + λI is factored

	Iterations int   // predicted iterations; 0 if ΦᵀΦ + λI is factored
	Bytes      int64 // memory of NormalMatrix and Factor
	RowSums    int64 // numbers in the sums of rows of cells in NormalEquations, which ranks exchange
}

// Work predicts the cost of a solve with n points, t columns of right-hand sides and the ridge λ.
func (s *Series) Work(n, t int, lambda float64) (w Work) {
	tensors := t + 1 // the moments, and ΦᵀY with one tensor for each column
	w.Bytes = s.bytes(n, tensors, lambda)
	var e [MaxDim]expansion
	e, w.Moments = s.expansions(2, n, tensors)
	// Each row of cells has, for each tensor, a sum of (terms·terms)×width numbers.
	w.RowSums = int64(e[0].cells*e[1].cells*e[0].terms*e[1].terms*e[2].width) * int64(tensors)
	_, w.Pass = s.expansions(1, n, t)
	if s.Direct() {
		w.Factor = s.factorWork(len(s.modes))
		return w
	}
	exactCount := s.exactModes(n, lambda)
	w.Factor, w.Iteration = s.factorWork(exactCount), s.iterationWork(exactCount)
	w.Iterations = int(s.iterations(n, lambda, exactCount))
	return w
}

// factorWork returns the work of forming the entries of ΦᵀΦ for the given number of modes, and of their Cholesky
// factor. An entry is a sum of 2^d moments in d dimensions.
func (s *Series) factorWork(modes int) float64 {
	size := float64(modes)
	return size*size*size/6 + termWork*math.Pow(2, float64(len(s.axes)))*size*size/2
}

// iterationWork returns the work of an iteration with a preconditioner that is exact on the given number of modes: of
// its triangular solves, and of grid.multiply, which transforms a tensor along each axis and back.
func (s *Series) iterationWork(exactCount int) float64 {
	work := triangleWork * float64(exactCount) * float64(exactCount) / 2
	modeWidths, momentWidths := s.tensorWidths(1), s.tensorWidths(2)
	size := float64(modeWidths[0] * modeWidths[1] * modeWidths[2])
	for axisIndex, width := range momentWidths {
		nodes, lines := float64(gridNodes(width)), size/float64(modeWidths[axisIndex])
		work += 2 * lines * min(nodes*float64(modeWidths[axisIndex]), transformWork*5*nodes*math.Log2(nodes+1))
		size = lines * nodes
	}
	return work
}

// exactModes returns the number of modes of largest weight on which the preconditioner of conjugate gradients is exact,
// for n points: the one of exactCounts for which factor and iterations are predicted to take the least work.
func (s *Series) exactModes(n int, lambda float64) (best int) {
	if s.options.exactModes > 0 {
		return min(s.options.exactModes, len(s.modes))
	}
	lowest := math.Inf(1)
	for _, exactCount := range exactCounts {
		exactCount = min(exactCount, len(s.modes), s.options.DirectModes)
		solveWork := s.iterations(n, lambda, exactCount) * s.iterationWork(exactCount)
		if work := s.factorWork(exactCount) + expectedSolves*solveWork; work < lowest {
			best, lowest = exactCount, work
		}
	}
	return best
}

// iterations predicts the iterations of conjugate gradients to a relative residual of 10⁻¹² with a preconditioner that
// is exact on the given number of modes. For points spread evenly over a box with sides L_a, and periods P_a =
// 1/spacing of the series, the condition number of the preconditioned matrix is about 1 + nw/(λ Π_a 2L_a/P_a), where w
// is the largest weight of the other modes.
func (s *Series) iterations(n int, lambda float64, exactCount int) float64 {
	if exactCount >= len(s.modes) {
		return 1
	}
	excess := float64(n) * s.modes[exactCount].weight / lambda // condition number − 1
	for _, axis := range s.axes {
		if axis.side > 0 {
			excess /= 2 * axis.side * axis.spacing
		}
	}
	return min(maxIterations, iterationFactor*math.Sqrt(1+excess))
}

// expansions chooses the size of the cells: the one of cellAngles for which a pass over n points takes the least work.
// The pass evaluates or sums the given number of tensors, with the frequencies of the series times factor. expansions
// returns the expansions of the MaxDim axes, and this work. For points of fewer dimensions, each missing axis has one
// cell and an expansion of one constant term.
func (s *Series) expansions(factor, n, tensors int) (best [MaxDim]expansion, work float64) {
	work = math.Inf(1)
	for _, angle := range cellAngles {
		var all [MaxDim]expansion
		for axisIndex := range all {
			all[axisIndex] = newExpansion(axis{}, 0, angle)
			all[axisIndex].width = 1
		}
		for axisIndex, axis := range s.axes {
			all[tensorAxis(axisIndex, len(s.axes))] = newExpansion(axis, factor*axis.topFrequency, angle)
		}
		if candidateWork := passWork(&all, float64(n), float64(tensors)); candidateWork < work {
			best, work = all, candidateWork
		}
	}
	return best, work
}

// passWork returns the work of a pass over n points with the given number of tensors. It assumes that the points occupy
// as many cells, rows of cells and slabs as possible.
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

// tableCells returns the number of cells of the box.
func tableCells(e *[MaxDim]expansion) float64 {
	return float64(e[0].cells) * float64(e[1].cells) * float64(e[2].cells)
}

// bytes returns the memory that NormalMatrix and Factor take for n points, the given number of tensors, and λ.
func (s *Series) bytes(n, tensors int, lambda float64) int64 {
	doubleWidths := s.tensorWidths(2)
	momentCount := float64(doubleWidths[0] * doubleWidths[1] * doubleWidths[2])
	e, _ := s.expansions(2, n, tensors)
	pairs, terms := float64(e[0].terms*e[1].terms), float64(e[2].terms)
	threads, tensorCount := float64(accel.Threads()), float64(tensors)

	numbers := momentCount + float64(n) + // the moments, and order with its copy: two arrays of int32
		2*tableCells(&e) + // starts and its copy
		tensorCount*float64(e[1].cells)*pairs*float64(doubleWidths[2]) + // sums of the rows of a slab
		tensorCount*float64(e[0].terms*doubleWidths[1]*doubleWidths[2]) + // sums of the slab
		threads*(blockRows*(2*pairs+3*terms+tensorCount)+ // passWorker
			tensorCount*pairs*(terms+float64(doubleWidths[2])))
	for axisIndex := range e { // Bessel functions and coefficients of an expansion
		numbers += float64(2 * e[axisIndex].terms * doubleWidths[axisIndex])
	}
	if s.options.Comm.Size() > 1 {
		numbers += float64(n) * tensorCount // values of the points of the other ranks
	}

	modes := float64(len(s.modes))
	if s.Direct() {
		return int64(8*(numbers+modes*modes) + modeBytes*modes) // ΦᵀΦ, M×M
	}
	// The grid has weights, two arrays of transforms, the scaled moments, and the tensor of the modes, each of at most
	// gridSize numbers. Conjugate gradients have five vectors.
	gridSize, exactCount := 1.0, float64(s.exactModes(n, lambda))
	for _, width := range doubleWidths {
		gridSize *= float64(gridNodes(width))
	}
	return int64(8*(numbers+5*gridSize+exactCount*exactCount+5*modes) + modeBytes*modes)
}
