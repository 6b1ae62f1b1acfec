package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// Settings of the measurements: the paper's for MNIST.
const (
	benchSigma   = 8.5
	benchLambda  = 0.01
	benchLambdaP = 0.1
	benchOrder   = 2000 // order of the matrices that gemm is measured with
	benchWindow  = 200 * time.Millisecond
	rateWindow   = 400 * time.Millisecond // for each rate of the machine
	touchBytes   = 128 << 20              // how much fresh memory the first touch is measured with

	benchIterations = 8 // of block PCG
)

// benchColumns are the numbers of columns of products with K and M⁻¹: one, as many as digits, and as letters.
var benchColumns = []int{1, 10, 26}

// loopBench measures loops and collects rows.
type loopBench struct {
	*benchFlags
	ctx    context.Context
	stage  func(name string)
	report *benchReport
	rates  [rates][]float64 // every measurement
	// What tests replace: about how long a loop runs, and the measurement of a rate.
	window time.Duration
	rate   func(ctx context.Context, kind rate, order int) float64
}

// rate is a floor's kind.
type rate int

const (
	reading   rate = iota // bytes read from memory, all threads
	sgemm                 // flops
	dgemm                 // flops
	touching              // bytes of new memory, on small pages
	touching2             // the same on pages of 2 MiB
	element               // numbers at 1 ns each: not measured
	rates
)

// loop is one thing to measure.
type loop struct {
	name, floor string
	work        work                    // of the floor, which takes as long as the longest part of it
	run         func() (float64, error) // returns the seconds it took
}

// work is so many bytes, flops or numbers.
type work map[rate]float64

// seconds returns how long the longest part takes at the rates last measured.
func (w work) seconds(rates *[rates][]float64) (longest float64) {
	for kind, v := range w {
		longest = max(longest, v/rates[kind][len(rates[kind])-1])
	}
	return longest
}

// sample is one repetition: the seconds of a loop and of its floor.
type sample struct{ seconds, floor float64 }

func newLoopBench(ctx context.Context, f *benchFlags, stage func(name string)) *loopBench {
	report := &benchReport{
		CPU: accel.CPU().Model, Path: simd.InUse().String(), BLAS: accel.InUse().String(), Threads: accel.Threads(),
		N: f.n, D: f.d, S: f.features, Repeat: f.repeat,
	}
	return &loopBench{benchFlags: f, ctx: ctx, stage: stage, report: report, window: benchWindow, rate: machineRate}
}

func (b *loopBench) measure() (*benchReport, error) {
	x := benchPoints(b.n, b.d)
	for _, part := range []func(x *points.Dense32) error{b.elements, b.forming, b.products, b.preconditioner} {
		if err := part(x); err != nil {
			return nil, err
		}
	}
	for range b.repeat {
		b.know(work{touching: 0, touching2: 0})
	}
	for k, unit := range []string{"GB/s", "GFLOP/s", "GFLOP/s", "GB/s", "GB/s"} {
		name := []string{"reading", "sgemm", "dgemm", "first touch of memory", "on pages of 2 MiB"}[k]
		if m := median(b.rates[k]); m > 0 { // and sorted
			b.report.Rates = append(b.report.Rates, benchRate{name, unit, m, b.rates[k][0], b.rates[k][len(b.rates[k])-1]})
		}
	}
	return b.report, b.ctx.Err()
}

// machineRate measures a rate, in units per second; a kind that is not measured is 1e9.
func machineRate(ctx context.Context, kind rate, order int) float64 {
	switch kind {
	case reading:
		return accel.ReadRate(ctx, accel.Threads(), 512<<20, rateWindow)
	case sgemm:
		return accel.GemmRate32(ctx, order, rateWindow)
	case dgemm:
		return accel.GemmRate64(ctx, order, rateWindow)
	case touching, touching2:
		return accel.FirstTouch(ctx, touchBytes, kind == touching2)
	}
	return 1e9
}

// benchPoints returns n points of d uniform numbers in [0, 0.6].
func benchPoints(n, d int) *points.Dense32 {
	x := points.NewDense32(n, d, make([]float32, n*d))
	row, g := make([]float64, d), rng.New(1)
	for i := range n {
		g.Float64s(row, uint64(i*d))
		for j, v := range row {
			x.Row(i)[j] = float32(0.6 * v)
		}
	}
	return x
}

// know measures the rates that the work is in terms of.
func (b *loopBench) know(w work) {
	for kind := range rates {
		if _, ok := w[kind]; ok {
			b.rates[kind] = append(b.rates[kind], b.rate(b.ctx, kind, min(benchOrder, b.n)))
		}
	}
}

// alternate measures the floor, in terms of the rates of the first loop, and the loops in turn, as often as --repeat says.
func (b *loopBench) alternate(loops []loop) ([][]sample, error) {
	out := make([][]sample, len(loops))
	for range b.repeat {
		b.know(loops[0].work)
		if b.ctx.Err() != nil {
			return nil, b.ctx.Err()
		}
		debug.FreeOSMemory() // what the floor was measured on
		for i, l := range loops {
			s, err := b.fastest(l.run)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], sample{s, l.work.seconds(&b.rates)})
		}
	}
	return out, nil
}

