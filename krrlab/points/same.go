package points

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Same returns of each point of all the sets, one after the other, the first that equals it: i where none before it does. Points are
// equal if all their numbers are, −0 and 0 being one and NaN equal to NaN, however they are stored. Work: a hash of each number,
// and comparisons where hashes agree; memory: 24 bytes for each point.
func Same(sets ...Points) []int {
	type hashed struct {
		h  uint64
		at int
	}
	var all []hashed
	var r, s nonzeros
	starts := make([]int, len(sets)+1)
	for k, x := range sets {
		n, _ := x.Dims()
		for i := range n {
			r.read(x, i)
			all = append(all, hashed{r.hash(), starts[k] + i})
		}
		starts[k+1] = starts[k] + n
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.h, b.h), cmp.Compare(a.at, b.at)) })
	load := func(r *nonzeros, at int) {
		k := sort.Search(len(sets), func(k int) bool { return starts[k+1] > at })
		r.read(sets[k], at-starts[k])
	}
	same := make([]int, len(all))
	var others []int // of the same hash, all different
	for q, v := range all {
		if q == 0 || all[q-1].h != v.h {
			others = others[:0]
		}
		same[v.at] = v.at
		if len(others) > 0 {
			load(&r, v.at)
		}
		i := slices.IndexFunc(others, func(at int) bool {
			load(&s, at)
			return r.equal(&s)
		})
		if i >= 0 {
			same[v.at] = others[i]
		} else {
			others = append(others, v.at)
		}
	}
	return same
}

// Repeated returns how many points equal one before them.
func Repeated(same []int) (count int) {
	for i, first := range same {
		if first != i {
			count++
		}
	}
	return count
}

// nonzeros are those of a point of dimension d.
type nonzeros struct {
	d      int
	at     []int
	v, row []float64
}

func (r *nonzeros) read(x Points, i int) {
	_, r.d = x.Dims()
	r.at, r.v = r.at[:0], r.v[:0]
	add := func(j int, v float64) {
		if v != 0 {
			r.at, r.v = append(r.at, j), append(r.v, v)
		}
	}
	if c, ok := x.(*CSR); ok {
		col, val := c.Row(i)
		for k, j := range col {
			add(int(j), float64(val[k]))
		}
		return
	}
	r.row = slices.Grow(r.row[:0], r.d)[:r.d]
	x.RowTo(r.row, i)
	for j, v := range r.row {
		add(j, v)
	}
}

func (r *nonzeros) hash() uint64 {
	h := uint64(r.d)
	for k, v := range r.v {
		bits := math.Float64bits(v)
		if v != v {
			bits = 1
		}
		h = (h ^ uint64(r.at[k])<<40 ^ bits) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func (r *nonzeros) equal(s *nonzeros) bool {
	return r.d == s.d && slices.Equal(r.at, s.at) && slices.EqualFunc(r.v, s.v, func(a, b float64) bool { return a == b || a != a && b != b })
}
