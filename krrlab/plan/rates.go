package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Rates are what a machine does in a second, all threads together.
type Rates struct {
	Machine string  `json:"machine"` // what they hold for
	Read    float64 `json:"read"`    // bytes of memory read
	Touch   float64 `json:"touch"`   // bytes of memory written for the first time
	Gemm32  float64 `json:"gemm32"`  // flops of a product of matrices in float32
	Gemm64  float64 `json:"gemm64"`
	Potrf32 float64 `json:"potrf32"` // flops of a Cholesky factorization in float32, n³/3
	Potrf64 float64 `json:"potrf64"`
	Exp     float64 `json:"exp"` // exponentials in float32
	Cos     float64 `json:"cos"`
	// Product and Apply are the seconds that a product with K takes for a byte of K, and M⁻¹R for an
	// entry of Z, with 1, 4 and 12 columns.
	Product [3]float64 `json:"product"`
	Apply   [3]float64 `json:"apply"`
	// Nystrom and RPCholesky are the seconds for an entry of the factor of landmarks, n×s, beside those of columns of K and
	// of flops at the rate of Gemm64, and Gram those for an entry of Z on the way to ZᵀZ, beside flops at the rate of Gemm32.
	Nystrom    float64 `json:"nystrom"`
	RPCholesky float64 `json:"rpcholesky"`
	Gram       float64 `json:"gram"`
	// Scan is the seconds of finding neighbors in K for an entry that is taken for one on the way, beside reading K, Rows
	// the multiply-adds of making rows of a sparse inverse, and Sparse the seconds for an entry of it of M⁻¹R, with 1, 4
	// and 12 columns.
	Scan    float64    `json:"scan"`
	Rows    float64    `json:"rows"`
	Sparse  [3]float64 `json:"sparse"`
	Seconds float64    `json:"seconds"` // that it took to measure them
}

// Reference returns the rates of the two-core machine of docs/benchmarks.md (AVX2, OpenBLAS) when it is idle, but for Nystrom, RPCholesky and
// Gram, which are those of one with AVX-512. Cholesky factorizations are taken to run at 1/1.7 of the rate of products of matrices.
func Reference() Rates {
	return Rates{Machine: "two cores, AVX2, OpenBLAS", Read: 28.1e9, Touch: 2.45e9, Gemm32: 185e9, Gemm64: 86.3e9, Potrf32: 109e9, Potrf64: 51e9, Exp: 2.78e9, Cos: 2.87e9,
		Product: [3]float64{3.76e-11, 4.09e-11, 8.2e-11}, Apply: [3]float64{3.1e-10, 4.5e-10, 7.6e-10}, Nystrom: 1.2e-8, RPCholesky: 1.35e-8, Gram: 4e-9,
		Scan: 3e-8, Rows: 4e9, Sparse: [3]float64{1.5e-9, 4e-9, 1e-8}, Seconds: 1}
}

// rateColumns are the numbers of columns of Product and Apply.
var rateColumns = [3]int{1, 4, 12}

// ratesVersion changes with what is measured, and with the loops that are.
const ratesVersion = 4

// here names what the rates of this process hold for: processor, threads, BLAS, inner loops, version.
func here() string {
	return fmt.Sprintf("%s, %d threads, %v, %v, version %d", accel.CPU().Model, accel.Threads(), accel.InUse(), simd.InUse(), ratesVersion)
}

// measured are the rates that this process measured, on so large a share of the sizes of Measure.
var measured struct {
	sync.Mutex
	Rates
	share float64
}

// RatesFile returns the file in the user's cache that keeps the rates of this machine, "" where there is no folder for it.
func RatesFile() string {
	if dir := datasets.CacheDir(); dir != "" {
		return filepath.Join(dir, "rates.json")
	}
	return ""
}

// few are the points below which rates are not measured for a plan: that takes longer than to solve.
const few = 6000

