package vecchia

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// MaxAutoNeighbors is the largest k that the rule for the number of neighbors chooses.
const MaxAutoNeighbors = minNeighbors << maxDoublings

// PilotSize is the size of the pilot sample of the rule for k and ω: the last PilotSize points of π, which all other
// points precede. A larger sample makes the rule less random and costs PilotSize columns of K.
const PilotSize = 128

const (
	pilotBlock   = 16   // pilot points processed together; their columns of K take 128n bytes
	minNeighbors = 15   // smallest k that the rule chooses
	maxDoublings = 3    // largest number of times that the rule doubles minNeighbors
	minDecrease  = 0.05 // smallest decrease of the mean logarithm of the conditional variances for which k is doubled
	minDamping   = 0.05 // smallest ω that the rule chooses
)

// pilotSums are sums over pilot points i; sumPilotSample divides logVariances by the number of points. Element a of
// neighborSquares is for k = minNeighbors·2^a neighbors. Element 0 of logVariances is for k = 0, and element a+1 for as
// many neighbors as element a of neighborSquares. c_ij = R_ij/√((R_ii+λ)(R_jj+λ)), and the nearest points are those
// with the largest c_ij². The package comment defines F, G, R, V, M, ω and π.
type pilotSums struct {
	logVariances    [maxDoublings + 2]float64 // Σ log(1/G_ii²), the logarithms of the conditional variances
	neighborSquares [maxDoublings + 1]float64 // Σ c_ij² over the k nearest points j
	totalSquares    float64                   // Σ c_ij² over all candidates j
}

// chooseParameters sets k and ω, by a rule if the options leave them open. The rule uses a pilot sample, the last
// points of π: they are a random sample of all points, and all others precede them. It doubles k as long as that lowers
// the geometric mean of the conditional variances 1/G_ii² by 5 %. It sets ω = max(ρ³, 0.05), where ρ is the share of
// the squared correlations in R that the neighbors account for; ω = 1 if all correlations are zero.
//
// If ρ is near 1, R is local, and M needs no damping. If most of the correlation lies elsewhere, as for an R with many
// small eigenvalues, neighbors cannot explain it, and V should be near λI. The exponent 3 was fitted to sixteen
// problems.
func (b *builder) chooseParameters(ctx context.Context) error {
	requestedNeighbors := min(max(b.options.Neighbors, 0), b.n-1)
	if b.options.Neighbors != 0 && b.options.Damping > 0 {
		b.k, b.damping = requestedNeighbors, b.options.Damping
		return nil
	}

	b.damping = 1 // ω for the pilot sample
	b.computeDiagonals()
	rows := min(PilotSize, (b.n+3)/4)
	doublings := 0
	for doublings < maxDoublings && (b.options.Neighbors == 0 || minNeighbors<<(doublings+1) <= requestedNeighbors) {
		doublings++
	}
	s, err := b.sumPilotSample(ctx, rows, min(minNeighbors<<doublings, b.n-rows))
	if err != nil {
		return err
	}

	if b.k = requestedNeighbors; b.options.Neighbors == 0 {
		doublings = 0
		for doublings < maxDoublings && s.logVariances[doublings+1]-s.logVariances[doublings+2] > minDecrease {
			doublings++
		}
		b.k = min(minNeighbors<<doublings, b.n-1)
	}
	if b.damping = b.options.Damping; b.damping == 0 {
		b.damping = 1
		if s.totalSquares > 0 {
			b.damping = min(1, max(minDamping, math.Pow(s.neighborSquares[doublings]/s.totalSquares, 3)))
		}
	}
	return nil
}

