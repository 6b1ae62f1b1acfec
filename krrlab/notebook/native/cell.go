package native

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	gopath "path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrInterrupted is the error of a call that was given up after an interrupt.
var ErrInterrupted = errors.New("native: interrupted")

// Error is an error in a cell, or the reason why a call of one of its functions ended.
type Error struct {
	Text string // one line
	Cell string // name of the cell
	Line int    // line of the cell, from 1
}

// Error returns the text and the location.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s, line %d)", e.Text, e.Cell, e.Line) }

// Builder builds the program of the given files, as a file named program in a new folder, which the caller removes.
// imports are the imported packages that are not in the standard library.
type Builder func(ctx context.Context, files map[string]string, imports []string) (dir string, err error)

// Source is a cell to be compiled.
type Source struct {
	// Name is the name of the cell in messages. Code is its text without the first line.
	Name, Code string
	// ImplicitImport returns the path of the package that an unimported name stands for, or "" if there is none.
	ImplicitImport func(name string) string
}

// Cell is a compiled cell, whose program is running.
type Cell struct {
	src            Source
	fset           *token.FileSet
	file           *ast.File
	text           string          // parsed text, to which the positions of fset refer
	functions      []*ast.FuncDecl // functions and methods of the program, by number
	refusalReasons []string        // reason why each function cannot be called, or "" if it can be called
	*process
}

// These files become parts of the program of a cell.
var (
	//go:embed wire.go
	wireSource string
	//go:embed serve.go
	serveSource string
	//go:embed map.go
	mapSource string
)

// Compile compiles a cell and starts its program. An error in the cell is a scanner.ErrorList or an *Error.
func Compile(ctx context.Context, build Builder, src Source) (*Cell, error) {
	c, err := parse(src)
	if err != nil {
		return nil, err
	}
	table := "package cell\n\nvar Krrlab = []any{\n"
	for _, decl := range c.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name == "_" || fn.Recv == nil && fn.Name.Name == "init" {
			continue
		}
		expr, isGeneric := fn.Name.Name, fn.Type.TypeParams != nil
		if fn.Recv != nil {
			recvType := c.sourceOf(fn.Recv.List[0].Type)
			expr, isGeneric = "("+recvType+")."+expr, strings.Contains(recvType, "[")
		}
		if !isGeneric {
			c.functions = append(c.functions, fn)
			table += "\t" + expr + ",\n"
		} else if c.isExported(fn) {
			return nil, c.refusalError(fn, "is generic")
		}
	}
	importClauses, imports := c.collectImports()
	cellText := strings.Replace(c.text, "package cell", "package cell"+importClauses, 1)
	dir, err := build(ctx, programFiles(src.Name, cellText, table+"}\n"), imports)
	if err != nil {
		return nil, c.locate(err)
	}
	defer os.RemoveAll(dir)
	program, refusals, err := start(ctx, src.Name, filepath.Join(dir, "program"))
	if err != nil {
		return nil, err
	}
	c.process = program
	for _, fn := range c.functions {
		reason := refusals.nextText()
		if c.refusalReasons = append(c.refusalReasons, reason); reason != "" && c.isExported(fn) {
			c.Stop()
			return nil, c.refusalError(fn, reason)
		}
	}
	return c, nil
}

// programFiles returns the files of the program of a cell, by name. cell is the Go code of the cell. table is a file
// with the functions of the cell in the variable Krrlab.
func programFiles(name, cell, table string) map[string]string {
	inMain := func(source string) string { return strings.Replace(source, "package native", "package main", 1) }
	return map[string]string{
		"main.go": fmt.Sprintf("package main\n\nimport \"notebook/cell\"\n\nfunc main() { Serve(%q, cell.Krrlab) }\n",
			name),
		"wire.go": inMain(wireSource), "serve.go": inMain(serveSource), "map.go": inMain(mapSource),
		"cell/cell.go": "//line " + name + ":1\n" + cell, "cell/zz.go": table,
	}
}

