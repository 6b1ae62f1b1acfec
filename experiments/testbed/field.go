package testbed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// externalNames are the preconditioners of other programs that the testbed runs too, in the notation of
// Preconditioners.
var externalNames = []string{"field.greedy rank=15 alone", "field.greedy rank=100 alone", "field.blocks alone",
	"field.afn", "field.sketched"}

// registerExternal registers the kinds of externalNames. They are not part of the library, and other comparisons do not
// try them.
var registerExternal = sync.OnceValue(func() error {
	for _, k := range []stage.Kind{
		{Name: "field.greedy", Zero: greedy{}, Title: "greedy pivoted Cholesky"},
		{Name: "field.blocks", Zero: blocks{}, Title: "block Jacobi on clusters"},
		{Name: "field.afn", Zero: factorized{}, Title: "factorized Nyström"},
		{Name: "field.sketched", Zero: sketched{}, Title: "sketched Nyström"},
	} {
		if err := stage.RegisterPreconditioner(k); err != nil {
			return err
		}
	}
	return nil
})

// greedy is M = FFᵀ+λI, where F is the pivoted Cholesky factor of K whose next pivot has the largest remaining diagonal
// entry (H. Harbrecht, M. Peters, R. Schneider, Appl. Numer. Math. 62, 2012). GPyTorch uses rank 15, TensorFlow
// Probability rank 100.
type greedy struct {
	Rank    int `flag:"rank" default:"15" check:">=1"`
	lambdaP float64
}

func (p greedy) String() string { return fmt.Sprintf("greedy pivots, rank %d", p.Rank) }

// WithDefaults implements stage.Defaulter.
func (p greedy) WithDefaults(d stage.Defaults) (stage.Preconditioner, error) {
	p.lambdaP = d.Lambda
	return p, nil
}

// Approximation implements stage.LowRank.
func (p greedy) Approximation(kernel.Kernel) *stage.Approximation {
	return &stage.Approximation{FeatureSource: p, S: p.Rank, LambdaP: p.lambdaP}
}

// Make implements stage.Preconditioner.
func (p greedy) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	p.lambdaP = b.Problem().Lambda
	return p.Approximation(nil).Inverse(ctx, b)
}

// Draw implements stage.FeatureSource. If no diagonal entry is left, the other columns of F are zero.
func (p greedy) Draw(ctx context.Context, b stage.Bench, s int) (*stage.FeatureMatrix, error) {
	problem := newEntries(b)
	f, diag := mat.NewDense(problem.n, s, nil), make([]float64, problem.n)
	for i := range diag {
		diag[i] = problem.k(i, i)
	}
	smallest := 1e-14 * slices.Max(diag) // smaller diagonal entries are rounding errors
	for rank := range s {
		pivot := floats.MaxIdx(diag)
		root := math.Sqrt(diag[pivot])
		if diag[pivot] <= smallest {
			break
		}
		column := make([]float64, problem.n)
		if err := accel.ForEach(ctx, problem.n, func(_, i int) {
			column[i] = (problem.k(i, pivot) - floats.Dot(f.RawRowView(i)[:rank], f.RawRowView(pivot)[:rank])) / root
			diag[i] -= column[i] * column[i]
		}); err != nil {
			return nil, err
		}
		f.SetCol(rank, column)
	}
	return &stage.FeatureMatrix{Z: toFloat32(f)}, nil
}

// toFloat32 returns a matrix rounded to float32.
func toFloat32(f *mat.Dense) *points.Dense32 {
	n, s := f.Dims()
	z := points.NewDense32(n, s, nil)
	for i, v := range f.RawMatrix().Data {
		z.Data[i] = float32(v)
	}
	return z
}

// blocks is block Jacobi: M has the blocks of K+λI of the leaves of a tree of points.
type blocks struct {
	Size int `flag:"size" default:"100" check:">=1"` // largest number of points of a leaf
}

func (p blocks) String() string { return fmt.Sprintf("block Jacobi, blocks of %d", p.Size) }

// Make implements stage.Preconditioner. It returns a factorized inverse without landmarks: if row i of G has the
// earlier points of a leaf, GᵀG is the inverse of the block.
func (p blocks) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	clusters, err := tree.New(ctx, b.Problem().X, p.Size)
	if err != nil {
		return nil, err
	}
	leafStart := make([]int, len(clusters.Order)) // for each position in the tree order, the first position of its leaf
	for leaf := range clusters.LeafCount() {
		for i := clusters.Start[leaf]; i < clusters.Start[leaf+1]; i++ {
			leafStart[i] = clusters.Start[leaf]
		}
	}
	return newFactorized(ctx, newEntries(b), clusters.Order, 0, func(i int) (columns []int) {
		for j := leafStart[i]; j < i; j++ {
			columns = append(columns, j)
		}
		return columns
	})
}

