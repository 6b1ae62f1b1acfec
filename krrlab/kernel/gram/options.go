package gram

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Storage is the format in which the tiles of K are stored.
type Storage int

const (
	Auto      Storage = iota // the smallest storage that is accurate enough and fits the memory
	Float64                  // 8 bytes per entry of the lower triangle: 4n² bytes
	Float32                  // 4 bytes per entry of the lower triangle: 2n² bytes
	Recompute                // tiles are formed again for every product
	Fixed16                  // 2 bytes per entry of the lower triangle: n² bytes; kernels with values in [0, 1]
)

var storageNames = []string{"auto", "float64", "float32", "recompute", "fixed16"}

func (s Storage) String() string { return enum.Name(storageNames, s) }

// entryBytes returns the memory of an entry in bytes. It is 0 if entries are not stored.
func (s Storage) entryBytes() int64 { return map[Storage]int64{Float64: 8, Float32: 4, Fixed16: 2}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Storage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Storage) UnmarshalText(text []byte) (err error) {
	*s, err = enum.Parse[Storage]("storage", storageNames, string(text))
	return err
}

// Tiles selects between all tiles of K and only those with non-negligible entries.
type Tiles int

const (
	AutoTiles   Tiles = iota // SparseTiles if the kernel decreases and most entries of K are negligible
	DenseTiles               // all tiles
	SparseTiles              // tiles between leaves that are not far apart; needs a kernel that decreases
)

var tileNames = []string{"auto", "dense", "sparse"}

func (t Tiles) String() string { return enum.Name(tileNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t Tiles) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Tiles) UnmarshalText(text []byte) (err error) {
	*t, err = enum.Parse[Tiles]("tiles", tileNames, string(text))
	return err
}

// Options configures New. The zero value and nil select the defaults.
type Options struct {
	// Storage is the format of the tiles. Default: Auto.
	Storage Storage
	// SameAs, if not nil, is the choice of an earlier matrix of the same points and kernel. Its storage replaces
	// Storage, and entries are computed exactly as in that matrix.
	SameAs *Choice
	// Choice, if not nil, is the result of Choose with the same arguments except for Memory. New uses it if it fits
	// Memory. It must be nil if there are several ranks.
	Choice *Choice
	// Memory is the memory budget of the matrix.
	Memory accel.Budget
	// Tiles selects dense or sparse tiles. Default: sparse tiles if they omit most entries (see Sparsity).
	Tiles Tiles
	// MaxDroppedNorm bounds the 2-norm of the entries that sparse tiles omit. Default and maximum:
	// PreferredAccuracy/4.
	MaxDroppedNorm float64
	// TileSize is the number of points of a block. With sparse tiles it is an upper limit, and at most 256.
	// Default: 512; for n ≤ 3,584 an eighth of n, rounded up to a multiple of 64.
	TileSize int
	// Progress, if not nil, is called after each tile is formed. Calls never overlap, and formed rises from 1 to
	// total. Recompute never calls it.
	Progress func(formed, total int)
	// Accuracy is the required bound of ‖E‖₂, where E is the storage error of the matrix. Default: λ/10.
	Accuracy float64
	// PreferredAccuracy is a smaller bound of ‖E‖₂ that is met if memory allows: stored matrices form distances more
	// accurately, and Auto uses float64 storage if it fits. Default: Accuracy.
	PreferredAccuracy float64
	// ExactResiduals declares that the caller computes residuals with K itself. Auto then uses 16 bits if float32 does
	// not fit, 16 bits do, and ‖E‖₂ ≤ λ/2.
	ExactResiduals bool
	// Seed selects the random rows from which ‖E‖₂ is predicted.
	Seed uint64
	// Comm is the group of ranks among which the tiles are distributed. Each rank forms and stores its own tiles, has
	// all points, and calls the methods of the Matrix together with the others. Memory is then the budget per rank; the
	// rank with the least free memory decides. Default: comm.Alone().
	Comm comm.Comm
}

// withDefaults returns a copy of o with the defaults for n points and the ridge lambda. It panics if an option is
// invalid.
func (o *Options) withDefaults(n int, lambda float64) Options {
	options := *cmp.Or(o, &Options{})
	options.Comm = comm.OrAlone(options.Comm)
	if options.SameAs != nil {
		if options.SameAs.Storage == Auto {
			panic("gram: as an earlier choice that says no storage")
		}
		options.Storage = options.SameAs.Storage
	}
	if options.Storage < Auto || options.Storage > Fixed16 {
		panic(fmt.Sprintf("gram: unknown storage %v", options.Storage))
	}
	if options.TileSize < 0 || options.Memory.Limit < 0 || options.Accuracy < 0 || options.PreferredAccuracy < 0 ||
		options.MaxDroppedNorm < 0 {
		panic(fmt.Sprintf("gram: negative option: tile size %d, memory %d, accuracy %v, preferred %v", options.TileSize,
			options.Memory.Limit, options.Accuracy, options.PreferredAccuracy))
	}
	if options.TileSize == 0 {
		eighth := (n + 7) / 8
		options.TileSize = min(512, (eighth+63)/64*64)
	}
	options.TileSize = min(options.TileSize, n)
	options.Accuracy = cmp.Or(options.Accuracy, lambda/10)
	if options.PreferredAccuracy == 0 || options.PreferredAccuracy > options.Accuracy {
		options.PreferredAccuracy = options.Accuracy
	}
	maxDropped := droppedBudget * options.PreferredAccuracy
	if options.MaxDroppedNorm == 0 || options.MaxDroppedNorm > maxDropped {
		options.MaxDroppedNorm = maxDropped
	}
	return options
}
