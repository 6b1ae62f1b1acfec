package pencil_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// powers is a diagonal matrix with the entries apply(1), …, apply(n). Its SolveTo and MulTo both multiply by it.
type powers struct {
	n     int
	apply func(i int) float64
}

func (m powers) Dim() int { return m.n }

func (m powers) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return m.apply(i+1) * v }, r)
	return nil
}

func (m powers) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return m.SolveTo(ctx, dst, src)
}

// Example compares A = diag(1, …, 100) without a preconditioner and with M = A. The type of M has no method to draw
// random vectors of covariance M, so its κ is bounded from below only.
func Example() {
	const n = 100
	ctx := context.Background()
	none, exact := pencil.NewRow("none"), pencil.NewRow("diagonal")
	set := &pencil.Set{A: powers{n, func(i int) float64 { return float64(i) }}, Rows: []*pencil.Row{&none, &exact},
		M: pencil.NewPreconditioners(n, comm.Alone(), nil, powers{n,
			func(i int) float64 { return 1 / float64(i) }}),
		Notify: func(context.Context, stage.Event) {}}
	b := mat.NewDense(n, 1, nil)
	rng.New(1).Normals(b.RawMatrix().Data, 0)
	if err := set.Solve(ctx, b, pcg.Options{Tol: 1e-6}); err != nil {
		panic(err)
	}
	if err := set.Lanczos(ctx, lanczos.Options{Start: rng.New(2)}, 1e-6); err != nil {
		panic(err)
	}
	for _, row := range set.Rows {
		fmt.Printf("%s: fewer than 10 iterations: %v, κ known from above: %v\n", row.Name, *row.Iterations < 10,
			row.Kappa.Hi < 120)
	}
	// Output:
	// none: fewer than 10 iterations: false, κ known from above: true
	// diagonal: fewer than 10 iterations: true, κ known from above: false
}