// fastest calls f once to warm up and then for about the window, or just once if that is
// longer, and returns the least of the seconds that f returns.
func (b *loopBench) fastest(f func() (float64, error)) (float64, error) {
	least := math.Inf(1)
	for start, i := time.Now(), 0; i < 2 || time.Since(start) < b.window; i++ {
		s, err := f()
		if err = cmp.Or(err, b.ctx.Err()); err != nil {
			return 0, err
		}
		least = min(least, s)
		if s > b.window.Seconds() {
			break
		}
	}
	return least, nil
}

// timed turns f into the run of a loop.
func timed(f func() error) func() (float64, error) {
	return func() (float64, error) {
		start := time.Now()
		err := f()
		return time.Since(start).Seconds(), err
	}
}

func (b *loopBench) add(l loop, samples []sample) {
	var seconds, floors, ratios []float64
	for _, s := range samples {
		seconds, floors, ratios = append(seconds, s.seconds), append(floors, s.floor), append(ratios, s.seconds/s.floor)
	}
	row := benchLoop{Name: l.name, Floor: l.floor, Seconds: median(seconds), AtLeast: median(floors), Ratio: median(ratios),
		Best: slices.Min(seconds) / slices.Min(floors), Asked: boundOf(l.name, l.floor)}
	b.report.Loops = append(b.report.Loops, row)
}

// compare measures the loops against one floor and adds their rows.
func (b *loopBench) compare(loops ...loop) error {
	samples, err := b.alternate(loops)
	for i := range samples {
		b.add(loops[i], samples[i])
	}
	return err
}

// elements measures exp, cos and the rows of a Gaussian tile on one core.
func (b *loopBench) elements(*points.Dense32) error {
	b.stage("exp and cos")
	const size, calls = 4096, 64 // numbers a call; calls timed together
	g := rng.New(2)
	args, phases, dst := make([]float32, size), make([]float32, size), make([]float32, size)
	inner, norms := make([]float32, size), make([]float64, size)
	for i := range size {
		u := g.Float64(uint64(i))
		args[i], phases[i] = float32(-20*u), float32(40*u-20)
		inner[i], norms[i] = float32(60+20*u), 94
	}
	one := func(name string, f func()) loop {
		return loop{name, "1 ns", work{element: 1}, func() (float64, error) {
			start := time.Now()
			for range calls {
				f()
			}
			return time.Since(start).Seconds() / (size * calls), nil
		}}
	}
	return b.compare(
		one("exp, per element and core", func() { simd.Exp32(dst, args) }),
		one("cos, per element and core", func() { simd.Cos32(dst, phases) }),
		one("Gaussian row, per element and core", func() {
			simd.GaussianRow(dst, inner, norms, 94, -1/(2*benchSigma*benchSigma), -80)
		}))
}

func (b *loopBench) matrix(x points.Points, storage gram.Storage) (*gram.Matrix, error) {
	return gram.New(b.ctx, kernel.Gaussian{Sigma: benchSigma}, x, benchLambda, &gram.Options{Storage: storage})
}

// forming measures the forming of K in fresh memory, as in a fit, choice of arithmetic
// included: n²d/2 multiply-adds and n²/2 exponentials.
func (b *loopBench) forming(x *points.Dense32) error {
	b.stage("the forming of K")
	var choice gram.Choice
	l := loop{"K formed, float32", "sgemm of half its flops", work{sgemm: float64(b.n) * float64(b.n) * float64(b.d)}, func() (float64, error) {
		debug.FreeOSMemory()
		start := time.Now()
		m, err := b.matrix(x, gram.Float32)
		if err != nil {
			return 0, err
		}
		seconds := time.Since(start).Seconds()
		choice = m.Choice()
		return seconds, nil
	}}
	samples, err := b.alternate([]loop{l})
	if err != nil {
		return err
	}
	l.name = fmt.Sprintf("K formed, float32, products in %v", choice.Arithmetic)
	b.add(l, samples[0])
	return nil
}

// stored is K in one storage.
type stored struct {
	name  string
	bytes float64 // of an entry
	m     *gram.Matrix
}

