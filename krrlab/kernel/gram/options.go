package gram

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Storage says how the tiles of K are kept.
type Storage int

const (
	Auto      Storage = iota // the smallest that is accurate enough and fits
	Float64                  // 8 bytes an entry of the lower half: 4n² bytes
	Float32                  // 4 bytes an entry of the lower half: 2n² bytes
	Recompute                // tiles are formed again for every product
	Fixed16                  // 2 bytes an entry of the lower half, n² bytes; kernels with values in [0, 1]
)

var storageNames = []string{"auto", "float64", "float32", "recompute", "fixed16"}

func (s Storage) String() string { return enum.Name(storageNames, s) }

// MarshalText implements encoding.TextMarshaler.
func (s Storage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Storage) UnmarshalText(b []byte) (err error) {
	*s, err = enum.Parse[Storage]("storage", storageNames, string(b))
	return err
}

// Tiles says which tiles of K there are.
type Tiles int

const (
	AutoTiles   Tiles = iota // sparse where the kernel decreases and most of K is next to nothing
	DenseTiles               // all
	SparseTiles              // those of pairs of leaves that are not far apart; kernels that decrease
)

var tilesNames = []string{"auto", "dense", "sparse"}

func (t Tiles) String() string { return enum.Name(tilesNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t Tiles) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Tiles) UnmarshalText(b []byte) (err error) {
	*t, err = enum.Parse[Tiles]("tiles", tilesNames, string(b))
	return err
}

// Options of New. The zero value, and nil, ask for the defaults.
type Options struct {
	// Storage of the tiles. Default Auto.
	Storage Storage
	// As, if not nil, is the choice of an earlier matrix of the same points and kernel: its storage
	// is taken instead of Storage, and entries are computed as they were there.
	SameAs *Choice
	// Chosen, if not nil, is the choice of Look with the same arguments but Memory, which New takes if it fits. Not on
	// ranks.
	Chosen *Choice
	// Memory is the number of bytes that the matrix may take, 0 for no limit.
	Memory int64
	// Tiles says whether tiles of nothing are left out. Default: where they are most (Sparse).
	Tiles Tiles
	// Drop is what ‖·‖₂ of what sparse tiles leave out may be at most. Default, and at most: a quarter of Prefer.
	MaxDroppedNorm float64
	// TileSize is the number of points of a block, of sparse tiles at most and at most 256. Default: 512; less for
	// n ≤ 3,584: an eighth of n, rounded up to a multiple of 64.
	TileSize int
	// Progress, if not nil, is called after each tile formed, with calls never at
	// the same time and done rising from 1 to total. Never called by Recompute.
	Progress func(done, total int)
	// Accuracy is the bound asked of ‖E‖₂, E the error of the matrix used.
	// Default λ/10.
	Accuracy float64
	// Prefer is a smaller bound, for which the stored kinds form distances more
	// exactly, and Auto takes float64 storage where that fits. Default: Accuracy.
	PreferredAccuracy float64
	// Refined says that residuals are taken with K itself: Auto then takes 16 bits where float32 does not fit, but they
	// do, with ‖E‖₂ ≤ λ/2.
	Refined bool
	// Seed chooses the rows that ‖E‖₂ is predicted from.
	Seed uint64
	// Comm is the group of ranks that the tiles are dealt to: each forms and holds its
	// share, and all call the methods of the Matrix together. Every rank has all points.
	// Memory is then each rank's, the least of all. Default: comm.Alone().
	Comm comm.Comm
}

// settled returns a copy of o with the defaults filled in.
func (o *Options) settled(n int, lambda float64) Options {
	s := *cmp.Or(o, &Options{})
	s.Comm = comm.OrAlone(s.Comm)
	if s.SameAs != nil {
		if s.SameAs.Storage == Auto {
			panic("gram: as an earlier choice that says no storage")
		}
		s.Storage = s.SameAs.Storage
	}
	if s.Storage < Auto || s.Storage > Fixed16 {
		panic(fmt.Sprintf("gram: unknown storage %v", s.Storage))
	}
	if s.TileSize < 0 || s.Memory < 0 || s.Accuracy < 0 || s.PreferredAccuracy < 0 || s.MaxDroppedNorm < 0 {
		panic(fmt.Sprintf("gram: negative option: tile size %d, memory %d, accuracy %v, preferred %v", s.TileSize,
			s.Memory, s.Accuracy, s.PreferredAccuracy))
	}
	if s.TileSize == 0 {
		eighth := (n + 7) / 8
		s.TileSize = min(512, (eighth+63)/64*64)
	}
	s.TileSize = min(s.TileSize, n)
	s.Accuracy = cmp.Or(s.Accuracy, lambda/10)
	if s.PreferredAccuracy == 0 || s.PreferredAccuracy > s.Accuracy {
		s.PreferredAccuracy = s.Accuracy
	}
	if most := budget * s.PreferredAccuracy; s.MaxDroppedNorm == 0 || s.MaxDroppedNorm > most {
		s.MaxDroppedNorm = most
	}
	return s
}

// MemoryError says that the storage asked for does not fit the memory allowed.
type MemoryError struct {
	N       int       // points
	Storage Storage   // asked for
	Need    int64     // bytes it needs
	Have    int64     // bytes allowed
	Fits    []Storage // storages that would fit
	Bytes   []int64   // what each of Fits needs
}

func (e *MemoryError) Error() string {
	var fits []string
	for i, s := range e.Fits {
		fits = append(fits, fmt.Sprintf("%v (%s)", s, accel.Bytes(e.Bytes[i])))
	}
	which := "no storage fits"
	switch len(fits) {
	case 0:
	case 1:
		which = fits[0] + " fits"
	default:
		which = strings.Join(fits, " and ") + " fit"
	}
	return fmt.Sprintf("gram: K of %d points needs %s as %v, but %s is allowed; %s", e.N, accel.Bytes(e.Need),
		e.Storage, accel.Bytes(e.Have), which)
}
