package tune

import (
	"context"
	"math"
)

// lattice evaluates a grid.
func (s *search) lattice(ctx context.Context, q int, active []*family) error {
	for _, f := range active {
		for i := 0; i < len(f.grid[0]); i += 2 {
			for j := 0; j < len(f.grid[1]); j += 2 {
				if _, err := s.try(ctx, q, f, at{f.grid[0][i], f.grid[1][j]}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// golden searches along λ and σ in turn, by golden section on the grid, until nothing changes.
func (s *search) golden(ctx context.Context, q int, active []*family) error {
	for _, f := range active {
		c := [2]int{len(f.grid[0]) / 2, len(f.grid[1]) / 2}
		for range 6 {
			before := c
			for _, k := range []int{1, 0} {
				value := func(i int) (float64, error) {
					at := at{f.grid[0][c[0]], f.grid[1][c[1]]}
					at[k] = f.grid[k][i]
					p, err := s.try(ctx, q, f, at)
					if err != nil || p.loss == nil {
						return math.Inf(1), err
					}
					return p.loss.objective(), nil
				}
				i, err := section(0, len(f.grid[k])-1, value)
				if err != nil {
					return err
				}
				c[k] = i
			}
			if c == before {
				break
			}
		}
	}
	return nil
}

// section returns where a function of the whole numbers from lo to hi is least, if it falls and then rises.
func section(lo, hi int, f func(int) (float64, error)) (int, error) {
	const golden = 0.381966
	for hi-lo > 2 {
		step := max(1, int(math.Round(golden*float64(hi-lo))))
		a, b := lo+step, hi-step
		if a >= b {
			a, b = lo+(hi-lo)/2, lo+(hi-lo)/2+1
		}
		fa, err := f(a)
		if err != nil {
			return 0, err
		}
		fb, err := f(b)
		if err != nil {
			return 0, err
		}
		if fa <= fb {
			hi = b
		} else {
			lo = a
		}
	}
	best, least := lo, math.Inf(1)
	for i := lo; i <= hi; i++ {
		v, err := f(i)
		if err != nil {
			return 0, err
		}
		if v < least {
			best, least = i, v
		}
	}
	return best, nil
}