// storages forms K in every storage there is.
func (b *loopBench) storages(x *points.Dense32) (all []stored, err error) {
	for _, s := range []stored{{"float64", 8, nil}, {"float32", 4, nil}, {"fixed16", 2, nil}} {
		kind, err := gram.ParseStorage(s.name)
		if err == nil {
			s.m, err = b.matrix(x, kind)
		}
		if b.ctx.Err() != nil {
			return nil, b.ctx.Err()
		}
		if err != nil {
			b.report.Notes = append(b.report.Notes, fmt.Sprintf("K·P with %s left out: %v", s.name, err))
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// products measures K·P for 1, 10 and 26 columns in every storage. The floor is reading K or 2n²t flops, whichever
// takes longer: where memory is fast, that is the flops from few columns on.
func (b *loopBench) products(x *points.Dense32) error {
	b.stage("K·P")
	all, err := b.storages(x)
	if err != nil {
		return err
	}
	n := float64(b.n)
	for _, t := range benchColumns {
		b.stage(fmt.Sprintf("K·P, t = %d", t))
		src, dst := columns(b.n, t), mat.NewDense(b.n, t, nil)
		var loops []loop
		for _, s := range all {
			bytes, flops := n*(n+1)/2*s.bytes, 2*n*n*float64(t)
			w, library := work{reading: bytes, sgemm: flops, dgemm: 0}, "sgemm"
			if s.name == "float64" {
				w, library = work{reading: bytes, sgemm: 0, dgemm: flops}, "dgemm"
			}
			loops = append(loops, loop{fmt.Sprintf("K·P, %s, t = %d", s.name, t), fmt.Sprintf("reading %s or %s of its flops", accel.Bytes(int64(bytes)), library), w,
				timed(func() error { return s.m.MulTo(b.ctx, dst, src) })})
		}
		samples, err := b.alternate(loops)
		if err != nil {
			return err
		}
		for i, s := range samples {
			b.add(loops[i], s)
			if all[i].name == "fixed16" && i > 0 && all[i-1].name == "float32" {
				for r := range s {
					s[r].floor = samples[i-1][r].seconds
				}
				b.add(loop{name: loops[i].name, floor: "K·P, float32"}, s)
			}
		}
	}
	return nil
}

// columns returns an n×t matrix of numbers in [-½, ½].
func columns(n, t int) *mat.Dense {
	v := make([]float64, n*t)
	rng.New(3).Float64s(v, 0)
	for i := range v {
		v[i] -= 0.5
	}
	return mat.NewDense(n, t, v)
}

func (b *loopBench) preconditioner(x *points.Dense32) error {
	b.stage("Z and ZᵀZ")
	dist, err := feature.For(kernel.Gaussian{Sigma: benchSigma})
	if err != nil {
		return err
	}
	m, err := dist.Sample(b.d, b.features, rng.New(4))
	if err != nil {
		return err
	}
	var z *points.Dense32
	n, d, s := float64(b.n), float64(b.d), float64(b.features)
	forming := loop{"Z formed", "sgemm of its flops", work{sgemm: 2 * n * s * d}, timed(func() (err error) {
		z, err = feature.Matrix(b.ctx, m, x, nil)
		return err
	})}
	if err := b.compare(forming); err != nil {
		return err
	}
	square := func(name, floor string, kind rate, fast bool) loop {
		return loop{name, floor, work{kind: n * s * s}, func() (float64, error) {
			w, err := precond.New(b.ctx, z, benchLambdaP, &precond.Options{Form: precond.FormL, Fast: fast})
			if err != nil {
				return 0, err
			}
			return w.Seconds().Gram, nil
		}}
	}
	if err := b.compare(square("ZᵀZ, products in float32", "sgemm of half its flops", sgemm, true)); err != nil {
		return err
	}
	if err := b.compare(square("ZᵀZ, products in float64", "dgemm of half its flops", dgemm, false)); err != nil {
		return err
	}
	w, err := precond.New(b.ctx, z, benchLambdaP, &precond.Options{RHS: 10, StatDim: true, Fast: true})
	if err != nil {
		return err
	}
	b.stage("M⁻¹R")
	var loops []loop
	for _, t := range benchColumns {
		src, dst := columns(b.n, t), mat.NewDense(b.n, t, nil)
		bytes := 8*n*s + 8*s*s // Z and the factor's triangle, twice
		loops = append(loops, loop{fmt.Sprintf("M⁻¹R, form %v, t = %d", w.Form(), t), fmt.Sprintf("reading %s or dgemm of its flops", accel.Bytes(int64(bytes))),
			work{reading: bytes, dgemm: (4*n*s + 2*s*s) * float64(t)}, timed(func() error { return w.SolveTo(b.ctx, dst, src) })})
	}
	if err := b.compare(loops...); err != nil {
		return err
	}
	return b.iterations(x, w)
}

// iterations measures iterations of block PCG against the products and solves in them.
func (b *loopBench) iterations(x *points.Dense32, m *precond.Woodbury) error {
	b.stage("iterations of block PCG")
	k, err := b.matrix(x, gram.Float32)
	if err != nil {
		return err
	}
	for _, t := range []int{10, 26, 40} {
		b.stage(fmt.Sprintf("iterations of block PCG, t = %d", t))
		var samples []sample
		for range b.repeat {
			r, err := pcg.SolveBlock(b.ctx, k, m, columns(b.n, t), &pcg.Options{Tol: 1e-12, MaxIter: benchIterations})
			if err != nil {
				return err
			}
			each := float64(max(1, r.Iterations))
			samples = append(samples, sample{r.Stats.Seconds / each, (r.Stats.MulTo.Seconds + r.Stats.SolveTo.Seconds) / each})
		}
		b.add(loop{name: fmt.Sprintf("an iteration of block PCG, t = %d", t), floor: "K·P and M⁻¹R in it"}, samples)
	}
	return nil
}
