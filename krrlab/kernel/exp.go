package kernel

import "math"

func exp32(dst, x []float32) {
	for i, v := range x {
		if v < -87.3 {
			dst[i] = 0
			continue
		}
		dst[i] = float32(math.Exp(float64(v)))
	}
}
