package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fileGraph holds what files of a package use of each other: names of declarations by file and file.
type fileGraph map[string]map[string][]string

func filesOf(u *unit) fileGraph {
	g := fileGraph{}
	for _, f := range u.files {
		from := filepath.Base(fset.Position(f.Pos()).Filename)
		g[from] = map[string][]string{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, _ := n.(*ast.Ident)
			if o := u.info.Uses[id]; o != nil && o.Pkg() == u.pkg {
				if to := filepath.Base(fset.Position(o.Pos()).Filename); to != from &&
					!slices.Contains(g[from][to], id.Name) {
					g[from][to] = append(g[from][to], id.Name)
				}
			}
			return true
		})
	}
	return g
}

// path returns the files by which from leads to to, both included, nil if it does not.
func (g fileGraph) path(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, next := range slices.Sorted(maps.Keys(g[from])) {
		if !seen[next] {
			if rest := g.path(next, to, seen); rest != nil {
				return append([]string{from}, rest...)
			}
		}
	}
	return nil
}

// cycles returns a line for each use that closes a cycle.
func (g fileGraph) cycles() (out []string) {
	for from, uses := range g {
		for to, names := range uses {
			if back := g.path(to, from, map[string]bool{}); back != nil {
				out = append(out, fmt.Sprintf("%s uses %s of %s, which leads back to it by %s: move a declaration",
					from, strings.Join(names, ", "), to, strings.Join(back, " → ")))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestFileCycles: within package krrlab no file uses a file that uses it, itself or through others.
func TestFileCycles(t *testing.T) {
	for _, u := range checked(t) {
		if u.path == "krrlab" && !u.test {
			for _, line := range filesOf(u).cycles() {
				t.Error(line)
			}
		}
	}
}

func TestCyclesCanFail(t *testing.T) {
	g := fileGraph{"a": {"b": {"B"}}, "b": {"c": {"C"}}, "c": {"a": {"A"}, "d": {"D"}}, "d": nil}
	if got := g.cycles(); len(got) != 3 ||
		got[0] != "a uses B of b, which leads back to it by b → c → a: move a declaration" {
		t.Errorf("%q", got)
	}
	delete(g["c"], "a")
	if got := g.cycles(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
