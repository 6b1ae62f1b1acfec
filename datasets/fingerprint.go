package datasets

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// sumBlock is the number of bytes of an array that share one checksum.
const sumBlock = 1 << 22

// blockSums returns the SHA-256 of each block of sumBlock bytes of an array, in the form in which npy.Write writes its
// elements.
func blockSums(data any) [][sha256.Size]byte {
	raw := npy.RawBytes(data)
	sums := make([][sha256.Size]byte, (len(raw)+sumBlock-1)/sumBlock)
	// ForEach returns an error only if its context ends, and this one does not.
	_ = accel.ForEach(context.Background(), len(sums), func(_, k int) {
		sums[k] = sha256.Sum256(raw[k*sumBlock : min((k+1)*sumBlock, len(raw))])
	})
	return sums
}

// arrays returns the arrays of the points, and the arrays of the answers, groups, weights and best errors that d has.
// kind and unit are those that points.ToArrays returns.
func (d *Dataset) arrays() (kind string, unit float64, all []points.Array) {
	kind, unit, all = points.ToArrays(d.X)
	addArray := func(name string, data any, length int) {
		if length > 0 {
			all = append(all, points.Array{Name: name, Data: data, Shape: []int{length}})
		}
	}
	addArray("class", convertInts[int32](d.Class), len(d.Class))
	addArray("groups", convertInts[int64](d.Groups), len(d.Groups))
	name, weights := "y", d.FitWeights()
	for j, y := range d.TargetColumns() {
		addArray(name, y, len(y))
		name = fmt.Sprint("y", j+1)
	}
	addArray("weights", weights, len(weights))
	addArray("best", d.bestErrors, len(d.bestErrors))
	return kind, unit, all
}

// convertInts returns v as a slice of elements of type T.
func convertInts[T int32 | int64](v []int) []T {
	out := make([]T, len(v))
	for i, k := range v {
		out[i] = T(k)
	}
	return out
}

// Fingerprint returns a SHA-256 of the points, the answers, their Mean and the weights. It is equal for equal numbers
// in the same order and form, whatever their names and sources are. It is the hash of the hashes of blocks of the
// stored bytes; these are computed on all threads, and the result does not depend on the number of threads.
func (d *Dataset) Fingerprint() [sha256.Size]byte {
	n, dim := d.X.Dims()
	kind, unit, arrays := d.arrays()
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %d %d %x %v %q %x\n", kind, n, dim, unit, d.Task, d.Labels, d.Mean)
	for _, a := range arrays {
		if a.Name == "best" { // the best errors exist for built-in problems only, and not on all ranks of an MPI run
			continue
		}
		fmt.Fprintf(hash, "%s %T %v\n", a.Name, a.Data, a.Shape)
		for _, sum := range blockSums(a.Data) {
			hash.Write(sum[:])
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