// factorized is the factorized Nyström preconditioner of AFN (S. Zhao, T. Xu, H. Huang, E. Chow, Y. Xi,
// arXiv:2304.05460) without its choice of a rank: with s landmarks by farthest point sampling, K₁₁+λI = LLᵀ and
// B = K₂₁L⁻ᵀ,
//
//	M = (L 0; B G⁻¹)(Lᵀ Bᵀ; 0 G⁻ᵀ),
//
// where GᵀG ≈ (K₂₂+λI−BBᵀ)⁻¹ is a factorized sparse approximate inverse: row i of G has the nearest earlier points.
type factorized struct {
	Landmarks int `flag:"features" check:">=1"`
	Neighbors int `flag:"neighbors" default:"20" check:">=1"`
}

func (p factorized) String() string {
	return fmt.Sprintf("factorized Nyström, %d landmarks, %d neighbors", p.Landmarks, p.Neighbors)
}

// Make implements stage.Preconditioner.
func (p factorized) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	e := newEntries(b)
	s := min(p.Landmarks, e.n-1)
	order := e.farthestFirst(s)
	return newFactorized(ctx, e, order, s, func(i int) []int { return e.neighbors(order[s:], i, p.Neighbors) })
}

// newFactorized returns M for an order of the points, of which the first s are landmarks. neighbors returns the
// positions, among the other points, of the off-diagonal columns of row i of G.
func newFactorized(ctx context.Context, e *entries, order []int, s int, neighbors func(i int) []int) (*inverse, error) {
	m := &inverse{order: order, s: s, rows: make([]sparseRow, e.n-s), b: make([][]float64, e.n-s)}
	landmarks, remaining := order[:s], order[s:]
	if s > 0 {
		var factor mat.Cholesky
		if !factor.Factorize(mat.NewSymDense(s, e.block(landmarks, landmarks))) {
			return nil, fmt.Errorf("K+λI of %d landmarks is not positive definite", s)
		}
		factor.LTo(&m.l)
	}
	indefinite := make([]bool, len(remaining))
	err := accel.ForEach(ctx, len(remaining), func(_, i int) {
		if m.b[i] = e.block(remaining[i:i+1], landmarks); s > 0 {
			blas64.Trsv(blas.NoTrans, m.l.RawTriangular(), blas64.Vector{N: s, Inc: 1, Data: m.b[i]})
		}
	})
	if err != nil {
		return nil, err
	}
	err = accel.ForEach(ctx, len(remaining), func(_, i int) {
		columns := append(neighbors(i), i)
		size := len(columns)
		schur, row := mat.NewSymDense(size, nil), mat.NewVecDense(size, nil) // row starts as the last unit vector
		for a, rowIndex := range columns {
			for column, columnIndex := range columns[:a+1] {
				shifted := e.shifted(remaining[rowIndex], remaining[columnIndex])
				schur.SetSym(a, column, shifted-floats.Dot(m.b[rowIndex], m.b[columnIndex]))
			}
		}
		var factor mat.Cholesky
		if indefinite[i] = !factor.Factorize(schur); indefinite[i] {
			return
		}
		row.SetVec(size-1, 1)
		_ = factor.SolveVecTo(row, row) // an error only says that the block is badly conditioned
		row.ScaleVec(1/math.Sqrt(row.AtVec(size-1)), row)
		m.rows[i] = sparseRow{columns, row.RawVector().Data}
	})
	if slices.Contains(indefinite, true) {
		return nil, fmt.Errorf("the block of a row of G is not positive definite")
	}
	return m, err
}

// inverse is M⁻¹ of factorized, and of blocks, which has no landmarks.
type inverse struct {
	order []int        // landmarks, then the other points
	s     int          // number of landmarks
	l     mat.TriDense // Cholesky factor L of K₁₁+λI
	b     [][]float64  // rows of B
	rows  []sparseRow  // rows of G
}

// sparseRow is a row of G.
type sparseRow struct {
	columns []int     // positions of the nonzeros among the points that are not landmarks
	values  []float64 // values of the nonzeros
}

// Dim implements pcg.Preconditioner.
func (m *inverse) Dim() int { return len(m.order) }

