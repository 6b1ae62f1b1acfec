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

// Rates are the speeds of an idle machine, per second and for all threads together. A Model derives all other speeds
// from these.
type Rates struct {
	Machine string  `json:"machine"` // name of the machine and its configuration
	Read    float64 `json:"read"`    // bytes read from memory
	Gemm32  float64 `json:"gemm32"`  // flops of a matrix product in float32
	Gemm64  float64 `json:"gemm64"`  // flops of a matrix product in float64
	Exp     float64 `json:"exp"`     // exponentials in float32, as a measure of the inner loops
	Touch   float64 `json:"touch"`   // bytes written for the first time; 0: not measured, use Exp/touchValues
	Network         // network between ranks
}

// Reference returns the rates of a machine with two cores, AVX2 and OpenBLAS.
func Reference() Rates {
	return Rates{Machine: "two cores, AVX2, OpenBLAS", Read: 28.1e9, Gemm32: 185e9, Gemm64: 86.3e9, Exp: 2.78e9,
		Touch: 2.78e9 / touchValues}
}

// ThisMachine returns the configuration for which the rates of this process hold: processor, threads, BLAS and inner
// loops (package simd).
func ThisMachine() string {
	return fmt.Sprintf("%s, %d threads, %v, %v", accel.CPU().Model, accel.Threads(), accel.CurrentBLAS(),
		simd.CurrentPath())
}

// cacheFile returns the name of the file in the user's cache folder that stores the rates of this process, or "" if
// there is no such folder. The version number in the name must be increased when the measurements or the measured loops
// change.
func cacheFile() string {
	if dir := datasets.CacheDir(); dir != "" {
		return filepath.Join(dir, fmt.Sprintf("rates-9-%08x.json", crc32.ChecksumIEEE([]byte(ThisMachine()))))
	}
	return ""
}

// ReadRates returns the cached rates of this process, or measures them (Measure) and caches them. It replaces a file
// that is damaged or was written on another machine. Rates that were measured while the machine was busy are too low.
// So ReadRates also times a matrix product, in some milliseconds. If the product has busyFactor times the cached rate
// or more, all rates are measured again, and the higher of the old and the new value of each rate is cached. ReadRates
// returns an error only if ctx ends.
func ReadRates(ctx context.Context) (r Rates, err error) {
	text, _ := os.ReadFile(cacheFile())
	if json.Unmarshal(text, &r) != nil || r.Machine != ThisMachine() || !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) {
		r = Rates{}
	}
	if accel.GemmRate32(ctx, gemmOrder, checkWindow) >= busyFactor*r.Gemm32 {
		r = r.higher(Measure(ctx))
		if err = ctx.Err(); err == nil {
			r.Save()
		}
	}
	return r, err
}

const (
	gemmOrder   = 512                  // order of the matrices whose products are timed
	busyFactor  = 1.25                 // ratio of a new to a cached rate at which all rates are measured again
	checkWindow = 5 * time.Millisecond // time for which ReadRates repeats the matrix product
)

// higher returns, for each rate, the higher of that in r and the measured one.
func (r Rates) higher(measured Rates) Rates {
	measured.Read, measured.Touch = max(measured.Read, r.Read), max(measured.Touch, r.Touch)
	measured.Gemm32, measured.Gemm64 = max(measured.Gemm32, r.Gemm32), max(measured.Gemm64, r.Gemm64)
	measured.Exp = max(measured.Exp, r.Exp)
	return measured
}

// Save stores rates of this process for ReadRates, if there is a cache folder.
func (r Rates) Save() {
	name := cacheFile()
	if text, err := json.Marshal(r); err == nil && name != "" && os.MkdirAll(filepath.Dir(name), 0o755) == nil {
		_ = atomicfile.WriteFile(name, text) // a cache that cannot be written costs time only
	}
}

// WriteSeconds returns the seconds of writing so many bytes for the first time.
func (r *Rates) WriteSeconds(bytes float64) float64 {
	return bytes / cmp.Or(r.Touch, r.Exp/touchValues)
}

// Measure measures the rates of this machine. It takes about 0.3 s on an idle machine, and 130 MB of memory.
func Measure(ctx context.Context) Rates {
	const (
		window                    = 24 * time.Millisecond // time for which each loop is repeated
		bytes                     = 128 << 20             // bytes read, more than any cache holds
		vectorLength, repetitions = 4096, 512             // exponentials per call, and calls per timing
	)
	r := Rates{Machine: ThisMachine(), Touch: accel.TouchRate(ctx, bytes), Read: accel.ReadRate(ctx, bytes, window),
		Gemm32: accel.GemmRate32(ctx, gemmOrder, window), Gemm64: accel.GemmRate64(ctx, gemmOrder, window)}
	src, dst := make([]float32, vectorLength), make([][]float32, accel.Threads())
	for i := range src { // typical exponents of a Gaussian kernel, from −20 to 0
		src[i] = -20 * float32(i) / vectorLength
	}
	for i := range dst {
		dst[i] = make([]float32, vectorLength)
	}
	r.Exp = accel.MeasureRate(ctx, window, vectorLength*repetitions, func() {
		_ = accel.ForEach(ctx, repetitions, func(thread, _ int) { simd.Exp32(dst[thread], src) })
	})
	return r
}
