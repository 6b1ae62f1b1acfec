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

// Vecchia is M = FFᵀ+V: F, of rank S, by randomly pivoted Cholesky, and V⁻¹ = GᵀG a sparse approximate inverse of what
// F leaves, ω(K−FFᵀ)+λI, on the neighbors of each point (package vecchia). It is for narrow kernels, of whose K no
// features or landmarks capture much.
type Vecchia struct {
	S int `flag:"features" symbol:"s" check:">=0"` // rank of F, 0 ≤ s ≤ n; default: 0, no F
	// Neighbors are entries k in a row of G beside the diagonal, negative: none; default: by a rule, 15 to 120
	// (vecchia.Options).
	Neighbors int     `flag:"neighbors" symbol:"k" check:">=-1" zero:"-1"`
	Damping   float64 `flag:"damping" symbol:"ω" check:"(0,1]"` // ω in (0, 1]; default: by a rule
}

// String returns what M consists of.
func (p Vecchia) String() string {
	s := "sparse inverse on neighbors"
	if p.Neighbors != 0 {
		s = fmt.Sprintf("sparse inverse on %d neighbors", max(p.Neighbors, 0))
	}
	if p.S > 0 {
		s += fmt.Sprintf(" beside %d pivots", p.S)
	}
	if p.Damping > 0 {
		s += fmt.Sprintf(", ω = %g", p.Damping)
	}
	return s
}

// Settled implements stage.Settler.
func (p Vecchia) Settled(d stage.Defaults) (stage.Preconditioner, error) {
	if p.S < 0 || p.S > d.N {
		return p, fmt.Errorf("krrlab: Vecchia: %d pivots: want 0 to n = %d", p.S, d.N)
	}
	if !(p.Damping >= 0 && p.Damping <= 1) {
		return p, fmt.Errorf("krrlab: Vecchia: ω = %g: want 0 < ω ≤ 1, or 0 for the rule's", p.Damping)
	}
	return p, nil
}

// MaxBytes implements stage.FromK.
func (p Vecchia) MaxBytes(n int) int64 {
	most := max(0, min(cmp.Or(p.Neighbors, vecchia.MaxRuleNeighbors), n-1))
	return 16*int64(n)*int64(most+1) + 8*int64(n)*int64(p.S)
}

// Make implements stage.Preconditioner. It forms K first.
func (p Vecchia) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	problem := b.Problem()
	if _, err := p.Settled(problem.Defaults()); err != nil {
		return nil, err
	}
	k, err := b.K(ctx, p.MaxBytes(problem.N))
	if err != nil {
		return nil, err
	}
	return b.Cached(p, func() (pcg.Preconditioner, error) {
		var f *points.Dense32
		if p.S > 0 {
			z, err := b.Z(ctx, stage.Approximation{Source: pivots{}, S: p.S})
			if err != nil {
				return nil, err
			}
			f = z.Z
		}
		m, err := vecchia.New(ctx, k.Matrix, f, &vecchia.Options{Neighbors: p.Neighbors, Damping: p.Damping,
			Seed: rng.New(problem.Seed).Sub("vecchia", 0), Comm: problem.Comm})
		if err != nil {
			return nil, err
		}
		n, r := float64(problem.N), float64(m.Rank())
		return sparseInverse{m, n * r * (2*float64(problem.D) + r)}, nil
	})
}

// sparseInverse is an M that knows the flops of its pivots.
type sparseInverse struct {
	*vecchia.Inverse
	pivots float64
}

// Flops returns those of making M, its pivots among them, and of M⁻¹ times a vector.
func (m sparseInverse) Flops() (build, apply float64) {
	build, apply = m.Inverse.Flops()
	return build + m.pivots, apply
}

// What a sparse inverse takes in units of the rates, as measured on two cores (docs/benchmarks.md).
const (
	sparseValues = 1.7   // exponentials for an entry in M⁻¹R,
	sparseColumn = 1.6   // and for each column
	scanValues   = 40    // exponentials for an entry that is taken for a neighbor on the way, beside reading K
	amongSlow    = 2     // K and F among neighbors, k²(d+r) flops
	rowSlow      = 5.4   // Cholesky factors of these, k³
	rowFactor    = 60    // a row of H, kr
	rowFlops     = 2.5e6 // and each row of a sparse inverse
	gatherBytes  = 8     // an entry of F that a row looks up, of its neighbors and those they are chosen from
	wider        = 3     // times as many neighbors are found beside a factor as are taken

	nearest, nearer  = 15, 1.5 // neighbors that the rule takes at least, and for each of the sum of a row,
	mostNear         = 90      // at most
	unknownNeighbors = 30      // where that sum is not known

	sparseSteps          = 1.1      // iterations, times (1+k(x,x)/λ)^⅛ and √(1 + sum of a row)
	bothSteps, bothPower = 4.2, 0.6 // of the nearest ones beside half of the pivots, times this power of pivots'
)

