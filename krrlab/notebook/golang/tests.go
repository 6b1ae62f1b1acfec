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

// recordedSegment is Go code of a cell that has run.
type recordedSegment struct {
	cell string // name of the cell, for example Cell 5
	code string // at the lines that it has in the cell; a compiled cell begins with %%go
}

// recordSegment adds a segment of a cell to s.history, unless it is a command or the cell is no longer running.
func (s *Session) recordSegment(c *cell, seg segment) {
	code := seg.code
	if isCompiledCell(seg) {
		code = seg.command
	} else if seg.command != "" {
		return
	}
	if c.state.Load() != stateRunning {
		return
	}
	s.history = append(s.history, recordedSegment{c.name, strings.Repeat("\n", seg.line-1) + code})
}

// isCompiledCell reports whether a segment is a %%go cell.
func isCompiledCell(seg segment) bool { return strings.HasPrefix(seg.command, "%%go\n") }

// runTests executes %test or %bench: it runs go test on a program of the cells that have run. The program contains the
// functions with the given prefix and everything that they need (see exporter.keepTests). arg is a pattern of names,
// after flags of go test. patternFlag selects functions by the pattern; otherFlag deselects those of the other kind.
func (s *Session) runTests(arg, prefix, patternFlag, otherFlag string) error {
	flags, pattern := []string{otherFlag}, ""
	for _, field := range strings.Fields(arg) {
		switch {
		case strings.HasPrefix(field, "-"):
			flags = append(flags, field)
		case pattern != "":
			return fmt.Errorf("%q and %q: want one pattern of names, and values of flags after =, as in -count=3",
				pattern, field)
		default:
			pattern = field
		}
	}
	pattern = cmp.Or(pattern, ".")
	name, subtests, _ := strings.Cut(pattern, "/")
	if strings.Contains(subtests, "|") { // alternatives, each with its own subtests
		name = "."
	}
	names, err := regexp.Compile(name)
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
	var cells []NotebookCell
	for _, r := range s.history {
		cells = append(cells, NotebookCell{Kind: "code", Text: r.code})
		x.outline(r.cell, cells[len(cells)-1])
	}
	for _, note := range x.notes {
		s.printLine(strings.TrimSuffix(note, ": a comment in the program") + ": go test leaves it out")
	}
	rerun, err := x.keepTests(prefix, names)
	if err != nil {
		return err
	}
	// The folder is changed by the first variable, before the variables of cells have their values.
	fmt.Fprintf(&x.decls, "var _ = os.Chdir(%q)\n\nfunc init() { main() }\n", dir)
	if err := x.write(cells); err != nil {
		return err
	}
	src, err := x.complete("")
	if err != nil {
		return err
	}
	if rerun != nil {
		s.printLine("for the variables of these functions, go test first runs statements of " +
			strings.Join(rerun, ", "))
	}
	imports := slices.DeleteFunc(slices.Sorted(maps.Keys(x.imports)), isStandard)
	err = s.finder.Test(s.ctx.Load(), map[string]string{"cells_test.go": string(src)}, imports,
		append(flags, patternFlag, pattern), os.Stdout)
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
	latest := map[string]types.Object{}
	for _, c := range x.cells {
		for _, p := range c.parts {
			for _, o := range definedBy(p) {
				latest[o.Name()] = o
			}
		}
	}
	needed, isKept := map[types.Object]bool{}, map[ast.Node]bool{}
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
	// Keep the needed parts, which need further objects, until no more are found.
	for isChanged := true; isChanged; {
		isChanged = false
		for _, c := range x.cells {
			for _, p := range c.parts {
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
	}
	for i, c := range x.cells {
		x.cells[i].parts = slices.DeleteFunc(c.parts, func(p engine.Fragment) bool { return !isKept[p.Node] })
		for _, p := range x.cells[i].parts {
			_, isStatement := p.Node.(ast.Stmt)
			if isStatement && !slices.Contains(rerun, c.name) {
				rerun = append(rerun, c.name)
			}
			for name, o := range p.Objects {
				latestObject := cmp.Or(latest[name], o)
				if _, isVar := o.(*types.Var); isVar && isStatement && o != latestObject {
					return nil, fmt.Errorf("%s uses the %s of before it was declared again: run %[1]s again, or give "+
						"one of them another name", c.name, name)
				}
				p.Objects[name] = latestObject
			}
		}
	}
	return rerun, nil
}

// isNeeded reports whether a part of a cell is needed because it declares a needed object, is a method of a needed
// type, or is a statement that mentions a needed variable. Imports are needed.
func isNeeded(p engine.Fragment, needed map[types.Object]bool) bool {
	objects := definedBy(p)
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
