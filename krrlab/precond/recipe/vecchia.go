package recipe

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/vecchia"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Vecchia is M = FFᵀ+V. F, of rank S, is computed by randomly pivoted Cholesky. V⁻¹ = GᵀG is a sparse approximate
// inverse of ω(K−FFᵀ)+λI on the neighbors of each point (package vecchia). Vecchia is for narrow kernels, for which
// features or landmarks capture little of K.
type Vecchia struct {
	S int `flag:"features" symbol:"s" check:">=0"` // rank of F, 0 ≤ s ≤ n; default: 0, no F
	// Neighbors is the number k of off-diagonal entries in a row of G; −1 means none. Default: a rule
	// chooses 15 to 120 (vecchia.Options).
	Neighbors int     `flag:"neighbors" symbol:"k" check:">=-1" zero:"-1"`
	Damping   float64 `flag:"damping" symbol:"ω" check:"(0,1]"` // ω in (0, 1]; default: chosen by a rule
}

// String describes M in a few words.
func (v Vecchia) String() string {
	text := "sparse inverse on neighbors"
	if v.Neighbors != 0 {
		text = fmt.Sprintf("sparse inverse on %d neighbors", max(v.Neighbors, 0))
	}
	if v.S > 0 {
		text += fmt.Sprintf(" beside %d pivots", v.S)
	}
	if v.Damping > 0 {
		text += fmt.Sprintf(", ω = %g", v.Damping)
	}
	return text
}

// WithDefaults implements stage.Defaulter. It checks S; there are no defaults to set.
func (v Vecchia) WithDefaults(defaults stage.Defaults) (stage.Preconditioner, error) {
	if v.S > defaults.N {
		return v, fmt.Errorf("krrlab: Vecchia: %d pivots: want 0 to n = %d", v.S, defaults.N)
	}
	return v, nil
}

// MaxBytes implements stage.KernelPreconditioner. It counts the sparse matrices G and Gᵀ, F, and H = GF.
func (v Vecchia) MaxBytes(n int) int64 {
	neighbors := max(0, min(cmp.Or(v.Neighbors, vecchia.MaxAutoNeighbors), n-1))
	return 16*int64(n)*int64(neighbors+1) + 8*int64(n)*int64(v.S)
}

// Make implements stage.Preconditioner. It forms K first.
func (v Vecchia) Make(ctx context.Context, bench stage.Bench) (pcg.Preconditioner, error) {
	problem := bench.Problem()
	if _, err := v.WithDefaults(problem.Defaults()); err != nil {
		return nil, err
	}
	k, err := bench.K(ctx, v.MaxBytes(problem.N))
	if err != nil {
		return nil, err
	}
	return bench.Cached(v, func() (pcg.Preconditioner, error) {
		f, err := v.pivots(ctx, bench)
		if err != nil {
			return nil, err
		}
		m, err := vecchia.New(ctx, k.Matrix, f, &vecchia.Options{Neighbors: v.Neighbors, Damping: v.Damping,
			Seed: rng.New(problem.Seed).Sub("vecchia", 0), Comm: problem.Comm})
		if err != nil {
			return nil, err
		}
		n, r := float64(problem.N), float64(m.Rank())
		return inverseWithPivots{m, n * r * (2*float64(problem.D) + r)}, nil
	})
}

// Extend implements stage.ExtensiblePreconditioner. F is extended as well.
func (v Vecchia) Extend(ctx context.Context, bench stage.Bench, m pcg.Preconditioner) (pcg.Preconditioner, error) {
	old, ok := m.(inverseWithPivots)
	if !ok {
		return nil, fmt.Errorf("%T is not the sparse inverse of %v", m, v)
	}
	k, err := bench.K(ctx, v.MaxBytes(bench.Problem().N))
	if err != nil {
		return nil, err
	}
	f, err := v.pivots(ctx, bench)
	if err != nil {
		return nil, err
	}
	inverse, err := old.Inverse.Extend(ctx, k.Matrix, f)
	return inverseWithPivots{inverse, old.pivotFlops * float64(k.Dim()) / float64(m.Dim())}, err
}

// Factor implements stage.FactorPreconditioner.
func (v Vecchia) Factor() *stage.Approximation {
	if v.S == 0 {
		return nil
	}
	return &stage.Approximation{FeatureSource: pivotSource{}, S: v.S}
}

