package mutants

import (
	"slices"
	"strings"
)

// Target is a package whose code is broken, and who is to notice.
type Target struct {
	Package    string   // its path in the module
	Files      []string // base names of the files that are changed; none means all
	Dependants []string // packages whose tests see the mutants that the package's own let live
	Share      int      // of the mutants asked for, relative to the others
}

func (t Target) wants(file string) bool { return len(t.Files) == 0 || slices.Contains(t.Files, file) }

// sample draws up to n of the sites: by turns of the operators, in the order of the hashes,
// those that compile and do not touch one another. tried is how many did not compile.
func (s *source) sample(all []*Site, n, seed int) (drawn []*Site, broken int) {
	byOp := map[string][]*Site{}
	var ops []string
	for _, site := range all {
		site.draw(seed)
		if byOp[site.Op] == nil {
			ops = append(ops, site.Op)
		}
		byOp[site.Op] = append(byOp[site.Op], site)
	}
	slices.Sort(ops)
	for _, op := range ops {
		slices.SortFunc(byOp[op], func(a, b *Site) int { return strings.Compare(a.hash, b.hash) })
	}
	for left := true; left && len(drawn) < n; {
		left = false
		for _, op := range ops {
			for len(byOp[op]) > 0 && len(drawn) < n {
				site := byOp[op][0]
				byOp[op] = byOp[op][1:]
				left = true
				if slices.ContainsFunc(drawn, site.overlaps) {
					continue
				}
				if s.compiles([]*Site{site}) == nil {
					drawn = append(drawn, site)
					break
				}
				broken++
			}
		}
	}
	return drawn, broken
}

// share divides n among targets by their shares, at least one each.
func share(n int, targets []Target) []int {
	total := 0
	for _, t := range targets {
		total += t.Share
	}
	out := make([]int, len(targets))
	given, sum := 0, 0
	for i, t := range targets {
		sum += t.Share
		out[i] = max(1, n*sum/total-given)
		given += out[i]
	}
	return out
}
