package golang

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// historyEntry is Go code of a cell that has run without an error.
type historyEntry struct {
	cell string // name of the cell, for example Cell 5
	code string // preceded by line breaks, so that it has its line numbers in the cell; a compiled cell begins with %%go
}

// addHistory adds a segment of a cell to s.history, unless it is a command or the cell is no longer running.
func (s *Session) addHistory(c *cell, seg segment) {
	code := seg.code
	if isCompiledCell(seg) {
		code = seg.command
	} else if seg.command != "" {
		return
	}
	if c.state.Load() != stateRunning {
		return
	}
	s.history = append(s.history, historyEntry{c.name, strings.Repeat("\n", seg.line-1) + code})
}

// isCompiledCell reports whether a segment is a %%go cell.
func isCompiledCell(seg segment) bool { return strings.HasPrefix(seg.command, "%%go\n") }

// testSelection selects the functions that go test runs.
type testSelection struct {
	flags   []string       // flags of go test
	pattern string         // pattern of names and, after slashes, of subtests
	names   *regexp.Regexp // matches the names of the functions
}

// parseSelection parses the argument of %test or %bench: a pattern after flags of go test.
func parseSelection(arg string) (sel testSelection, err error) {
	for _, field := range strings.Fields(arg) {
		switch {
		case strings.HasPrefix(field, "-"):
			sel.flags = append(sel.flags, field)
		case sel.pattern != "":
			return sel, fmt.Errorf("%q and %q: want one pattern of names, and values of flags after =, as in -count=3",
				sel.pattern, field)
		default:
			sel.pattern = field
		}
	}
	sel.pattern = cmp.Or(sel.pattern, ".")
	name, subtests, _ := strings.Cut(sel.pattern, "/")
	if strings.Contains(subtests, "|") { // alternatives, each with its own subtests
		name = "."
	}
	sel.names, err = regexp.Compile(name)
	return sel, err
}

// runTests executes %test or %bench: it runs go test on a program of the cells that have run. The program contains the
// functions with the given prefix and everything that they need (see exporter.keepTests). arg is that of
// parseSelection. patternFlag selects functions by the pattern; otherFlag deselects those of the other kind.
func (s *Session) runTests(arg, prefix, patternFlag, otherFlag string) error {
	sel, err := parseSelection(arg)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	defer func(p []*modules.Package) { s.unreported = p }(s.unreported) // the new interpreter imports the packages again
	x := s.newExporter()
	x.isTest = true
	for _, entry := range s.history {
		x.addCell(entry.cell, NotebookCell{Kind: "code", Text: entry.code})
	}
	for _, note := range x.notes {
		s.printLine(strings.TrimSuffix(note, ": a comment in the program") + ": go test leaves it out")
	}
	rerun, err := x.keepTests(prefix, sel.names)
	if err != nil {
		return err
	}
	// The folder is changed by the first variable, before the variables of cells have their values.
	fmt.Fprintf(&x.decls, "var _ = os.Chdir(%q)\n\nfunc init() { main() }\n", dir)
	if err := x.write(); err != nil {
		return err
	}
	src, err := x.assemble("")
	if err != nil {
		return err
	}
	if rerun != nil {
		s.printLine("for the variables of these functions, go test first runs statements of " +
			strings.Join(rerun, ", "))
	}
	imports := slices.DeleteFunc(slices.Sorted(maps.Keys(x.imports)), isStandard)
	flags := slices.Concat([]string{otherFlag}, sel.flags, []string{patternFlag, sel.pattern})
	err = s.finder.RunTests(s.ctx.Load(), map[string]string{"cells_test.go": string(src)}, imports, flags, os.Stdout)
	if s.ctx.Load().Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// keepTests removes the parts of all cells that no selected function needs: a function whose name has the prefix and
// matches the pattern, as go test defines it. A function needs the last declaration of each name that it mentions, the
// methods of a type, and all statements that mention a variable. It is an error if there is no such function, or if a
// statement is needed that uses a variable which was declared again later. keepTests returns the names of the cells
// with needed statements.
func (x *exporter) keepTests(prefix string, pattern *regexp.Regexp) (rerun []string, err error) {
	latest := map[string]types.Object{} // last object of each name
	for p := range x.allParts() {
		for _, o := range declaredObjects(p) {
			latest[o.Name()] = o
		}
	}
	needed := objectSet{}
	for name, o := range latest {
		_, isFunc := o.(*types.Func)
		if isFunc && strings.HasPrefix(name, prefix) && pattern.MatchString(name) &&
			strings.HasSuffix(engine.TypeString(o.Type()), "*testing."+prefix[:1]+")") {
			needed[o] = true
		}
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("no such function %sXxx(%s *testing.%s) in the cells that have run without an error",
			prefix, strings.ToLower(prefix[:1]), prefix[:1])
	}
	isKept := x.neededParts(needed, latest)
	for i, c := range x.cells {
		x.cells[i].parts = slices.DeleteFunc(c.parts, func(p engine.CellPart) bool { return !isKept[p.Node] })
		for _, p := range x.cells[i].parts {
			if _, isStatement := p.Node.(ast.Stmt); isStatement && !slices.Contains(rerun, c.name) {
				rerun = append(rerun, c.name)
			}
			if err := useLatest(c.name, p, latest); err != nil {
				return nil, err
			}
		}
	}
	return rerun, nil
}

// neededParts returns the syntax of the parts of all cells that needed objects need, directly or indirectly. It adds
// the objects that these parts use to needed.
func (x *exporter) neededParts(needed objectSet, latest map[string]types.Object) map[ast.Node]bool {
	isKept := map[ast.Node]bool{}
	for isChanged := true; isChanged; { // until the parts found so far need no others
		isChanged = false
		for p := range x.allParts() {
			if isKept[p.Node] || !isNeeded(p, needed) {
				continue
			}
			isKept[p.Node], isChanged = true, true
			for name := range p.Objects {
				if o := latest[name]; o != nil {
					needed[o] = true
				}
			}
		}
	}
	return isKept
}

// useLatest replaces the objects of a part by the last ones of their names. It returns an error if the part is a
// statement of the given cell and uses a variable that was declared again.
func useLatest(cell string, p engine.CellPart, latest map[string]types.Object) error {
	_, isStatement := p.Node.(ast.Stmt)
	for name, o := range p.Objects {
		latestObject := cmp.Or(latest[name], o)
		if _, isVar := o.(*types.Var); isVar && isStatement && o != latestObject {
			return fmt.Errorf("%s uses the %s of before it was declared again: run %[1]s again, or give one of them "+
				"another name", cell, name)
		}
		p.Objects[name] = latestObject
	}
	return nil
}

// isNeeded reports whether a part of a cell is needed because it declares a needed object, is a method of a needed
// type, or is a statement that mentions a needed variable. Imports are needed.
func isNeeded(p engine.CellPart, needed objectSet) bool {
	objects := declaredObjects(p)
	switch n := p.Node.(type) {
	case ast.Stmt:
		for _, o := range p.Objects {
			if _, isVar := o.(*types.Var); isVar {
				objects = append(objects, o)
			}
		}
	case *ast.FuncDecl:
		if n.Recv != nil {
			name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*"), "[")
			objects = append(objects, p.Objects[name])
		}
	}
	return isDecl(p, token.IMPORT) || slices.ContainsFunc(objects, func(o types.Object) bool { return needed[o] })
}