// parse parses a cell. A kernel type that has a method Eval and no EvalTile gets an EvalTile that loops over Eval.
// Since package kernel calls EvalTile once per tile, this saves a call of the program per entry.
func parse(src Source) (*Cell, error) {
	c := &Cell{src: src, fset: token.NewFileSet(), text: "package cell\n" + src.Code}
	var err error
	if c.file, err = parser.ParseFile(c.fset, src.Name, c.text, 0); err != nil {
		return nil, err
	}
	hasTile, loops := map[string]bool{}, ""
	for _, decl := range c.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "EvalTile" {
			hasTile[c.receiverType(fn)] = true
		}
	}
	for _, decl := range c.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "Eval" || hasTile[c.receiverType(fn)] {
			continue
		}
		params, results := fn.Type.Params, fn.Type.Results
		if results != nil && c.sourceOf(results) == "float64" && pointParams.MatchString(c.sourceOf(params)) {
			loops += fmt.Sprintf(tileLoop, c.sourceOf(fn.Recv.List[0].Type))
		}
	}
	if loops == "" {
		return c, nil
	}
	src.Code += loops
	return parse(src)
}

// pointParams matches the parameter list of Eval: two slices of float64.
var pointParams = regexp.MustCompile(`^\([\pL\w]+( +\[\]float64)?, *[\pL\w]+ +\[\]float64\)$`)

// tileLoop is the source of EvalTile for a receiver type.
const tileLoop = `
func (k %s) EvalTile(dst, x, z []float64, nx, nz int) {
	for p := range dst {
		d := len(x) / nx
		i, j := p/nz*d, p%%nz*d
		dst[p] = k.Eval(x[i:i+d:i+d], z[j:j+d:j+d])
	}
}
`

// receiverType returns the name of a method's receiver type without pointer and type parameters, or "" for a function.
func (c *Cell) receiverType(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(c.sourceOf(fn.Recv.List[0].Type), "(* "), "[")
	return strings.TrimRight(name, ") ")
}

// isExported reports whether a function is meant to be called by the session: its name, and that of its receiver type
// if it is a method, are exported.
func (c *Cell) isExported(fn *ast.FuncDecl) bool {
	return fn.Name.IsExported() && (fn.Recv == nil || ast.IsExported(c.receiverType(fn)))
}

// refusalError returns an error for a function that cannot be called by the session.
func (c *Cell) refusalError(fn *ast.FuncDecl, reason string) *Error {
	return &Error{fmt.Sprintf("%s %s; a compiled function takes and returns real numbers, strings, bools, []float64 "+
		"and structs of these: declare it in a cell without %%%%go, or begin its name with a small letter",
		fn.Name.Name, reason), c.src.Name, c.line(fn)}
}

// line returns the line at which a node starts.
func (c *Cell) line(n ast.Node) int { return c.fset.Position(n.Pos()).Line }

// sourceOf returns the text of a node.
func (c *Cell) sourceOf(n ast.Node) string {
	return c.text[c.fset.Position(n.Pos()).Offset:c.fset.Position(n.End()).Offset]
}

// collectImports returns the imports that are not in the standard library, and import declarations for the packages
// that the cell uses without importing them.
func (c *Cell) collectImports() (importClauses string, external []string) {
	knownNames, unresolved := map[string]bool{}, map[*ast.Ident]bool{}
	for _, spec := range c.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		knownNames[gopath.Base(majorVersion.ReplaceAllString(path, ""))] = true
		if spec.Name != nil {
			knownNames[spec.Name.Name] = true
		}
		if !isStandard(path) {
			external = append(external, path)
		}
	}
	for _, ident := range c.file.Unresolved {
		unresolved[ident] = true
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if ident, ok := selector.X.(*ast.Ident); ok && unresolved[ident] && !knownNames[ident.Name] {
				knownNames[ident.Name] = true
				path := c.src.ImplicitImport(ident.Name)
				if path != "" {
					importClauses += fmt.Sprintf("; import %s %q", ident.Name, path)
				}
				if path != "" && !isStandard(path) {
					external = append(external, path)
				}
			}
		}
		return true
	})
	return importClauses, external
}

// majorVersion matches the end of a path such as math/rand/v2, which is not the name of the package.
var majorVersion = regexp.MustCompile(`/v\d+$`)

// isStandard reports whether a package is in the standard library.
func isStandard(path string) bool {
	firstElement, _, _ := strings.Cut(path, "/")
	return !strings.Contains(firstElement, ".")
}

