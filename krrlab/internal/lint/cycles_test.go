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

// fileGraph holds the uses between files of a package: for each file and each other file, the names that the first uses
// of the second.
type fileGraph map[string]map[string][]string

// filesOf returns the graph of the files of a package.
func filesOf(u *unit) fileGraph {
	graph := fileGraph{}
	for _, file := range u.files {
		from := filepath.Base(fset.Position(file.Pos()).Filename)
		graph[from] = map[string][]string{}
		ast.Inspect(file, func(node ast.Node) bool {
			ident, _ := node.(*ast.Ident)
			if object := u.info.Uses[ident]; object != nil && object.Pkg() == u.pkg {
				if to := filepath.Base(fset.Position(object.Pos()).Filename); to != from &&
					!slices.Contains(graph[from][to], ident.Name) {
					graph[from][to] = append(graph[from][to], ident.Name)
				}
			}
			return true
		})
	}
	return graph
}

// path returns the files on a path of uses between two files, including both, or nil if there is none.
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

// cycles returns a line for each use that is part of a cycle.
func (g fileGraph) cycles() (lines []string) {
	for from, uses := range g {
		for to, names := range uses {
			if back := g.path(to, from, map[string]bool{}); back != nil {
				lines = append(lines, fmt.Sprintf("%s uses %s of %s, which leads back to it by %s: move a declaration",
					from, strings.Join(names, ", "), to, strings.Join(back, " → ")))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// TestFileCycles checks that no file of package krrlab uses a file that uses it in turn, directly or through other
// files.
func TestFileCycles(t *testing.T) {
	for _, u := range checkedUnits(t) {
		if u.path == "krrlab" && !u.test {
			for _, line := range filesOf(u).cycles() {
				t.Error(line)
			}
		}
	}
}

// TestCyclesCanFail checks that a cycle of three files is found, with a line for each of its uses, and that there is
// none once a use is removed.
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