// sumPilotSample returns sums over the last rows points of π, with at most k neighbors for each, chosen among the
// points before the sample. The elements of logVariances are means over the rows.
func (b *builder) sumPilotSample(ctx context.Context, rows, k int) (s pilotSums, err error) {
	sums := make([]pilotSums, rows)
	workers := make([]worker, accel.Threads())
	for lo := 0; lo < rows; lo += pilotBlock {
		idx := make([]int, 0, pilotBlock)
		for _, i := range b.rowsInOrder[b.n-rows+lo : min(b.n-rows+lo+pilotBlock, b.n)] {
			idx = append(idx, b.pointOf[i])
		}
		columns := mat.NewDense(b.n, len(idx), nil)
		if err := b.exact.Columns(ctx, idx, columns); err != nil {
			return s, err
		}
		err := accel.ForEach(ctx, len(idx), func(workerID, c int) {
			point := pilotPoint{idx[c], columns.ColView(c)}
			b.addPilotPoint(&workers[workerID], &sums[lo+c], point, b.rowsInOrder[:b.n-rows], k)
		})
		if err != nil {
			return s, err
		}
	}
	for _, terms := range sums {
		for a := range terms.logVariances {
			s.logVariances[a] += terms.logVariances[a] / float64(rows)
		}
		for a := range terms.neighborSquares {
			s.neighborSquares[a] += terms.neighborSquares[a]
		}
		s.totalSquares += terms.totalSquares
	}
	return s, nil
}

// pilotPoint is a point of the pilot sample and its column of K.
type pilotPoint struct {
	index  int
	column mat.Vector
}

// addPilotPoint adds the terms of one point to s. Its neighbors are the k nearest of the candidates, which are given as
// rows of G.
func (b *builder) addPilotPoint(w *worker, s *pilotSums, point pilotPoint, candidates []int32, k int) {
	i := point.index
	squares := buffer.Grow(&w.scores, b.n) // c_ij² of all points j
	for j, inner := range b.innerProducts(w, i, b.n, b.f) {
		residual := point.column.AtVec(j) - inner
		squares[j] = residual * residual / (b.shiftedDiag[i] * b.shiftedDiag[j])
	}
	var neighbors []int // the k nearest points so far, in order
	compare := func(x, y int) int { return cmp.Or(cmp.Compare(squares[y], squares[x]), x-y) }
	threshold := 0.0 // c_ij² of the last neighbor, or 0 while there are fewer than k
	for _, row := range candidates {
		j := b.pointOf[row]
		s.totalSquares += squares[j]
		if squares[j] < threshold {
			continue
		}
		position, _ := slices.BinarySearchFunc(neighbors, j, compare)
		if position == k {
			continue
		}
		neighbors = slices.Insert(neighbors, position, j)[:min(len(neighbors)+1, k)]
		if len(neighbors) == k {
			threshold = squares[neighbors[k-1]]
		}
	}
	for position, j := range neighbors {
		for doublings := range s.neighborSquares {
			if position < minNeighbors<<doublings {
				s.neighborSquares[doublings] += squares[j]
			}
		}
	}
	b.setLogVariances(w, s, append(neighbors, i))
}

// setLogVariances sets s.logVariances for a pilot point. idx has the k nearest neighbors of the point, the nearest
// first, and then the point. The last column u of the upper Cholesky factor of (R+λI)(idx, idx) gives all conditional
// variances: given the first m neighbors, the variance of the point is u_{m+1}² + … + u_{k+1}².
func (b *builder) setLogVariances(w *worker, s *pilotSums, idx []int) {
	order := len(idx)
	factor, rowStride := b.localMatrix(w, idx)
	if !w.cholesky(order) { // not positive definite: computeG finds and reports such a matrix
		return
	}
	lastColumn := factor[order-1:]
	variance := math.Pow(lastColumn[(order-1)*rowStride], 2)
	count := order - 1
	for element := len(s.logVariances) - 1; element >= 0; element-- {
		limit := 0
		if element > 0 {
			limit = min(minNeighbors<<(element-1), order-1)
		}
		for ; count > limit; count-- {
			variance += math.Pow(lastColumn[(count-1)*rowStride], 2)
		}
		s.logVariances[element] = math.Log(variance)
	}
}