// pivots returns F, or nil without pivots.
func (v Vecchia) pivots(ctx context.Context, bench stage.Bench) (*points.Dense32, error) {
	approx := v.Factor()
	if approx == nil {
		return nil, nil
	}
	factor, err := bench.Z(ctx, *approx)
	if err != nil {
		return nil, err
	}
	return factor.Z, nil
}

// inverseWithPivots adds the flops of the factor F to those that vecchia.Inverse reports.
type inverseWithPivots struct {
	*vecchia.Inverse
	pivotFlops float64
}

// Flops returns the flops of computing M, including F, and of a product of M⁻¹ with a vector.
func (m inverseWithPivots) Flops() (build, apply float64) {
	build, apply = m.Inverse.Flops()
	return build + m.pivotFlops, apply
}

// Costs of a sparse inverse in units of the rates of cost.Model, as measured on two cores (docs/benchmarks.md). An
// operation is counted in flops at the rate of a float64 matrix product. Larger values predict more seconds.
const (
	applyEntryExps   = 1.7 // seconds per entry of G in M⁻¹R, in exponentials
	applyColumnExps  = 1.6 // additional seconds per entry of G and column of R, in exponentials
	candidateExps    = 40  // seconds for each insertion into a list of candidates, in exponentials
	localMatrixFlops = 2.8 // K and F among neighbors, per k²(d+r)
	localPointExps   = 4.7 // copying a coordinate of a neighbor for K among neighbors, in exponentials
	localFactorFlops = 5.4 // Cholesky factor of the local matrix, per k³
	factorRowFlops   = 160 // a row of H, per k·r
	rowFlops         = 6e5 // overhead of each row of G
	ruleBytes        = 12  // bytes read per entry of F for each pilot point of the rule
	gatherBytes      = 8   // bytes read per entry of F, for rows of F at neighbors and at candidates
	candidateFactor  = 3   // with a factor F, candidates per neighbor, as in package vecchia
	minNeighbors     = 15  // smallest number of neighbors that the rule of package vecchia chooses
	rowSumNeighbors  = 1.5 // guessed number of neighbors, in units of the mean sum of |k| over a row of K
	maxGuess         = 90  // upper limit of this guess
	defaultGuess     = 30  // guess if the mean row sum is unknown
	sparseIterations = 1.1 // iterations without F, in units of (1+k(x,x)/λ)^⅛·√(1 + mean row sum)

	// These predict the iterations with F and the fewest neighbors. Let p be the prediction with twice the pivots and
	// no neighbors, and ρ the mean row sum. Neighbors save iterations in a narrow kernel, where the prediction is
	// p·((1+ρ)/narrowRowSum)^narrowExponent. They replace the other half of the pivots up to a row sum of wideRowSum,
	// and only a part of them in a wider kernel, where the prediction is p·((1+ρ)/wideRowSum)^wideExponent. A larger
	// narrowRowSum, wideRowSum or narrowExponent predicts fewer iterations, a larger wideExponent more. Those of narrow
	// kernels were fitted by TestRefit of package experiments/testbed, and those of wide ones to MNIST with 5,000 to
	// 60,000 points (row sums up to 30,000), ADULT and IJCNN1 with 5,000 and 20,000.
	narrowRowSum, narrowExponent = 500, 0.6
	wideRowSum, wideExponent     = 2500, 1. / 6
)

// neighbors returns the number of neighbors, or an estimate of the number that the rule of package vecchia will choose.
func (v Vecchia) neighbors(m *cost.Model) int {
	guess := defaultGuess
	if m.MeanRowSum > 0 {
		guess = int(min(max(minNeighbors, rowSumNeighbors*m.MeanRowSum), maxGuess))
	}
	return max(min(cmp.Or(v.Neighbors, guess), m.N-1), 0)
}

