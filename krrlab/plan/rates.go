package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
)

// Rates are what a machine does in a second when it is idle, all threads together. The others that a Cost goes by are
// multiples of these.
type Rates struct {
	Machine string  `json:"machine"` // what they hold for
	Read    float64 `json:"read"`    // bytes of memory read
	Gemm32  float64 `json:"gemm32"`  // flops of a product of matrices in float32
	Gemm64  float64 `json:"gemm64"`
	Exp     float64 `json:"exp"`     // exponentials in float32: the speed of the inner loops
	Seconds float64 `json:"seconds"` // that it took to measure them
}

// Reference returns the rates of the two-core machine of docs/benchmarks.md (AVX2, OpenBLAS).
func Reference() Rates {
	return Rates{Machine: "two cores, AVX2, OpenBLAS", Read: 28.1e9, Gemm32: 185e9, Gemm64: 86.3e9, Exp: 2.78e9,
		Seconds: 1}
}

// here names what the rates of this process hold for: processor, threads, BLAS, inner loops.
func here() string {
	return fmt.Sprintf("%s, %d threads, %v, %v", accel.CPU().Model, accel.Threads(), accel.InUse(), simd.InUse())
}

// RatesFile returns the file in the user's cache that keeps the rates of this machine, "" where there is no folder
// for it.
func RatesFile() string {
	if dir := datasets.CacheDir(); dir != "" {
		// the number changes with what is measured, and with the loops that are
		return filepath.Join(dir, "rates-5.json")
	}
	return ""
}

// measured are the rates that this process has read or measured.
var measured struct {
	sync.Mutex
	Rates
}

// ReadRates returns the rates that the file has for this machine, or measures them and writes them there (Measure). A
// file that is not there, damaged or of another machine is replaced.
func ReadRates(ctx context.Context, name string, memory int64) (Rates, error) {
	measured.Lock()
	defer measured.Unlock()
	if kept := inFile(name)[here()]; kept.sane() {
		measured.Rates = kept
	}
	if !measured.sane() {
		r := Measure(ctx, memory)
		if err := ctx.Err(); err != nil {
			return r, err
		}
		measured.Rates = r
	}
	measured.Keep(name)
	return measured.Rates, nil
}

// inFile returns the rates that a file has, by machine, or none.
func inFile(name string) map[string]Rates {
	all := map[string]Rates{}
	if text, err := os.ReadFile(name); err != nil || json.Unmarshal(text, &all) != nil {
		return map[string]Rates{}
	}
	return all
}

// Keep writes the rates to the file that ReadRates reads, if there is a name, beside those of other machines.
func (r Rates) Keep(name string) {
	all := inFile(name)
	if name == "" || all[r.Machine] == r {
		return
	}
	all[r.Machine] = r
	if text, err := json.MarshalIndent(all, "", "  "); err == nil && os.MkdirAll(filepath.Dir(name), 0o755) == nil {
		_ = atomicfile.Put(name, append(text, '\n')) // a cache that cannot be written costs time only
	}
}

// sane reports whether every rate is a positive number, of this process.
func (r Rates) sane() bool {
	return min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0 && max(r.Read, r.Gemm32, r.Gemm64, r.Exp) < 1e300 &&
		r.Machine == here()
}

// Measure measures the rates of this machine, in some 0.2 s and a quarter of the memory at most, 0 for no limit.
func Measure(ctx context.Context, memory int64) Rates {
	const (
		window    = 12 * time.Millisecond
		most      = 128 << 20 // bytes that are read
		order     = 1024
		few, runs = 4096, 64 // exponentials at a time, and how often
	)
	start := time.Now()
	r := Rates{Machine: here()}
	bytes, side := most, order
	if memory > 0 && memory < 4*most {
		bytes, side = int(memory/4), order/4
	}
	r.Read = accel.ReadRate(ctx, bytes, 4*window)
	r.Gemm32, r.Gemm64 = accel.GemmRate32(ctx, side, window), accel.GemmRate64(ctx, side, window)
	src, dst := make([]float32, few), make([][]float32, accel.Threads())
	for i := range src {
		src[i] = -20 * float32(i) / few
	}
	for i := range dst {
		dst[i] = make([]float32, few)
	}
	r.Exp = accel.Rate(ctx, window, few*runs, func() {
		_ = accel.ForEach(ctx, runs, func(who, _ int) { simd.Exp32(dst[who], src) })
	})
	r.Seconds = time.Since(start).Seconds()
	return r
}