// ReadRates returns the rates that the file has for this machine, or measures them and writes them there.
// A file that is not there, damaged, of another machine or of a busy one is replaced; where it cannot be written they are
// measured once in a process. It takes some 0.6 s, and half of the memory at most, 0 for no limit: rates of
// so little that loops run on less than on a larger problem are not written.
//
// For a problem of less than 6,000 points nothing is measured but products of matrices: the rates of the file go up as these do, up to four times, and without such a file all those of
// the Reference machine are taken to differ as these do.
func ReadRates(ctx context.Context, name string, memory int64, n int) (Rates, error) {
	var kept Rates
	text, err := os.ReadFile(name)
	known := err == nil && json.Unmarshal(text, &kept) == nil && kept.Machine == here() && kept.sane()
	slow := 1.0
	if known {
		if slow = kept.slow(ctx); slow < 4./3 {
			return kept, nil
		}
		known = slow < 4 // else it was measured of something else
	}
	measured.Lock()
	defer measured.Unlock()
	if n < few {
		switch {
		case measured.Machine == here():
			return measured.Rates, nil
		case known:
			return kept.faster(slow), nil
		}
		return likely(ctx), ctx.Err()
	}
	if share := shareOf(memory); slow > 1 || measured.Machine != here() || measured.share < share {
		r, err := Measure(ctx, memory)
		if err != nil {
			return r, err
		}
		measured.Rates, measured.share = r, share
	}
	if measured.share == 1 {
		measured.Keep(name)
	}
	return measured.Rates, nil
}

// likely returns the rates of the Reference machine, all slower or faster as products of matrices are here: a machine that is slow or busy is so
// for what is weighed against them, too.
func likely(ctx context.Context) Rates {
	narrow, wide := accel.GemmRate32(ctx, quickOrder, 0), accel.GemmRate64(ctx, quickOrder, 0)
	r := Reference().faster(narrow / Reference().Gemm32)
	r.Machine = here() + ", not measured but for products of matrices"
	r.Potrf64 *= wide / r.Gemm64
	r.Gemm64 = wide
	return r
}

// faster returns the rates of a machine that does all so many times as fast.
func (r Rates) faster(times float64) Rates {
	for _, rate := range []*float64{&r.Read, &r.Touch, &r.Gemm32, &r.Gemm64, &r.Potrf32, &r.Potrf64, &r.Exp, &r.Cos, &r.Rows} {
		*rate *= times
	}
	for _, seconds := range []*float64{&r.Nystrom, &r.RPCholesky, &r.Gram, &r.Scan} {
		*seconds /= times
	}
	for i := range rateColumns {
		for _, v := range []*[3]float64{&r.Product, &r.Apply, &r.Sparse} {
			v[i] /= times
		}
	}
	return r
}