// Cost implements cost.Preconditioner. In addition to F and its products, a sparse inverse with k neighbors and k'
// candidates, k' = k or with pivots k' = 3k, takes
//
//	product + 40nk'(1+ln(n/k'))/E + n(2.8k²(d+s) + 5.4k³ + 160ks + 6·10⁵)/G₆₄ + 8ns(k+k')/B
//
// and 4.7nkd/E seconds, and the rule for its parameters 128n(ε_exact + 12s/B). W is formed in float64, which adds
// 1.7ns²(1/G₆₄ − 1/G₃₂).
func (v Vecchia) Cost(m *cost.Model, storage gram.Storage) cost.PrecondCost {
	predicted := lowRankCost(m, v.S, 0, precond.FormLInv)
	addPivotCost(m, v.S, &predicted)
	neighbors := v.neighbors(m)
	n, s, k, ownRows := float64(m.N), float64(v.S), float64(neighbors), m.OwnRows()
	predicted.Neighbors = neighbors
	candidates := k
	if s > 0 {
		candidates *= candidateFactor
	}
	// A row inserts an entry into its list if it is among the largest so far. In random order, n rows insert about
	// n·candidates·(1+ln(n/candidates)) entries.
	insertions := n * candidates * (1 + math.Log(max(1, n/max(1, candidates))))
	d := float64(m.D)
	predicted.Factor += m.ProductSeconds(storage) + vecchia.PilotSize*n*(m.ExactEntrySeconds+ruleBytes*s/m.Read) +
		insertions*candidateExps/m.Exp +
		ownRows*(localMatrixFlops*k*k*(d+s)+localFactorFlops*k*k*k+factorRowFlops*k*s+rowFlops)/m.Gemm64 +
		ownRows*k*d*localPointExps/m.Exp + ownRows*(k+candidates)*s*gatherBytes/m.Read +
		ownRows*s*s*gramSlowdown*(1/m.Gemm64-1/m.Gemm32) // the inner products of H are in float64
	predicted.Apply += n * (k + 1) * m.LoopSeconds(applyEntryExps, applyColumnExps)
	// During construction, rows of F of the other ranks take 4ns bytes, and lists of candidates 24nk bytes.
	construction := 4*int64(v.S)*(int64(m.N)-maxOwnRows(m)) + 24*int64(m.N)*int64(neighbors)
	predicted.Bytes.Columns = m.KernelBytes(storage) + max(predicted.Bytes.Columns, construction)
	predicted.Bytes.Features = 2*predicted.Bytes.Features + 16*int64(m.N)*int64(neighbors)
	if m.Ranks < 2 {
		return predicted
	}
	// The ranks exchange columns of K for the rule, all of F, the candidates that each rank found, and rows of G.
	group, traffic := m.Group(), &predicted.Traffic.Factor
	traffic.Add(group.Reduce(vecchia.PilotSize*n), 1)
	traffic.Add(group.Broadcast(4*n*s, 4*group.OwnRows*s), 1)
	candidates = min(candidates, n-1)
	traffic.Add(cost.Traffic{Bytes: int64(8 * n * candidates), Wire: 8 * n * candidates * (group.P - 1) / group.P,
		Steps: group.P}, 1)
	traffic.Add(group.Broadcast(4*n*(k+1), 4*group.OwnRows*(k+1)), 2)
	return predicted
}

// Iterations implements cost.IterationPredictor.
func (v Vecchia) Iterations(model *cost.IterationModel) float64 {
	if v.S > 0 {
		return model.PivotIterations(2*v.S) * min(1, math.Pow((1+model.MeanRowSum)/narrowRowSum, narrowExponent)) *
			max(1, math.Pow((1+model.MeanRowSum)/wideRowSum, wideExponent))
	}
	return sparseIterations * math.Pow(1+model.MaxDiagonal/model.Lambda, 0.125) * math.Sqrt(1+model.MeanRowSum)
}

// Propose implements cost.Proposer. It proposes neighbors by the rule without pivots, and the smallest number of
// neighbors with half the default number of pivots. It proposes nothing if the caller has fixed λ_p, which Vecchia does
// not have, or if the kernel matrix is precomputed, because there are no distances between points.
func (Vecchia) Propose(model *cost.IterationModel) (list []stage.Preconditioner) {
	if model.LambdaP > 0 || kernel.AsPrecomputed(model.Kernel) != nil {
		return nil
	}
	if model.S == 0 {
		list = append(list, Vecchia{})
	}
	return append(list, Vecchia{S: cmp.Or(model.S, (model.Rank()+1)/2), Neighbors: min(minNeighbors, model.N-1)})
}

func init() {
	stage.RegisterBuiltIn(stage.Kind{Name: "vecchia", Zero: Vecchia{}, Label: "sparse inverse",
		Variants:     []string{"neighbors=10", "neighbors=30", "neighbors=30 features=0", "neighbors=100 features=0"},
		AdviceIfSlow: "more neighbors, such as --precond 'vecchia neighbors=60', or pivots (features=500)"})
}