// Flops returns the flops of forming M, without the search for neighbors, and of a product of M⁻¹ with a vector.
func (m *inverse) Flops() (build, apply float64) {
	n, s := float64(len(m.order)), float64(m.s)
	build, apply = s*s*s/3+n*s*s, 4*n*s+2*s*s
	for _, row := range m.rows {
		width := float64(len(row.columns))
		build += width*width*s + width*width*width/3
		apply += 4 * width
	}
	return build, apply
}

// Bytes returns the memory of M.
func (m *inverse) Bytes() (bytes int64) {
	for i, row := range m.rows {
		bytes += int64(16*len(row.columns) + 8*len(m.b[i]))
	}
	return bytes + int64(8*m.s*m.s)
}

// SolveTo implements pcg.Preconditioner.
func (m *inverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	_, t := r.Dims()
	return accel.ForEach(ctx, t, func(_, column int) {
		x, product := make([]float64, len(m.order)), make([]float64, len(m.rows))
		for i, row := range m.order {
			x[i] = r.At(row, column)
		}
		top, bottom := x[:m.s], x[m.s:]
		solve := func(trans blas.Transpose) {
			if m.s > 0 {
				blas64.Trsv(trans, m.l.RawTriangular(), blas64.Vector{N: m.s, Inc: 1, Data: top})
			}
		}
		solve(blas.NoTrans)
		for i, row := range m.b {
			bottom[i] -= floats.Dot(row, top)
		}
		for i, row := range m.rows {
			for k, j := range row.columns {
				product[i] += row.values[k] * bottom[j]
			}
		}
		clear(bottom)
		for i, row := range m.rows {
			for k, j := range row.columns {
				bottom[j] += row.values[k] * product[i]
			}
		}
		for i, row := range m.b {
			floats.AddScaled(top, -bottom[i], row)
		}
		solve(blas.Trans)
		for i, row := range m.order {
			dst.Set(row, column, x[i])
		}
	})
}

// entries computes entries of K and distances of points.
type entries struct {
	kernel kernel.Kernel // the kernel k
	n      int           // number of points
	lambda float64       // ridge λ
	x      *mat.Dense    // n×d, the points
}

// newEntries copies the points of a problem to float64.
func newEntries(b stage.Bench) *entries {
	p := b.Problem()
	e := &entries{p.Kernel, p.N, p.Lambda, mat.NewDense(p.N, p.D, nil)}
	for i := range e.n {
		p.X.RowTo(e.x.RawRowView(i), i)
	}
	return e
}

// k returns k(x_i, x_j).
func (e *entries) k(i, j int) float64 {
	return e.kernel.Eval(e.x.RawRowView(i), e.x.RawRowView(j))
}

// shifted returns entry ij of K+λI.
func (e *entries) shifted(i, j int) float64 {
	if i == j {
		return e.k(i, j) + e.lambda
	}
	return e.k(i, j)
}

// block returns the entries of K+λI of some rows and columns, by rows.
func (e *entries) block(rows, columns []int) (v []float64) {
	for _, i := range rows {
		for _, j := range columns {
			v = append(v, e.shifted(i, j))
		}
	}
	return v
}

// farthestFirst returns an order of the points: each of the first s points is the farthest from all before, and the
// other points follow in their order.
func (e *entries) farthestFirst(s int) (order []int) {
	distances, chosen := make([]float64, e.n), make([]bool, e.n)
	for i := range distances {
		distances[i] = math.Inf(1)
	}
	for farthest := 0; len(order) < s; farthest = floats.MaxIdx(distances) {
		order, chosen[farthest] = append(order, farthest), true
		for i := range distances {
			distances[i] = min(distances[i], floats.Distance(e.x.RawRowView(i), e.x.RawRowView(farthest), 2))
		}
		distances[farthest] = -1 // remains the smallest
	}
	for i := range e.n {
		if !chosen[i] {
			order = append(order, i)
		}
	}
	return order
}

// neighbors returns the positions before i of at most count points that are nearest to remaining[i], ascending.
func (e *entries) neighbors(remaining []int, i, count int) []int {
	distances, positions := make([]float64, i), make([]int, i)
	for j := range i {
		distances[j] = floats.Distance(e.x.RawRowView(remaining[i]), e.x.RawRowView(remaining[j]), 2)
	}
	floats.ArgsortStable(distances, positions)
	positions = positions[:min(count, i)]
	slices.Sort(positions)
	return positions
}
