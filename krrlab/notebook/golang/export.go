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
// of the files to which the program writes pictures begin with picturePrefix. The notes list the lines that are only
// comments in the program: commands, and cells that fail to compile or have the tag raises-exception.
//
// Program returns an error that names the cell if a name is declared twice, since a program has only one object of each
// name at the level of the package and of main, if a cell declares main or init, and if the program does not compile.
func (s *Session) Program(cells []NotebookCell, picturePrefix string) (src []byte, notes []string, err error) {
	s.runOnWorker(func() {
		exp := s.newExporter()
		number := 0
		for _, c := range cells {
			if c.Kind == "code" {
				number++
			}
			exp.addCell(fmt.Sprint("Cell ", number), c)
		}
		notes = exp.notes
		if err = exp.write(); err == nil {
			src, err = exp.assemble(picturePrefix)
		}
	})
	return src, notes, err
}

// newExporter returns an exporter without cells.
func (s *Session) newExporter() *exporter {
	exp := &exporter{session: s, imports: map[string]string{}, hoistedVars: objectSet{},
		declaredVars: objectSet{}, helpers: map[string]string{}}
	exp.interp, exp.builtIns = s.newInterpreter()
	exp.objects = maps.Clone(exp.builtIns)
	return exp
}

// objectSet is a set of objects. The map is true for its members.
type objectSet map[types.Object]bool

// exporter writes the cells of a notebook as a program.
type exporter struct {
	session  *Session
	interp   *engine.Engine          // type-checks the cells
	builtIns map[string]types.Object // names that cells can use without declaring or importing them
	cells    []exportedCell
	objects  map[string]types.Object // objects that the program declares or imports so far, by name
	// hoistedVars are the variables that functions use. They become variables of the package, all others variables of
	// main.
	hoistedVars  objectSet
	declaredVars objectSet         // variables that the program declares so far
	imports      map[string]string // import specifications without the path, by path
	decls        strings.Builder   // declarations of the package
	main         strings.Builder   // body of main
	helpers      map[string]string // declarations for built-in names of cells, by name
	unusedVars   []string          // variables of main without a use
	notes        []string          // see Program
	isTest       bool              // the program is a file of go test (see runTests)
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

// addCell adds a cell to the exporter, with the parts of its code, and notes about what becomes a comment. name is the
// name of a code cell.
func (exp *exporter) addCell(name string, source NotebookCell) {
	if source.Kind != "code" {
		text := "// " + strings.ReplaceAll(source.Text, "\n", "\n// ")
		exp.cells = append(exp.cells, exportedCell{NotebookCell: source, code: text})
		return
	}
	exported := exportedCell{NotebookCell: source, name: name}
	isComment := slices.Contains(source.Tags, "raises-exception")
	note := func(text string) {
		exp.notes = append(exp.notes, fmt.Sprintf("%s: %s: a comment in the program", strings.ToLower(name), text))
	}
	lines := strings.Split(source.Text, "\n")
	for i, line := range lines {
		switch {
		case !isCommand(line) || insideGo(lines[:i]):
		case strings.TrimSpace(line) == "%%go":
			exported.isCompiled, lines[i] = true, "" // the comment that begins the cell says it
		default:
			note(strings.TrimSpace(line))
			isComment, lines[i] = isComment || isCellCommand(line), asComment(line)
		}
	}
	if slices.Contains(source.Tags, "raises-exception") {
		note("its tag raises-exception")
	}
	if !isComment {
		var err error
		if exported.parts, exported.code, err = exp.interp.Outline(name, strings.Join(lines, "\n")); err != nil {
			isComment = true
			note(exp.session.compileFailure(&cell{name: name}, err).Value)
		}
	}
	if isComment {
		exported.code = asComment(source.Text)
	}
	exp.cells = append(exp.cells, exported)
}

// hoist adds variables to hoistedVars: those that declarations of the package use, and those that := declares together
// with a hoisted one. It reports whether it has added a variable. The caller repeats hoist until it has not.
func (exp *exporter) hoist() (added bool) {
	for cellPart := range exp.allParts() {
		vars := declaredObjects(cellPart)
		isHoisted := slices.ContainsFunc(vars, func(obj types.Object) bool { return exp.hoistedVars[obj] })
		if isDecl(cellPart, token.CONST, token.TYPE, token.FUNC) {
			vars, isHoisted = slices.Collect(maps.Values(cellPart.Objects)), true
		}
		for _, obj := range vars {
			if variable, ok := obj.(*types.Var); ok && isHoisted && !exp.hoistedVars[variable] {
				exp.hoistedVars[variable], added = true, true
			}
		}
	}
	return added
}

// allParts returns the parts of all cells, in order.
func (exp *exporter) allParts() iter.Seq[engine.CellPart] {
	return func(yield func(engine.CellPart) bool) {
		for _, c := range exp.cells {
			for _, cellPart := range c.parts {
				if !yield(cellPart) {
					return
				}
			}
		}
	}
}

// declaredObjects returns the objects that a declaration or a := of a cell declares, without methods.
func declaredObjects(cellPart engine.CellPart) (objects []types.Object) {
	var names []*ast.Ident
	switch node := cellPart.Node.(type) {
	case *ast.AssignStmt:
		for _, target := range node.Lhs {
			if ident, ok := target.(*ast.Ident); ok && node.Tok == token.DEFINE {
				names = append(names, ident)
			}
		}
	case *ast.FuncDecl:
		if node.Recv == nil {
			names = append(names, node.Name)
		}
	case *ast.GenDecl:
		for _, spec := range node.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			}
		}
	}
	for _, ident := range names {
		if obj := cellPart.Objects[ident.Name]; obj != nil {
			objects = append(objects, obj)
		}
	}
	return objects
}

