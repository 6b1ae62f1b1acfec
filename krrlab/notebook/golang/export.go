package golang

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// NotebookCell is a cell of a notebook file.
type NotebookCell struct {
	Kind string // code, markdown or raw
	Tags []string
	Text string
}

// Program returns a program, in the format of ProgramCells, that executes the cells of a notebook in order. The names
// of the files to which the program writes pictures begin with pictures. The notes list the lines that are
// only comments in the program: commands, and cells that fail to compile or have the tag raises-exception.
//
// Program returns an error that names the cell if a name is declared twice, since a program has only one object of each
// name at the level of the package and of main, if a cell declares main or init, and if the program does not compile.
func (s *Session) Program(cells []NotebookCell, pictures string) (src []byte, notes []string, err error) {
	s.runOnWorker(func() {
		x := s.newExporter()
		number := 0
		for _, c := range cells {
			if c.Kind == "code" {
				number++
			}
			x.addCell(fmt.Sprint("Cell ", number), c)
		}
		notes = x.notes
		if err = x.write(); err == nil {
			src, err = x.assemble(pictures)
		}
	})
	return src, notes, err
}

// newExporter returns an exporter without cells.
func (s *Session) newExporter() *exporter {
	x := &exporter{s: s, imports: map[string]string{}, hoisted: objectSet{},
		declared: objectSet{}, helpers: map[string]string{}}
	x.interp, x.builtIns = s.newInterpreter()
	x.objects = maps.Clone(x.builtIns)
	return x
}

// objectSet is a set of the objects that it maps to true.
type objectSet map[types.Object]bool

// exporter writes the cells of a notebook as a program.
type exporter struct {
	s        *Session
	interp   *engine.Engine          // type-checks the cells
	builtIns map[string]types.Object // names that cells can use without declaring or importing them
	cells    []exportedCell
	objects  map[string]types.Object // objects that the program declares or imports so far, by name
	// hoisted has the variables that functions use. They become variables of the package, all others variables of main.
	hoisted  objectSet
	declared objectSet         // variables that the program declares so far
	imports  map[string]string // import specifications without the path, by path
	decls    strings.Builder   // declarations of the package
	main     strings.Builder   // body of main
	helpers  map[string]string // declarations for built-in names of cells, by name
	unused   []string          // variables of main without a use
	notes    []string          // see Program
	isTest   bool              // the program is a file of go test (see runTests)
}

// exportedCell is a cell of the notebook.
type exportedCell struct {
	NotebookCell
	name       string            // of a code cell, for example Cell 5
	code       string            // source with commands as comments
	parts      []engine.CellPart // declarations and statements of the code; nil if the whole cell becomes a comment
	isCompiled bool              // a %%go cell
}

// commentMark begins lines of a program that are comments there, but not in the notebook.
const commentMark = "//krrlab: "

// asComment returns lines as comments.
func asComment(text string) string {
	return commentMark + strings.ReplaceAll(text, "\n", "\n"+commentMark)
}

// addCell adds a cell to x.cells, with the parts of its code, and notes about what becomes a comment. name is the name
// of a code cell.
func (x *exporter) addCell(name string, c NotebookCell) {
	if c.Kind != "code" {
		text := "// " + strings.ReplaceAll(c.Text, "\n", "\n// ")
		x.cells = append(x.cells, exportedCell{NotebookCell: c, code: text})
		return
	}
	e, isComment := exportedCell{NotebookCell: c, name: name}, slices.Contains(c.Tags, "raises-exception")
	note := func(text string) {
		x.notes = append(x.notes, fmt.Sprintf("%s: %s: a comment in the program", strings.ToLower(name), text))
	}
	lines := strings.Split(c.Text, "\n")
	for i, l := range lines {
		switch {
		case !isCommand(l) || insideGo(lines[:i]):
		case strings.TrimSpace(l) == "%%go":
			e.isCompiled, lines[i] = true, "" // the comment that begins the cell says it
		default:
			note(strings.TrimSpace(l))
			isComment, lines[i] = isComment || isCellCommand(l), asComment(l)
		}
	}
	if slices.Contains(c.Tags, "raises-exception") {
		note("its tag raises-exception")
	}
	if !isComment {
		var err error
		if e.parts, e.code, err = x.interp.Outline(name, strings.Join(lines, "\n")); err != nil {
			isComment = true
			note(x.s.compileFailure(&cell{name: name}, err).Value)
		}
	}
	if isComment {
		e.code = asComment(c.Text)
	}
	x.cells = append(x.cells, e)
}

