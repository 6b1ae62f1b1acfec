//go:build !amd64

package simd

// Without assembly no path has vectors: none of these is ever called.

func exp32AVX2(int, *float32, *float32, float32, float32) int { panic("simd: no assembly") }
func cos32AVX2(int, *float32, *float32, float32, float32) int { panic("simd: no assembly") }
func exp64AVX2(int, *float64, *float64, float64, float64)     { panic("simd: no assembly") }
func gaussian32AVX2(int, *float32, *float32, *float64, float64, float64, float64) {
	panic("simd: no assembly")
}
func gaussian64AVX2(int, *float32, *float64, *float64, float64, float64, float64) {
	panic("simd: no assembly")
}
func distances32AVX2(int, *float64, *float32, *float64, float64) { panic("simd: no assembly") }
func distances64AVX2(int, *float64, *float64, *float64, float64) { panic("simd: no assembly") }
func roundAVX2(int, *float32, *float64)                          { panic("simd: no assembly") }
func widen16AVX2(int, *float32, *uint16)                         { panic("simd: no assembly") }
func sButterflyAVX2(int, *float32, *float32)                     { panic("simd: no assembly") }
func dButterflyAVX2(int, *float64, *float64)                     { panic("simd: no assembly") }
func narrow16AVX2(int, *uint16, *float32, float32)               { panic("simd: no assembly") }
func gaussianIntAVX2(int, *float32, *int32, *float64, float64, float64, float64) {
	panic("simd: no assembly")
}
func candidates32AVX2(int, *int32, *float32, *float32, *int32, float32, int32, *uint64) int {
	panic("simd: no assembly")
}
func gatherAVX2(int, *int64, *int32, *float32, *float64, *float64) { panic("simd: no assembly") }
func gathersAVX2(int, *int64, *int32, *float32, *float64, *float64, int, *uint64) {
	panic("simd: no assembly")
}
