package pcg

import (
	"fmt"
	"slices"
)

// check returns an error, to follow "the state to resume", unless v is a state that a solve like s
// can come to between two iterations. A state is signed by whoever wrote it, so nothing is taken
// on trust that an index or a loop depends on.
func (v *saved) check(s *solver, block bool) error {
	t := s.t
	if v.N != s.n || v.T != t || v.Block != block || v.K < 1 || v.K > t {
		return fmt.Errorf("is of %d×%d numbers in another kind of solve than this of %d×%d", v.N, v.T, s.n, t)
	}
	for what, n := range map[string]int{
		"targets": len(v.Target), "earlier residuals": len(v.Before), "residuals": len(v.RelRes), "steps": len(v.Still),
		"columns": len(v.Columns), "ρ": len(v.Rho),
	} {
		if n != t {
			return fmt.Errorf("has %s of %d columns, want %d", what, n, t)
		}
	}
	if err := v.checkBounds(s); err != nil {
		return err
	}
	if err := v.checkCounts(); err != nil {
		return err
	}
	if err := v.checkColumns(s); err != nil {
		return err
	}
	if block {
		return v.checkBlock(max(s.n*t, roomForCond))
	}
	switch {
	case v.K != len(v.Cols):
		return fmt.Errorf("has blocks of %d columns, %d of them active", v.K, len(v.Cols))
	case len(v.C) > 0 || len(v.S) > 0 || len(v.Width) > 0:
		return fmt.Errorf("has what only a block solve has")
	}
	return nil
}

// checkCounts is the part of check for iterations, restarts and the history.
func (v *saved) checkCounts() error {
	if v.Iterations < 0 || v.Restarts < 0 || v.Restarts > maxRestarts || v.Restarts != len(v.RestartsAt) || !slices.IsSorted(v.RestartsAt) {
		return fmt.Errorf("has %d iterations with %d restarts at %v", v.Iterations, v.Restarts, v.RestartsAt)
	}
	if n := len(v.RestartsAt); n > 0 && (v.RestartsAt[0] < 0 || v.RestartsAt[n-1] > v.Iterations) {
		return fmt.Errorf("has restarts at %v of %d iterations", v.RestartsAt, v.Iterations)
	}
	rows := [len(v.History)]int{v.Iterations + 1, v.Iterations, v.Iterations, v.Iterations, 0}
	if v.Block {
		rows[1], rows[2] = 0, 0
	}
	if v.LambdaMin > 0 {
		rows[4] = v.Iterations + 1
	}
	for i, h := range v.History {
		if len(h)%v.T > 0 || len(h)/v.T != rows[i] {
			return fmt.Errorf("has a history of %d numbers for %d iterations of %d columns", len(h), v.Iterations, v.T)
		}
		for j, x := range h {
			ended := v.Columns[j%v.T].Status == Breakdown
			if !ended && (!finite(x) && i < 4 || i != 1 && i != 2 && x < 0) {
				return fmt.Errorf("has %v in its history", x)
			}
		}
	}
	return nil
}

// checkBounds is the part for the upper bounds of the error, which may be NaN.
func (v *saved) checkBounds(s *solver) error {
	if v.LambdaMin != s.opt.LambdaMin || len(v.Gamma) != len(s.bounds.gamma) {
		return fmt.Errorf("has bounds with %d numbers for λ_min = %v, want %d for %v", len(v.Gamma), v.LambdaMin, len(s.bounds.gamma), s.opt.LambdaMin)
	}
	return nil
}

// checkColumns is the part for what is known of each column.
func (v *saved) checkColumns(s *solver) error {
	active := make([]bool, v.T)
	for j, c := range v.Cols {
		if c < 0 || c >= v.T || j > 0 && c <= v.Cols[j-1] {
			return fmt.Errorf("has the active columns %v of %d", v.Cols, v.T)
		}
		active[c] = true
		if !v.Block && !(v.Rho[j] > 0 && finite(v.Rho[j])) {
			return fmt.Errorf("has ρ = %v in column %d", v.Rho[j], c)
		}
	}
	if len(v.Cols) == 0 {
		return fmt.Errorf("has no active column")
	}
	for c, col := range v.Columns {
		switch {
		case col.Status < Active || col.Status >= Canceled || (col.Status == Active) != active[c] || active[c] && s.ynorm[c] == 0:
			return fmt.Errorf("has column %d as %v", c, col.Status)
		case s.ynorm[c] == 0 && col.Status != Converged:
			return fmt.Errorf("has column %d, of zeros, as %v", c, col.Status)
		case col.Iterations < 0 || col.Iterations > v.Iterations || v.Still[c] < 0 || v.Still[c] > v.Iterations:
			return fmt.Errorf("has %d iterations of column %d, of %d in all", col.Iterations, c, v.Iterations)
		case !(v.Target[c] >= 0 && finite(v.Target[c])) || !v.beforeFits(c):
			return fmt.Errorf("has the target %v after %v in column %d", v.Target[c], v.Before[c], c)
		case col.Status != Breakdown && !(v.RelRes[c] >= 0 && finite(v.RelRes[c])):
			return fmt.Errorf("has the residual %v in column %d", v.RelRes[c], c)
		}
	}
	return nil
}

// beforeFits reports whether the true residual before the last restart of column c can be one: a column
// is restarted because it misses the tolerance, if only by its rounding, and its X is kept then.
func (v *saved) beforeFits(c int) bool {
	b := v.Before[c]
	return b == 0 || v.Kept && v.Restarts > 0 && (b == givenUp || b > 0 && finite(b))
}

// checkBlock is the part for block solves, which keep at most so many numbers for Cond.
func (v *saved) checkBlock(room int) error {
	if len(v.C) != v.T*v.T || len(v.S) != v.T*v.T || slices.ContainsFunc(v.C, notFinite) || slices.ContainsFunc(v.S, notFinite) {
		return fmt.Errorf("has no C and S of %d×%d finite numbers", v.T, v.T)
	}
	steps := len(v.Width)
	if steps > v.Iterations || len(v.LanczosPi) != steps || len(v.LanczosS) != steps || v.Room < 0 || v.Room > room {
		return fmt.Errorf("has %d steps of %d iterations, and room for %d numbers", steps, v.Iterations, v.Room)
	}
	before, used := 0, 0
	for k, m := range v.Width {
		if m < 1 || m > v.T || len(v.LanczosPi[k]) != m*m || len(v.LanczosS[k]) != m*before ||
			slices.ContainsFunc(v.LanczosPi[k], notFinite) || slices.ContainsFunc(v.LanczosS[k], notFinite) {
			return fmt.Errorf("has no step %d of %d directions after %d", k, m, before)
		}
		used += m * (m + before)
		before = m
	}
	if v.Room > 0 && used+v.Room != room || used > room {
		return fmt.Errorf("has %d numbers of its steps and room for %d, want %d in all", used, v.Room, room)
	}
	return nil
}

func notFinite(v float64) bool { return !finite(v) }

// restored reports whether the blocks of k columns, the active columns of X and what is kept are finite.
func (s *solver) restored(k int) bool {
	for _, b := range s.buf[:2] {
		if slices.ContainsFunc(b[:s.n*k], notFinite) {
			return false
		}
	}
	for i := range s.n {
		for _, c := range s.cols {
			if !finite(s.x.At(i, c)) {
				return false
			}
		}
	}
	return s.kept == nil || !slices.ContainsFunc(s.kept.RawMatrix().Data, notFinite)
}