// locate finds the first line of the cell in an error message of the go command, or the import of the package with
// which the message begins. If there is one, it returns an *Error for that line, and otherwise err.
func (c *Cell) locate(err error) error {
	text := err.Error()
	location := regexp.MustCompile(`(?:^|; )(?:cell/)?` + regexp.QuoteMeta(c.src.Name) + `:(\d+)(?::\d+)?: `)
	matches := location.FindAllStringSubmatchIndex(text, 2)
	if matches == nil {
		for _, spec := range c.file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(text, path+": ") {
				return &Error{text, c.src.Name, c.line(spec)}
			}
		}
		return err
	}
	line, _ := strconv.Atoi(text[matches[0][2]:matches[0][3]])
	if len(matches) > 1 {
		text = text[:matches[1][0]]
	}
	return &Error{strings.TrimSuffix(text[matches[0][1]:], "; too many errors"), c.src.Name, line}
}

// Names returns the names of the functions that the session can call, and of the receiver types of such methods, with
// repetitions.
func (c *Cell) Names() (names []string) {
	for i, fn := range c.functions {
		if c.refusalReasons[i] == "" {
			names = append(names, cmp.Or(c.receiverType(fn), fn.Name.Name))
		}
	}
	return names
}

// Stop ends the program. Later calls fail with an explanation.
func (c *Cell) Stop() {
	c.fail("the compiled program was ended because its cell was run again: compute again the values made before " +
		"that")
	c.kill()
}

// Stub returns the cell that replaces the compiled one in the session, with declarations on the same lines. It contains
// the types and constants, and the functions and methods that can be called. Their bodies call a function with the
// signature of Call without interrupt, which has the name call in the session.
func (c *Cell) Stub(call string) string {
	var stub strings.Builder
	for _, decl := range c.file.Decls {
		text := ""
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if number := slices.Index(c.functions, decl); number >= 0 && c.refusalReasons[number] == "" {
				text = c.stubFunction(decl, number, call)
			}
		case *ast.GenDecl:
			text = c.stubDeclaration(decl)
		}
		stub.WriteString(strings.Repeat("\n", max(0, c.line(decl)-1-strings.Count(stub.String(), "\n"))) + text + "; ")
	}
	return stub.String()
}

// stubDeclaration returns a declaration of types or constants, and the imports from the standard library. It returns ""
// for other declarations.
func (c *Cell) stubDeclaration(decl *ast.GenDecl) (text string) {
	switch decl.Tok {
	case token.TYPE, token.CONST:
		return c.sourceOf(decl)
	case token.IMPORT:
		for _, spec := range decl.Specs {
			if spec := spec.(*ast.ImportSpec); isStandard(strings.Trim(spec.Path.Value, "\"`")) {
				text += "import " + c.sourceOf(spec) + "; "
			}
		}
	}
	return text
}

// stubFunction returns a declaration with the signature of fn, whose body calls the function of the program with the
// given number.
func (c *Cell) stubFunction(fn *ast.FuncDecl, number int, call string) string {
	declare := func(fields *ast.FieldList, prefix string) (decls, names []string) {
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				name := fmt.Sprint("krrlab_", prefix, len(names))
				decls, names = append(decls, name+" "+c.sourceOf(field.Type)), append(names, name)
			}
		}
		return decls, names
	}
	params, arguments := declare(fn.Type.Params, "")
	receiver, results, resultPointers := "", "", ""
	if fn.Recv != nil {
		receiver = "(krrlab_k " + c.sourceOf(fn.Recv.List[0].Type) + ") "
		arguments = append([]string{"krrlab_k"}, arguments...)
	}
	if fn.Type.Results != nil {
		decls, names := declare(fn.Type.Results, "r")
		results, resultPointers = "("+strings.Join(decls, ", ")+") ", "&"+strings.Join(names, ", &")
	}
	return fmt.Sprintf("func %s%s(%s) %s{ %s(%d, []any{%s}, []any{%s}); return }", receiver, fn.Name.Name,
		strings.Join(params, ", "), results, call, number, strings.Join(arguments, ", "), resultPointers)
}