// hoist adds variables to x.hoisted: those that declarations of the package use, and those that := declares together
// with a hoisted one. It reports whether it has added one; the caller repeats it until it has not.
func (x *exporter) hoist() (added bool) {
	for p := range x.allParts() {
		vars := declaredObjects(p)
		isHoisted := slices.ContainsFunc(vars, func(o types.Object) bool { return x.hoisted[o] })
		if isDecl(p, token.CONST, token.TYPE, token.FUNC) {
			vars, isHoisted = slices.Collect(maps.Values(p.Objects)), true
		}
		for _, o := range vars {
			if v, ok := o.(*types.Var); ok && isHoisted && !x.hoisted[v] {
				x.hoisted[v], added = true, true
			}
		}
	}
	return added
}

// allParts returns the parts of all cells, in order.
func (x *exporter) allParts() iter.Seq[engine.CellPart] {
	return func(yield func(engine.CellPart) bool) {
		for _, c := range x.cells {
			for _, p := range c.parts {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// declaredObjects returns the objects that a declaration or a := of a cell declares, without methods.
func declaredObjects(p engine.CellPart) (out []types.Object) {
	var names []*ast.Ident
	switch n := p.Node.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
				names = append(names, id)
			}
		}
	case *ast.FuncDecl:
		if n.Recv == nil {
			names = append(names, n.Name)
		}
	case *ast.GenDecl:
		for _, spec := range n.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			}
		}
	}
	for _, id := range names {
		if o := p.Objects[id.Name]; o != nil {
			out = append(out, o)
		}
	}
	return out
}

// isDecl reports whether a part is a declaration by one of the keywords.
func isDecl(p engine.CellPart, keywords ...token.Token) bool {
	switch d := p.Node.(type) {
	case *ast.FuncDecl:
		return slices.Contains(keywords, token.FUNC)
	case *ast.GenDecl:
		return slices.Contains(keywords, d.Tok)
	}
	return false
}

// write writes all cells to x.main and x.decls.
func (x *exporter) write() error {
	for x.hoist() {
	}
	for _, c := range x.cells {
		mark, text := "["+c.Kind+"]", ""
		if c.Kind == "code" {
			mark = strings.ToLower(c.name)
		}
		if c.isCompiled {
			mark += " %%go"
		}
		if c.Tags != nil {
			mark += " tags=" + strings.ReplaceAll(fmt.Sprintf("%q", c.Tags), `" "`, `", "`)
		}
		if c.parts == nil {
			text = c.code
		}
		fmt.Fprintf(&x.main, "\n// %%%% %s\n%s\n", mark, text)
		if err := x.writeParts(c); err != nil {
			return fmt.Errorf("%s: %w", mark, err)
		}
	}
	return nil
}

// writeParts writes the parts of a cell: declarations of the package to x.decls, and the others to x.main.
func (x *exporter) writeParts(c exportedCell) error {
	end, declarations := 0, "" // end is the offset in the code up to which it was written
	for i, p := range c.parts {
		for name, o := range p.Objects {
			if err := x.addObject(name, o); err != nil {
				return err
			}
		}
		isLast, limit := i+1 == len(c.parts), len(c.code)
		if !isLast {
			limit = c.parts[i+1].Start
		}
		// The rest of the line after a part belongs to it, and the lines before the next part to that one.
		lead, trail := strings.TrimPrefix(c.code[end:p.Start], "\n"), c.code[p.End:limit]
		if n := strings.IndexByte(trail, '\n'); n >= 0 && !isLast {
			trail = trail[:n]
		}
		end = p.End + len(trail)
		converted, err := x.convert(c, p)
		if err != nil {
			return err
		}
		trail, isClosed := strings.CutPrefix(strings.TrimLeft(trail, " "), ";")
		if isClosed && isLast {
			trail = " " + asComment(";") + trail
		}
		declarations += converted.variables
		if x.isTest { // without comments, but with the lines of the cell for messages
			format := "/*line %s:%d:1*/ "
			if converted.isPackage {
				format = "\n//line %s:%d\n"
			}
			lead, trail = fmt.Sprintf(format, c.name, 1+strings.Count(c.code[:p.Start], "\n")), ""
		}
		if text := lead + converted.text + trail + "\n"; converted.isPackage {
			declarations += text
		} else {
			x.main.WriteString(text)
		}
	}
	if declarations != "" {
		fmt.Fprintf(&x.decls, "\n// %%%% declarations of %s\n\n%s", strings.ToLower(c.name), declarations)
	}
	return nil
}

