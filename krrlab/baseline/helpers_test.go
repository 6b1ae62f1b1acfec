package baseline_test

import (
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
)

func draw(seed uint64, n, d int) *points.Dense {
	return points.NewDense(n, d, testkit.Normals(seed, 5, n*d))
}

func targets(seed uint64, n, t int) *mat.Dense {
	return mat.NewDense(n, t, testkit.Normals(seed, 6, n*t))
}
