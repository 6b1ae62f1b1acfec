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

// upward lists the uses within package krrlab that close a cycle between its files: the first file uses
// declarations of the second, which uses the first's, itself or through others. The list only shrinks: move
// the declaration to the lower file, and strike the line out.
var upward = map[[2]string]bool{
	{"checkpoint.go", "solve.go"}:   true,
	{"config.go", "backend.go"}:     true,
	{"config.go", "checkpoint.go"}:  true,
	{"config.go", "precond.go"}:     true,
	{"lab.go", "backend.go"}:        true,
	{"lab.go", "problem.go"}:        true,
	{"lab.go", "residual.go"}:       true,
	{"lambdap.go", "backend.go"}:    true,
	{"multilevel.go", "backend.go"}: true,
	{"precond.go", "problem.go"}:    true,
	{"precond.go", "solution.go"}:   true,
	{"problem.go", "matrices.go"}:   true,
	{"problem.go", "residual.go"}:   true,
	{"quality.go", "backend.go"}:    true,
	{"residual.go", "solve.go"}:     true,
	{"sketchsize.go", "backend.go"}: true,
	{"solution.go", "ranks.go"}:     true,
	{"solve.go", "backend.go"}:      true,
	{"solve.go", "matrices.go"}:     true,
	{"solve.go", "ranks.go"}:        true,
	{"statdim.go", "backend.go"}:    true,
}

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
				if to := filepath.Base(fset.Position(o.Pos()).Filename); to != from && !slices.Contains(g[from][to], id.Name) {
					g[from][to] = append(g[from][to], id.Name)
				}
			}
			return true
		})
	}
	return g
}

// path returns the files by which from leads to to, both included, nil if it does not.
func (g fileGraph) path(from, to string, skip map[[2]string]bool, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, next := range slices.Sorted(maps.Keys(g[from])) {
		if !seen[next] && !skip[[2]string{from, next}] {
			if rest := g.path(next, to, skip, seen); rest != nil {
				return append([]string{from}, rest...)
			}
		}
	}
	return nil
}

// cycles returns a line for each use that closes a cycle and is not allowed, and for each allowed one that
// closes none.
func (g fileGraph) cycles(allowed map[[2]string]bool) (out []string) {
	for from, uses := range g {
		for to, names := range uses {
			back := g.path(to, from, allowed, map[string]bool{})
			switch edge := [2]string{from, to}; {
			case back != nil && !allowed[edge]:
				out = append(out, fmt.Sprintf("%s uses %s of %s, which leads back to it by %s: move a declaration", from, strings.Join(names, ", "), to, strings.Join(back, " → ")))
			case back == nil && allowed[edge]:
				out = append(out, fmt.Sprintf("{%q, %q} closes no cycle any more: strike it out of upward", from, to))
			}
		}
	}
	for e := range allowed {
		if g[e[0]][e[1]] == nil {
			out = append(out, fmt.Sprintf("%s uses nothing of %s any more: strike it out of upward", e[0], e[1]))
		}
	}
	slices.Sort(out)
	return out
}

// TestFileCycles: within package krrlab no file uses a file that uses it, but for those of upward.
func TestFileCycles(t *testing.T) {
	for _, u := range checked(t) {
		if u.path == "krrlab" && !u.test {
			for _, line := range filesOf(u).cycles(upward) {
				t.Error(line)
			}
		}
	}
}

func TestCyclesCanFail(t *testing.T) {
	g := fileGraph{"a": {"b": {"B"}}, "b": {"c": {"C"}}, "c": {"a": {"A"}, "d": {"D"}}, "d": nil}
	if got := g.cycles(nil); len(got) != 3 || got[0] != "a uses B of b, which leads back to it by b → c → a: move a declaration" {
		t.Errorf("%q", got)
	}
	if got := g.cycles(map[[2]string]bool{{"c", "a"}: true}); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got := g.cycles(map[[2]string]bool{{"c", "a"}: true, {"c", "d"}: true, {"a", "d"}: true}); len(got) != 2 || !strings.Contains(got[1], `{"c", "d"} closes no cycle`) {
		t.Errorf("%q", got)
	}
}
