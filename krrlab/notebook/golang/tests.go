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
	code string // the code, after as many line breaks as precede it in the cell; a compiled cell begins with %%go
}

// addHistory adds a segment of a cell to s.history, unless it is a command other than %%go or the cell is no longer
// running.
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
// functions with the given prefix and everything that they need (see exporter.removeAllButTests). parseSelection
// explains arg. The prefix is Test or Benchmark. patternFlag selects functions of this kind by the pattern; otherFlag
// deselects all functions of the other kind.
func (s *Session) runTests(arg, prefix, patternFlag, otherFlag string) error {
	sel, err := parseSelection(arg)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// The new interpreter imports the packages again, which need not be reported again.
	defer func(saved []*modules.Package) { s.unreported = saved }(s.unreported)
	exp := s.newExporter()
	exp.isTest = true
	for _, entry := range s.history {
		exp.addCell(entry.cell, NotebookCell{Kind: "code", Text: entry.code})
	}
	for _, note := range exp.notes {
		s.printLine(strings.TrimSuffix(note, ": a comment in the program") + ": go test leaves it out")
	}
	rerunCells, err := exp.removeAllButTests(prefix, sel.names)
	if err != nil {
		return err
	}
	// The initialization of the first variable changes the folder, before the variables of cells are initialized.
	fmt.Fprintf(&exp.decls, "var _ = os.Chdir(%q)\n\nfunc init() { main() }\n", dir)
	if err := exp.write(); err != nil {
		return err
	}
	src, err := exp.assemble("")
	if err != nil {
		return err
	}
	if rerunCells != nil {
		s.printLine("for the variables of these functions, go test first runs statements of " +
			strings.Join(rerunCells, ", "))
	}
	imports := slices.DeleteFunc(slices.Sorted(maps.Keys(exp.imports)), isStandard)
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

// removeAllButTests removes all parts of cells that no selected function needs. A function is selected if its name has
// the prefix and matches the pattern, and if its parameter is a *testing.T or *testing.B, of which the letter is the
// first one of the prefix. A function needs the last declaration of each name in its code, the methods of a type, and
// all statements that mention a variable.
//
// It returns the names of the cells with needed statements. It returns an error if no function is selected, or if a
// needed statement uses a variable that was declared again later.
func (exp *exporter) removeAllButTests(prefix string, pattern *regexp.Regexp) (rerunCells []string, err error) {
	latest := map[string]types.Object{} // last object of each name
	for cellPart := range exp.allParts() {
		for _, obj := range declaredObjects(cellPart) {
			latest[obj.Name()] = obj
		}
	}
	needed := objectSet{}
	for name, obj := range latest {
		_, isFunc := obj.(*types.Func)
		if isFunc && strings.HasPrefix(name, prefix) && pattern.MatchString(name) &&
			strings.HasSuffix(engine.TypeString(obj.Type()), "*testing."+prefix[:1]+")") {
			needed[obj] = true
		}
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("no such function %sXxx(%s *testing.%s) in the cells that have run without an error",
			prefix, strings.ToLower(prefix[:1]), prefix[:1])
	}
	isKept := exp.neededParts(needed, latest)
	for i, c := range exp.cells {
		exp.cells[i].parts = slices.DeleteFunc(c.parts,
			func(cellPart engine.CellPart) bool { return !isKept[cellPart.Node] })
		for _, cellPart := range exp.cells[i].parts {
			if _, isStatement := cellPart.Node.(ast.Stmt); isStatement && !slices.Contains(rerunCells, c.name) {
				rerunCells = append(rerunCells, c.name)
			}
			if err := useLatest(c.name, cellPart, latest); err != nil {
				return nil, err
			}
		}
	}
	return rerunCells, nil
}

// neededParts returns the syntax of the parts of all cells that needed objects need, directly or indirectly. It adds
// the objects that these parts use to needed.
func (exp *exporter) neededParts(needed objectSet, latest map[string]types.Object) map[ast.Node]bool {
	isKept := map[ast.Node]bool{}
	for isChanged := true; isChanged; { // until the parts found so far need no others
		isChanged = false
		for cellPart := range exp.allParts() {
			if isKept[cellPart.Node] || !isNeeded(cellPart, needed) {
				continue
			}
			isKept[cellPart.Node], isChanged = true, true
			for name := range cellPart.Objects {
				if obj := latest[name]; obj != nil {
					needed[obj] = true
				}
			}
		}
	}
	return isKept
}

// useLatest replaces the objects of a part by the last ones of their names. It returns an error if the part is a
// statement of the given cell and uses a variable that was declared again.
func useLatest(cell string, cellPart engine.CellPart, latest map[string]types.Object) error {
	_, isStatement := cellPart.Node.(ast.Stmt)
	for name, obj := range cellPart.Objects {
		latestObject := cmp.Or(latest[name], obj)
		if _, isVar := obj.(*types.Var); isVar && isStatement && obj != latestObject {
			return fmt.Errorf("%s uses the %s of before it was declared again: run %[1]s again, or give one of them "+
				"another name", cell, name)
		}
		cellPart.Objects[name] = latestObject
	}
	return nil
}

// isNeeded reports whether a part of a cell is needed because it declares a needed object, is a method of a needed
// type, or is a statement that mentions a needed variable. Imports are needed.
func isNeeded(cellPart engine.CellPart, needed objectSet) bool {
	objects := declaredObjects(cellPart)
	switch node := cellPart.Node.(type) {
	case ast.Stmt:
		for _, obj := range cellPart.Objects {
			if _, isVar := obj.(*types.Var); isVar {
				objects = append(objects, obj)
			}
		}
	case *ast.FuncDecl:
		if node.Recv != nil {
			name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(node.Recv.List[0].Type), "*"), "[")
			objects = append(objects, cellPart.Objects[name])
		}
	}
	return isDecl(cellPart, token.IMPORT) ||
		slices.ContainsFunc(objects, func(obj types.Object) bool { return needed[obj] })
}