// addObject adds the object of a name to x.objects, and the import of a package. It returns an error if the program has
// another object of this name.
func (x *exporter) addObject(name string, o types.Object) error {
	old := x.objects[name]
	if p, ok := o.(*types.PkgName); ok {
		x.addImport(p.Imported(), name)
		if q, ok := old.(*types.PkgName); ok && q.Imported() == p.Imported() {
			return nil
		}
	}
	if old != nil && old != o {
		return fmt.Errorf("%s is declared again, as %s: give it another name, since a program has only one %s", name,
			engine.ObjectString(o), name)
	}
	x.objects[name] = o
	return nil
}

// addImport adds an import of a package by a name, and returns the name.
func (x *exporter) addImport(p *types.Package, name string) string {
	path := engine.ImportPath(p)
	if path == "display" {
		path = engine.DisplayPath
	}
	if x.imports[path] = ""; name != p.Name() {
		x.imports[path] = name
	}
	return name
}

// programPart is a part of a cell in the form that it has in the program.
type programPart struct {
	text      string
	variables string // declarations of hoisted variables, to which the text only assigns
	isPackage bool   // the text belongs outside of main
}

// convert returns a part of a cell in the form that it has in the program. It returns an error if the part cannot be a
// part of a program.
func (x *exporter) convert(c exportedCell, p engine.CellPart) (out programPart, err error) {
	out = programPart{text: c.code[p.Start:p.End], isPackage: isDecl(p, token.CONST, token.TYPE, token.FUNC)}
	objects := declaredObjects(p)
	isNew := func(o types.Object) bool { return !x.declared[o] && x.builtIns[o.Name()] != o }
	declares := slices.ContainsFunc(objects, isNew)
	isHoisted := slices.ContainsFunc(objects, func(o types.Object) bool { return x.hoisted[o] })
	for _, o := range objects {
		if isHoisted && isNew(o) {
			out.variables += x.variableDecl(o)
		}
		x.declared[o] = true
	}
	switch n := p.Node.(type) {
	case *ast.AssignStmt:
		if len(objects) > 0 && (isHoisted || !declares) {
			out.text = strings.Replace(out.text, ":=", "=", 1)
		}
	case *ast.FuncDecl:
		if n.Recv == nil && (n.Name.Name == "init" || n.Name.Name == "main") {
			err = fmt.Errorf("it declares %s, which the program runs elsewhere", n.Name.Name)
		}
	case *ast.GenDecl:
		switch {
		case n.Tok == token.VAR && isHoisted:
			return programPart{text: out.text, isPackage: true}, checkHoisted(p, objects)
		case n.Tok == token.IMPORT && c.isCompiled:
			out.text = asComment(out.text)
		case n.Tok == token.IMPORT:
			out.text = ""
			x.addUnnamedImports(n)
		}
	case *ast.ExprStmt:
		out.text = expressionText(out.text, n.X, p)
	}
	return out, err
}

// variableDecl returns the declaration of a variable of the package, and adds the imports that its type needs.
func (x *exporter) variableDecl(o types.Object) string {
	return fmt.Sprintf("var %s %s\n\n", o.Name(), types.TypeString(o.Type(), func(p *types.Package) string {
		if p.Path() == "main" {
			return ""
		}
		return x.addImport(p, p.Name())
	}))
}

// checkHoisted returns an error if a declaration of hoisted variables uses functions or other variables.
func checkHoisted(p engine.CellPart, hoisted []types.Object) error {
	for name, o := range p.Objects {
		_, isVar := o.(*types.Var)
		_, isFunc := o.(*types.Func)
		if isFunc || isVar && !slices.Contains(hoisted, o) {
			return fmt.Errorf("functions use its variable %s, whose declaration uses %s: define it by :=",
				hoisted[0].Name(), name)
		}
	}
	return nil
}

// addUnnamedImports adds the imports of a declaration whose name is a dot or a blank. Other imports are added where the
// package is used.
func (x *exporter) addUnnamedImports(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ImportSpec)
		if path, _ := strconv.Unquote(s.Path.Value); s.Name != nil && (s.Name.Name == "_" || s.Name.Name == ".") {
			x.imports[path] = s.Name.Name
		}
	}
}

// expressionText returns the statement for an expression, which is a part of a cell: it shows the value as the cell
// does, or else uses it.
func expressionText(text string, x ast.Expr, p engine.CellPart) string {
	_, isCall := ast.Unparen(x).(*ast.CallExpr)
	switch k := len(p.ShownTypes); {
	case k > 0 && (p.ShowsCall || k > 1) && types.Identical(p.ShownTypes[k-1], errorType):
		return "showOrFail(" + text + ")"
	case k > 0:
		return "showLast(" + text + ")"
	case !isCall:
		return "_ = " + text
	}
	return text
}