// isDecl reports whether a part is a declaration that begins with one of the keywords.
func isDecl(cellPart engine.CellPart, keywords ...token.Token) bool {
	switch d := cellPart.Node.(type) {
	case *ast.FuncDecl:
		return slices.Contains(keywords, token.FUNC)
	case *ast.GenDecl:
		return slices.Contains(keywords, d.Tok)
	}
	return false
}

// write writes all cells to exp.main and exp.decls.
func (exp *exporter) write() error {
	for exp.hoist() { // until there are no further variables to hoist
	}
	for _, c := range exp.cells {
		mark, text := "["+c.Kind+"]", "" // mark is the end of the comment that begins the cell (see cellMark)
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
		fmt.Fprintf(&exp.main, "\n// %%%% %s\n%s\n", mark, text)
		if err := exp.writeParts(c); err != nil {
			return fmt.Errorf("%s: %w", mark, err)
		}
	}
	return nil
}

// writeParts writes the parts of a cell: declarations of the package to exp.decls, and the others to exp.main.
func (exp *exporter) writeParts(c exportedCell) error {
	end, declarations := 0, "" // end is the offset in the code up to which it was written
	for i, cellPart := range c.parts {
		for name, obj := range cellPart.Objects {
			if err := exp.addObject(name, obj); err != nil {
				return err
			}
		}
		isLast, limit := i+1 == len(c.parts), len(c.code)
		if !isLast {
			limit = c.parts[i+1].Start
		}
		// The rest of the line after a part belongs to it, and the lines before the next part to that one.
		leading, trailing := strings.TrimPrefix(c.code[end:cellPart.Start], "\n"), c.code[cellPart.End:limit]
		if lineEnd := strings.IndexByte(trailing, '\n'); lineEnd >= 0 && !isLast {
			trailing = trailing[:lineEnd]
		}
		end = cellPart.End + len(trailing)
		converted, err := exp.convert(c, cellPart)
		if err != nil {
			return err
		}
		trailing, hasSemicolon := strings.CutPrefix(strings.TrimLeft(trailing, " "), ";")
		if hasSemicolon && isLast {
			trailing = " " + asComment(";") + trailing
		}
		declarations += converted.variables
		if exp.isTest { // without comments, but with the lines of the cell for messages
			format := "/*line %s:%d:1*/ "
			if converted.isPackage {
				format = "\n//line %s:%d\n"
			}
			leading, trailing = fmt.Sprintf(format, c.name, 1+strings.Count(c.code[:cellPart.Start], "\n")), ""
		}
		if text := leading + converted.text + trailing + "\n"; converted.isPackage {
			declarations += text
		} else {
			exp.main.WriteString(text)
		}
	}
	if declarations != "" {
		fmt.Fprintf(&exp.decls, "\n// %%%% declarations of %s\n\n%s", strings.ToLower(c.name), declarations)
	}
	return nil
}

// addObject adds the object of a name to exp.objects, and the import of a package. It returns an error if the program
// has another object of this name.
func (exp *exporter) addObject(name string, obj types.Object) error {
	old := exp.objects[name]
	if pkgName, ok := obj.(*types.PkgName); ok {
		exp.addImport(pkgName.Imported(), name)
		if oldPkgName, ok := old.(*types.PkgName); ok && oldPkgName.Imported() == pkgName.Imported() {
			return nil
		}
	}
	if old != nil && old != obj {
		return fmt.Errorf("%s is declared again, as %s: give it another name, since a program has only one %s", name,
			engine.ObjectString(obj), name)
	}
	exp.objects[name] = obj
	return nil
}