// neighbors returns the number of neighbors, a guess where the rule of package vecchia finds it.
func (p Vecchia) neighbors(m *cost.Model) int {
	guess := unknownNeighbors
	if m.MeanRowSum > 0 {
		guess = int(min(max(nearest, nearer*m.MeanRowSum), mostNear))
	}
	return max(min(cmp.Or(p.Neighbors, guess), m.N-1), 0)
}

// Cost implements cost.Preconditioner. Of k neighbors beside s pivots, k' = k, 3k beside pivots, it takes
// product + 40nk'(1+ln(n/k'))/E + n(2k²(d+s) + 5.4k³ + 60ks + 2.5·10⁶)/G₆₄ + 8ns(k+k')/B, and 128n(ε_exact + 2s/G₆₄) for
// its rule.
func (p Vecchia) Cost(m *cost.Model, storage gram.Storage) cost.Parts {
	parts := lowRankCost(m, p.S, 0, precond.FormLInv, false)
	pivotCost(m, p.S, &parts)
	neighbors := p.neighbors(m)
	n, s, k, own := float64(m.N), float64(p.S), float64(neighbors), m.OwnRows()
	parts.Neighbors = neighbors
	count := k
	if s > 0 {
		count *= wider
	}
	// in random order n·count·(1+ln(n/count)) entries are among the count largest so far of their rows
	parts.Factor += m.ProductSeconds(storage) + vecchia.RuleRows*n*(m.ExactEntrySeconds+2*s/m.Gemm64) +
		n*count*(1+math.Log(max(1, n/max(1, count))))*scanValues/m.Exp +
		own*(amongSlow*k*k*(float64(m.D)+s)+rowSlow*k*k*k+rowFactor*k*s+rowFlops)/m.Gemm64 +
		own*(k+count)*s*gatherBytes/m.Read
	parts.Apply += n * (k + 1) * m.LoopSeconds(sparseValues, sparseColumn)
	// 4ns: F of other ranks; 24nk: the lists that neighbors are chosen of
	others := 4*int64(p.S)*(int64(m.N)-mostRows(m)) + 24*int64(m.N)*int64(neighbors)
	parts.Bytes.Columns = m.KernelBytes(storage) + max(parts.Bytes.Columns, others)
	parts.Bytes.Features = 2*parts.Bytes.Features + 16*int64(m.N)*int64(neighbors)
	if m.Ranks < 2 {
		return parts
	}
	// all of F, columns for its rule, the neighbors that each rank found, and rows of G
	r, to := m.Group(), &parts.Traffic.Factor
	to.Add(r.Reduce(vecchia.RuleRows*n), 1)
	to.Add(r.Broadcast(4*n*s, 4*r.OwnRows*s), 1)
	count = min(count, n-1)
	to.Add(cost.Traffic{Bytes: int64(8 * n * count), Wire: 8 * n * count * (r.P - 1) / r.P, Steps: r.P}, 1)
	to.Add(r.Broadcast(4*n*(k+1), 4*r.OwnRows*(k+1)), 2)
	return parts
}

// Iterations implements cost.IterationPredictor.
func (p Vecchia) Iterations(o *cost.Outlook) float64 {
	if p.S > 0 {
		return bothSteps * math.Pow(o.PivotIterations(), bothPower)
	}
	return sparseSteps * math.Pow(1+o.MaxDiagonal/o.Lambda, 0.125) * math.Sqrt(1+o.MeanRowSum)
}

// Propose implements cost.Proposer: the neighbors by the rule, and the nearest ones beside half of the pivots. There is
// no λ_p to ask for, and no distance between points of a K that is given.
func (Vecchia) Propose(o *cost.Outlook) (list []stage.Preconditioner) {
	if o.LambdaP > 0 || kernel.AsPrecomputed(o.Kernel) != nil {
		return nil
	}
	if o.S == 0 {
		list = append(list, Vecchia{})
	}
	return append(list, Vecchia{S: cmp.Or(o.S, (o.Rank()+1)/2), Neighbors: min(nearest, o.N-1)})
}

func init() {
	stage.BuiltIn(stage.Kind{Name: "vecchia", Zero: Vecchia{}, Label: "sparse inverse",
		Variants: []string{"neighbors=10", "neighbors=30", "neighbors=30 features=0", "neighbors=100 features=0"},
		Slow:     "more neighbors, such as --precond 'vecchia neighbors=60', or pivots (--features)"})
}
