package cost

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
)

// Rates are what a machine does in a second when it is idle, all threads together. The others that a Model goes by are
// multiples of these.
type Rates struct {
	Machine string  `json:"machine"` // what they hold for
	Read    float64 `json:"read"`    // bytes of memory read
	Gemm32  float64 `json:"gemm32"`  // flops of a product of matrices in float32
	Gemm64  float64 `json:"gemm64"`
	Exp     float64 `json:"exp"`   // exponentials in float32: the speed of the inner loops
	Touch   float64 `json:"touch"` // bytes written for the first time; 0: not measured, Exp/touchValues
	Network         // between ranks
}

// Reference returns the rates of the two-core machine of docs/benchmarks.md (AVX2, OpenBLAS).
func Reference() Rates {
	return Rates{Machine: "two cores, AVX2, OpenBLAS", Read: 28.1e9, Gemm32: 185e9, Gemm64: 86.3e9, Exp: 2.78e9,
		Touch: 2.78e9 / touchValues}
}

// Here names what the rates of this process hold for: processor, threads, BLAS, inner loops.
func ThisMachine() string {
	return fmt.Sprintf("%s, %d threads, %v, %v", accel.CPU().Model, accel.Threads(), accel.InUse(), simd.InUse())
}

// file returns the one in the user's cache that keeps the rates of this process, "" where there is no folder for it.
// Its number changes with what is measured, and with the loops that are.
func file() string {
	if dir := datasets.CacheDir(); dir != "" {
		return filepath.Join(dir, fmt.Sprintf("rates-9-%08x.json", crc32.ChecksumIEEE([]byte(ThisMachine()))))
	}
	return ""
}

// ReadRates returns the rates that are kept, or measures them (Measure) and keeps them. A file that is damaged or of
// another machine is replaced.
func ReadRates(ctx context.Context) (r Rates, err error) {
	text, _ := os.ReadFile(file())
	if json.Unmarshal(text, &r) != nil || r.Machine != ThisMachine() || !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) {
		r = Measure(ctx)
		if err = ctx.Err(); err == nil {
			r.Save()
		}
	}
	return r, err
}

// Save keeps rates of this process for ReadRates, where there is a folder for it.
func (r Rates) Save() {
	name := file()
	if text, err := json.Marshal(r); err == nil && name != "" && os.MkdirAll(filepath.Dir(name), 0o755) == nil {
		_ = atomicfile.Put(name, text) // a cache that cannot be written costs time only
	}
}

// WriteSeconds returns the seconds of writing bytes for the first time.
func (r *Rates) WriteSeconds(bytes float64) float64 {
	return bytes / cmp.Or(r.Touch, r.Exp/touchValues)
}

// Measure measures the rates of this machine, in some 0.3 s and 130 MB.
func Measure(ctx context.Context) Rates {
	const (
		window    = 24 * time.Millisecond
		bytes     = 128 << 20 // that are read, from no cache
		order     = 512
		few, runs = 4096, 512 // exponentials at a time, and how often: for a millisecond
	)
	r := Rates{Machine: ThisMachine(), Touch: accel.TouchRate(ctx, bytes), Read: accel.ReadRate(ctx, bytes, window),
		Gemm32: accel.GemmRate32(ctx, order, window), Gemm64: accel.GemmRate64(ctx, order, window)}
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
	return r
}