// addImport adds an import of a package by a name, and returns the name.
func (exp *exporter) addImport(pkg *types.Package, name string) string {
	path := engine.ImportPath(pkg)
	if path == "display" {
		path = engine.DisplayPath
	}
	if exp.imports[path] = ""; name != pkg.Name() {
		exp.imports[path] = name
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
func (exp *exporter) convert(c exportedCell, cellPart engine.CellPart) (converted programPart, err error) {
	converted = programPart{text: c.code[cellPart.Start:cellPart.End],
		isPackage: isDecl(cellPart, token.CONST, token.TYPE, token.FUNC)}
	objects := declaredObjects(cellPart)
	isNew := func(obj types.Object) bool { return !exp.declaredVars[obj] && exp.builtIns[obj.Name()] != obj }
	declares := slices.ContainsFunc(objects, isNew)
	isHoisted := slices.ContainsFunc(objects, func(obj types.Object) bool { return exp.hoistedVars[obj] })
	for _, obj := range objects {
		if isHoisted && isNew(obj) {
			converted.variables += exp.variableDecl(obj)
		}
		exp.declaredVars[obj] = true
	}
	switch node := cellPart.Node.(type) {
	case *ast.AssignStmt:
		if len(objects) > 0 && (isHoisted || !declares) {
			converted.text = strings.Replace(converted.text, ":=", "=", 1)
		}
	case *ast.FuncDecl:
		if node.Recv == nil && (node.Name.Name == "init" || node.Name.Name == "main") {
			err = fmt.Errorf("it declares %s, which the program runs elsewhere", node.Name.Name)
		}
	case *ast.GenDecl:
		switch {
		case node.Tok == token.VAR && isHoisted:
			return programPart{text: converted.text, isPackage: true}, checkHoisted(cellPart, objects)
		case node.Tok == token.IMPORT && c.isCompiled:
			converted.text = asComment(converted.text)
		case node.Tok == token.IMPORT:
			converted.text = ""
			exp.addUnnamedImports(node)
		}
	case *ast.ExprStmt:
		converted.text = expressionText(converted.text, node.X, cellPart)
	}
	return converted, err
}

// variableDecl returns the declaration of a variable of the package, and adds the imports that its type needs.
func (exp *exporter) variableDecl(obj types.Object) string {
	return fmt.Sprintf("var %s %s\n\n", obj.Name(), types.TypeString(obj.Type(), func(pkg *types.Package) string {
		if pkg.Path() == "main" {
			return ""
		}
		return exp.addImport(pkg, pkg.Name())
	}))
}

// checkHoisted returns an error if a declaration of hoisted variables uses functions or other variables.
func checkHoisted(cellPart engine.CellPart, hoisted []types.Object) error {
	for name, obj := range cellPart.Objects {
		_, isVar := obj.(*types.Var)
		_, isFunc := obj.(*types.Func)
		if isFunc || isVar && !slices.Contains(hoisted, obj) {
			return fmt.Errorf("functions use its variable %s, whose declaration uses %s: define it by :=",
				hoisted[0].Name(), name)
		}
	}
	return nil
}

// addUnnamedImports adds the imports of a declaration whose name is a dot or a blank. Other imports are added where the
// package is used.
func (exp *exporter) addUnnamedImports(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		imported := spec.(*ast.ImportSpec)
		path, _ := strconv.Unquote(imported.Path.Value)
		if imported.Name != nil && (imported.Name.Name == "_" || imported.Name.Name == ".") {
			exp.imports[path] = imported.Name.Name
		}
	}
}

// expressionText returns the statement for an expression, which is a part of a cell: it shows the value if the cell
// does, or else only uses the value.
func expressionText(text string, expr ast.Expr, cellPart engine.CellPart) string {
	_, isCall := ast.Unparen(expr).(*ast.CallExpr)
	switch count := len(cellPart.ShownTypes); {
	case count > 0 && (cellPart.ShowsCall || count > 1) && types.Identical(cellPart.ShownTypes[count-1], errorType):
		return "showOrFail(" + text + ")"
	case count > 0:
		return "showLast(" + text + ")"
	case !isCall:
		return "_ = " + text
	}
	return text
}
