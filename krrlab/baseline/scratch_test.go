package baseline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

func TestScratch(t *testing.T) {
	lib, err := accel.OpenBLAS()
	if err != nil { t.Skip() }
	accel.Use(lib)
	const n, s = 16000, 2000
	x := points.NewDense32(n, 20, nil)
	for i := range x.Data { x.Data[i] = float32(rng.New(1).Normal(uint64(i))) }
	m, _ := feature.Fourier{Kernel: kernel.Gaussian{Sigma: 7}}.Sample(20, s, rng.New(2))
	for _, tc := range []int{1, 4, 10} {
		y := mat.NewDense(n, tc, nil)
		for i := range n { for j := range tc { y.Set(i, j, float64(1-2*((i*7+j*13)%2))) } }
		for _, blocks := range [][2]int{{1,1},{2,4}} {
		a, err := NewADMM(context.Background(), m, x, 1, y, Square, &ADMMOptions{RowBlocks: blocks[0], FeatureBlocks: blocks[1]})
		if err != nil { t.Fatal(err) }
		panels := []int{24,48,64, 96, 128, 192, 256}
		var best [10]least
		for rep := 0; rep < 15; rep++ {
			for k, p := range panels {
				a.panel = p
				st := a.start(0.5)
				for i := 0; i < 3; i++ {
				c := time.Now()
				st.iterate(context.Background())
				best[k].add(time.Since(c).Seconds()*1e3)
				}
			}
		}
		fmt.Println(tc, blocks, panels, best[:len(panels)])
	}}
	fmt.Println("read", accel.ReadBandwidth(context.Background(), 2)/1e9, "dgemm", accel.GemmRate64(context.Background(), 1500)/1e9)
}
type least float64
func (l *least) add(v float64) { if *l == 0 || v < float64(*l) { *l = least(v) } }