// Keep writes the rates to the file that ReadRates reads, if there is a name.
func (r Rates) Keep(name string) {
	if name == "" {
		return
	}
	if text, err := json.MarshalIndent(r, "", "  "); err == nil && os.MkdirAll(filepath.Dir(name), 0o755) == nil {
		_ = atomicfile.Write(name, func(w io.Writer) error { // a cache that cannot be written costs time only
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
}

// Doubt removes the file of rates where an iteration took less than two thirds of the seconds predicted or more than
// one and a half times as many, in a solve that took a second or more: the machine was busy when they were
// measured, or is now. The next plan measures them again.
func Doubt(name string, predicted, took, solve float64) {
	if solve >= 1 && !(took > predicted*2/3 && took < predicted*3/2) {
		_ = os.Remove(name) // a cache that cannot be changed costs a worse prediction only
	}
}

// quickOrder is that of the products of matrices that tell in some milliseconds how busy the machine is.
const quickOrder = potrfOrder / 2

// slow returns how many times as fast products of matrices are now as the rates say: if much more than 1 the machine was busy when they were measured.
func (r Rates) slow(ctx context.Context) float64 {
	return accel.GemmRate32(ctx, quickOrder, 0) / r.Gemm32
}

// sane reports whether every rate is a positive number.
func (r Rates) sane() bool {
	v := reflect.ValueOf(r)
	ok := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	for i := range v.NumField() {
		switch f := v.Field(i).Interface().(type) {
		case float64:
			if !ok(f) {
				return false
			}
		case [3]float64:
			if !ok(f[0]) || !ok(f[1]) || !ok(f[2]) {
				return false
			}
		}
	}
	return true
}

// whole is the memory from which on the sizes that Measure takes are not reduced: it allocates less than half as much in all.
const whole = 2 << 30

// shareOf returns the share of those sizes that fit into half of the memory.
func shareOf(memory int64) float64 {
	if memory <= 0 {
		return 1
	}
	return min(1, float64(memory)/whole)
}

// Measure measures the rates of this machine in half of the memory at most, 0 for no limit: with less than 2 GiB by
// loops over less.
func Measure(ctx context.Context, memory int64) (Rates, error) {
	start := time.Now()
	r := Rates{Machine: here()}
	for _, part := range []func(context.Context, *Rates, float64) error{memoryRates, flopRates, valueRates, loopRates} {
		if err := part(ctx, &r, shareOf(memory)); err != nil {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// window is about how long each rate is measured.
const window = 12 * time.Millisecond

// seconds returns the least that f takes in the window, of three calls at least, after one to warm up.
func seconds(f func()) float64 {
	f()
	least := math.Inf(1)
	for start, calls := time.Now(), 0; time.Since(start) < window || calls < 3; calls++ {
		t := time.Now()
		f()
		least = min(least, time.Since(t).Seconds())
	}
	return least
}

// reduced returns the order of a matrix of a share of the bytes of one of order n.
func reduced(n int, share float64) int { return max(64, int(float64(n)*math.Sqrt(share))) }

func memoryRates(ctx context.Context, r *Rates, share float64) error {
	size := max(1<<20, int(share*(128<<20)))
	start := time.Now()
	buf := points.NewDense32(size/4/4096, 4096, nil)
	_ = accel.ForEach(ctx, buf.N/64, func(_, i int) {
		for k := i * 64 * 4096; k < (i+1)*64*4096; k += 512 { // a number on each half page
			buf.Data[k] = 1
		}
	})
	r.Touch = float64(size) / time.Since(start).Seconds()
	r.Read = accel.ReadRate(ctx, accel.Threads(), size, window)
	return nil
}

// potrfOrder is the order of the Cholesky factorizations that are measured.
const potrfOrder = 1024

func flopRates(ctx context.Context, r *Rates, share float64) error {
	order := reduced(potrfOrder, share)
	r.Gemm32, r.Gemm64 = accel.GemmRate32(ctx, order, window), accel.GemmRate64(ctx, order, window)
	a, b := make([]float64, order*order), make([]float32, order*order)
	fill := func(set func(i int, v float64)) {
		for i := range order * order {
			set(i, 1)
		}
		for i := range order {
			set(i*order+i, 2*float64(order))
		}
	}
	work := math.Pow(float64(order), 3) / 3
	r.Potrf64 = work / timedAfter(func() { fill(func(i int, v float64) { a[i] = v }) }, func() { accel.Dpotrf(order, a, order) })
	r.Potrf32 = work / timedAfter(func() { fill(func(i int, v float64) { b[i] = float32(v) }) }, func() { accel.Spotrf(order, b, order) })
	return nil
}

// timedAfter returns the least seconds that f takes, of three times, each after prepare.
func timedAfter(prepare, f func()) float64 {
	least := math.Inf(1)
	for range 3 {
		prepare()
		t := time.Now()
		f()
		least = min(least, time.Since(t).Seconds())
	}
	return least
}

func valueRates(ctx context.Context, r *Rates, _ float64) error {
	const size = 4096
	src, dst := make([]float32, size), make([][]float32, accel.Threads())
	for i := range src {
		src[i] = -20 * float32(i) / size
	}
	for i := range dst {
		dst[i] = make([]float32, size)
	}
	rate := func(f func(dst, src []float32)) float64 {
		const calls = 64
		return size * calls / seconds(func() {
			_ = accel.ForEach(ctx, calls, func(who, _ int) { f(dst[who], src) })
		})
	}
	r.Exp, r.Cos = rate(simd.Exp32), rate(simd.Cos32)
	return nil
}

// loopRates measures products with a K of 64 MB, factors of 256 landmarks of it, and ZᵀZ of and solves with a Z of 23 MB, or a
// share of these.
func loopRates(ctx context.Context, r *Rates, share float64) error {
	n, s := reduced(5600, share), reduced(512, share)
	x := points.NewDense32(n, 1, nil)
	for i := range x.Data {
		x.Data[i] = float32(i) / float32(n)
	}
	k, err := gram.New(ctx, kernel.Laplacian{Sigma: 1}, x, 1, &gram.Options{Storage: gram.Float32}) // of which fewer rows are looked at
	if err != nil {
		return err
	}
	z := points.NewDense32(2*n, s, nil)
	for i := range z.Data { // multiples of the golden ratio
		z.Data[i] = float32(uint32(i)*0x9e3779b9) * 0x1p-32
	}
	var m *precond.Woodbury
	gramSeconds := math.Inf(1)
	for range 2 {
		if m, err = precond.New(ctx, z, 1, &precond.Options{Form: precond.FormLInv, Fast: true}); err != nil {
			return err
		}
		gramSeconds = min(gramSeconds, m.Seconds().Gram)
	}
	r.Gram = beside(gramSeconds, 2*n, s, gramSlow/r.Gemm32)
	if err := landmarkRates(ctx, r, k); err != nil {
		return err
	}
	v, err := sparseRates(ctx, r, share)
	if err != nil {
		return err
	}
	for i, t := range rateColumns {
		a, b := mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
		r.Product[i] = seconds(func() { err = k.MulTo(ctx, b, a) }) / float64(2*n*n)
		if err != nil {
			return err
		}
		c := mat.NewDense(2*n, t, nil)
		r.Apply[i] = seconds(func() { err = m.SolveTo(ctx, c, c) }) / float64(2*n*s)
		if err != nil {
			return err
		}
		u := mat.NewDense(v.Dim(), t, nil)
		r.Sparse[i] = seconds(func() { err = v.SolveTo(ctx, u, u) }) / float64(v.Dim()*(v.Neighbors()+1))
		if err != nil {
			return err
		}
	}
	for i := len(rateColumns) - 2; i >= 0; i-- { // fewer columns take no longer, whatever the machine did meanwhile
		for _, v := range []*[3]float64{&r.Product, &r.Apply, &r.Sparse} {
			v[i] = min(v[i], v[i+1])
		}
	}
	return nil
}

// sparseRates measures how a sparse inverse is made, of some 2,000 points in R⁸ on 30 neighbors beside 64 pivots, and
// returns one without these.
func sparseRates(ctx context.Context, r *Rates, share float64) (*vecchia.Inverse, error) {
	const d, pivots = 8, 64
	n := reduced(2000, share)
	x := points.NewDense(n, d, nil)
	rng.New(1).Normals(x.Data, 0)
	k, err := gram.New(ctx, kernel.Gaussian{Sigma: 1}, x, 1, &gram.Options{Storage: gram.Float32})
	if err != nil {
		return nil, err
	}
	f, err := lowrank.RPCholesky(ctx, k, pivots, rng.New(1), nil)
	if err != nil {
		return nil, err
	}
	o, q := &vecchia.Options{Neighbors: UsualNeighbors, Damping: 1}, float64(UsualNeighbors)
	scan, rows := math.Inf(1), math.Inf(1)
	for range 3 {
		v, err := vecchia.New(ctx, k, f.F, o)
		if err != nil {
			return nil, err
		}
		scan, rows = min(scan, v.Seconds().Neighbors), min(rows, v.Seconds().Factor)
	}
	r.Scan = scan / near(float64(n), wider*q)
	r.Rows = float64(n) * (q*q*(d+pivots)/2 + q*q*q/3 + 4*q*pivots) / rows
	return vecchia.New(ctx, k, nil, o)
}

// landmarkRates measures factors of landmarks of k.
func landmarkRates(ctx context.Context, r *Rates, k *gram.Matrix) error {
	n := k.Dim()
	s := max(16, n/22)
	for _, way := range []struct {
		factor func(context.Context, lowrank.Source, int, rng.Stream, *lowrank.Options) (*lowrank.Factor, error)
		slow   float64
		to     *float64
	}{{lowrank.Nystrom, nystromSlow, &r.Nystrom}, {lowrank.RPCholesky, pivotsSlow, &r.RPCholesky}} {
		least := math.Inf(1)
		for range 2 {
			f, err := way.factor(ctx, k, s, rng.New(1), nil)
			if err != nil {
				return err
			}
			least = min(least, f.Seconds.Update)
		}
		*way.to = beside(least, n, s, way.slow/r.Gemm64)
	}
	return nil
}

// beside returns the seconds for an entry of n×s that are not those of ns² flops at so many seconds each, a tenth of all at least.
func beside(seconds float64, n, s int, flop float64) float64 {
	all := seconds / float64(n) / float64(s)
	return max(all-float64(s)*flop, all/10)
}

// at interpolates v, of rateColumns, for t columns, and goes on in proportion beyond the last.
func at(v [3]float64, t int) float64 {
	last := len(v) - 1
	if t >= rateColumns[last] {
		return v[last] * float64(t) / float64(rateColumns[last])
	}
	i := 0
	for i < last-1 && t > rateColumns[i+1] {
		i++
	}
	share := float64(t-rateColumns[i]) / float64(rateColumns[i+1]-rateColumns[i])
	return v[i] + share*(v[i+1]-v[i])
}
