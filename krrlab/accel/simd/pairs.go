package simd

// PairLanes is the number of points that SumSquaredDifferences and SumAbsoluteDifferences take at once.
const PairLanes = 32

// pairSums sets dst, PairLanes numbers, to sums over n coordinates.
type pairSums[T number] func(n int, dst, x, z *T)

// SumSquaredDifferences sets dst[j] = Σ_c (x_c−z_cj)² for PairLanes points z_j that are stored by coordinates: z_cj is
// z[c·PairLanes+j]. Terms are added in the order of c, each operation rounded, on every path alike. It panics if dst or
// z is too short.
func SumSquaredDifferences(dst *[PairLanes]float64, x, z []float64) {
	sumPairs(current().squares64, dst, x, z,
		func(diff float64) float64 { return float64(diff * diff) })
}

// SumAbsoluteDifferences sets dst[j] = Σ_c |x_c−z_cj|, as SumSquaredDifferences does for squares.
func SumAbsoluteDifferences[T number](dst *[PairLanes]T, x, z []T) {
	assembly := current()
	sumPairs(pick[pairSums[T]](assembly.absolutes32, assembly.absolutes64), dst, x, z,
		func(diff T) T { return max(diff, -diff) })
}

// sumPairs sets dst_j = Σ_c term(x_c−z_cj), by the assembly routine, or in Go if that is nil.
func sumPairs[T number](assembly pairSums[T], dst *[PairLanes]T, x, z []T, term func(T) T) {
	z = prefix(z, len(x)*PairLanes)
	if assembly != nil && len(x) > 0 {
		assembly(len(x), &dst[0], &x[0], &z[0])
		return
	}
	clear(dst[:])
	for c, xc := range x {
		for j, zc := range z[c*PairLanes : (c+1)*PairLanes] {
			dst[j] += term(xc - zc)
		}
	}
}
