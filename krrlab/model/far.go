package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

const (
	// negligibleKernel is the share of the kernel's largest value below which a training point hardly changes a
	// prediction. A smaller value counts fewer rows as far.
	negligibleKernel = 1e-3
	// maxFarWork is the largest number of multiply-adds for the comparison of rows with all of the model's points,
	// about a second. If more are needed, a random sample of the rows is compared. A larger value makes samples larger.
	maxFarWork = 1 << 32
	// kernelWork is the number of multiply-adds that take as long as one evaluation of the kernel at a known distance.
	kernelWork = 32
	// farAccuracy is the largest acceptable error of a kernel value that is compared with negligibleKernel.
	farAccuracy = negligibleKernel / 10
)

// countFarRows returns the number of rows of d, raw or scaled as the model's points, at which the kernel is below
// negligibleKernel for all of the model's points. Their predictions are nearly constant. It is 0 if the kernel is not
// known to decrease with the distance.
//
// Rows far from the bounding box of the model's points are counted first. Each other row is compared with the model's
// points until a near one is found, for most rows among the first few. If the comparison could take too long, a random
// sample of these rows is compared, and the result is an estimate.
func (m *Model) countFarRows(d *datasets.Dataset) (count int, isEstimate bool) {
	tailBound, metric := kernel.TailBound(m.Kernel)
	if tailBound == nil {
		return 0, false
	}
	scaled, err := m.Scaled(d)
	if err != nil {
		return 0, false
	}
	cutoff := negligibleKernel * tailBound(0)
	var others []int // rows that are not far from the box
	for i, distance := range m.boxDistances(scaled.X, metric) {
		if distance > 0 && tailBound(distance) < cutoff {
			count++
		} else {
			others = append(others, i)
		}
	}
	n, dim, _ := m.Dims()
	if sampleSize := max(1, maxFarWork/(n*(dim+kernelWork))); len(others) > sampleSize {
		var sample []int
		for _, pos := range rng.New(0).Sub("rows that may be far").Perm(len(others))[:sampleSize] {
			sample = append(sample, others[pos])
		}
		share := float64(m.countFar(points.Gather(scaled.X, sample), cutoff)) / float64(sampleSize)
		return count + int(math.Round(share*float64(len(others)))), true
	}
	return count + m.countFar(points.Gather(scaled.X, others), cutoff), false
}

// FarRowsNote describes the rows that countFarRows counts in a sentence without a full stop. It returns "" if there are
// none.
func (m *Model) FarRowsNote(d *datasets.Dataset) string {
	count, isEstimate := m.countFarRows(d)
	if count == 0 {
		return ""
	}
	about := ""
	if isEstimate {
		about = "about "
	}
	return fmt.Sprintf("%s%d of %d rows are so far from the training points that the kernel is below %g there, and "+
		"predictions nearly constant (are columns swapped, or in other units?)", about, count, d.Len(), negligibleKernel)
}

// boxDistances returns the distance of each point of z from the bounding box of the model's points, ‖·‖₁ or ‖·‖₂² by
// the metric.
func (m *Model) boxDistances(z points.Points, metric tree.Metric) []float64 {
	low, high := datasets.FeatureRanges(m.X)
	excess := func(j int, v float64) float64 { // distance of v from the range of feature j, or its square
		distance := max(0, low[j]-v, v-high[j])
		if metric == tree.SquaredEuclidean {
			return distance * distance
		}
		return distance
	}
	sparse, isSparse := z.(*points.CSR)
	zeroDistance := 0.0 // distance of a row of zeros; the distance of a sparse row differs in few terms
	for j := range low {
		zeroDistance += excess(j, 0)
	}
	rows, _ := z.Dims()
	distances, row := make([]float64, rows), make([]float64, len(low))
	for i := range distances {
		if isSparse {
			distances[i] = zeroDistance
			columns, values := sparse.Row(i)
			for k, j := range columns {
				distances[i] += excess(int(j), values[k]) - excess(int(j), 0)
			}
			continue
		}
		z.RowTo(row, i)
		for j, v := range row {
			distances[i] += excess(j, v)
		}
	}
	return distances
}

// countFar returns the number of points of z, scaled as the model's points, at which the kernel is below cutoff for all
// of the model's points.
func (m *Model) countFar(z points.Points, cutoff float64) int {
	if rows, _ := z.Dims(); rows == 0 {
		return 0
	}
	placement := kernel.NewPlacement(m.Kernel, m.X)
	x, zPanel := placement.Panel, placement.Apply(z)
	arithmetic, _ := kernel.ChooseArithmetic(m.Kernel, placement.SummaryWith(zPanel), farAccuracy)
	if arithmetic == kernel.Differences { // use the original points, because shifting them rounds
		x, zPanel = placement.Original, points.NewPanel(z)
	}
	farCounts := make([]int, (zPanel.Len()+BatchRows-1)/BatchRows) // number of far points in each batch
	workspaces, tiles := make([]kernel.Workspace, accel.Threads()), make([][]float64, accel.Threads())
	// ForEach returns no error, as the context does not end.
	_ = accel.ForEach(context.Background(), len(farCounts), func(worker, batchIndex int) {
		batch := zPanel.Slice(batchIndex*BatchRows, min((batchIndex+1)*BatchRows, zPanel.Len()))
		if tiles[worker] == nil {
			tiles[worker] = make([]float64, BatchRows*tileCols)
		}
		for lo := 0; lo < x.Len() && batch.Len() > 0; lo += tileCols {
			hi := min(lo+tileCols, x.Len())
			kernel.Tile64(tiles[worker], hi-lo, m.Kernel, batch, x.Slice(lo, hi), arithmetic, &workspaces[worker])
			var remaining []int
			for a := range batch.Len() {
				if slices.Max(tiles[worker][a*(hi-lo):(a+1)*(hi-lo)]) < cutoff {
					remaining = append(remaining, a)
				}
			}
			if len(remaining) < batch.Len() {
				batch = gatherPanel(batch, remaining)
			}
		}
		farCounts[batchIndex] = batch.Len()
	})
	total := 0
	for _, count := range farCounts {
		total += count
	}
	return total
}
