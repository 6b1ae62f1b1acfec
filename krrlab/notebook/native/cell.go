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
	"path"
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
	refusalReasons []string        // reason why each function cannot be called, "" if it can
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
	for _, d := range c.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name == "_" || f.Recv == nil && f.Name.Name == "init" {
			continue
		}
		expr, isGeneric := f.Name.Name, f.Type.TypeParams != nil
		if f.Recv != nil {
			t := c.sourceOf(f.Recv.List[0].Type)
			expr, isGeneric = "("+t+")."+expr, strings.Contains(t, "[")
		}
		if !isGeneric {
			c.functions = append(c.functions, f)
			table += "\t" + expr + ",\n"
		} else if c.isExported(f) {
			return nil, c.refusalError(f, "is generic")
		}
	}
	head, imports := c.collectImports()
	dir, err := build(ctx, programFiles(src.Name, strings.Replace(c.text, "package cell", "package cell"+head, 1),
		table+"}\n"), imports)
	if err != nil {
		return nil, c.locate(err)
	}
	defer os.RemoveAll(dir)
	p, refusals, err := start(ctx, src.Name, filepath.Join(dir, "program"))
	if err != nil {
		return nil, err
	}
	c.process = p
	for _, f := range c.functions {
		reason := refusals.nextText()
		if c.refusalReasons = append(c.refusalReasons, reason); reason != "" && c.isExported(f) {
			c.Stop()
			return nil, c.refusalError(f, reason)
		}
	}
	return c, nil
}

// programFiles returns the files of the program of a cell, by name. cell is the Go code of the cell, and table a file
// with its functions in the variable Krrlab.
func programFiles(name, cell, table string) map[string]string {
	inMain := func(s string) string { return strings.Replace(s, "package native", "package main", 1) }
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
	for _, d := range c.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "EvalTile" {
			hasTile[c.receiverType(f)] = true
		}
	}
	for _, d := range c.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "Eval" || hasTile[c.receiverType(f)] {
			continue
		}
		params, results := f.Type.Params, f.Type.Results
		if results != nil && c.sourceOf(results) == "float64" && pointParams.MatchString(c.sourceOf(params)) {
			loops += fmt.Sprintf(tileLoop, c.sourceOf(f.Recv.List[0].Type))
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
func (c *Cell) receiverType(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(c.sourceOf(f.Recv.List[0].Type), "(* "), "[")
	return strings.TrimRight(name, ") ")
}

// isExported reports whether a function is meant to be called by the session: its name, and that of its receiver type
// if it is a method, are exported.
func (c *Cell) isExported(f *ast.FuncDecl) bool {
	return f.Name.IsExported() && (f.Recv == nil || ast.IsExported(c.receiverType(f)))
}

// refusalError returns an error for a function that cannot be called by the session.
func (c *Cell) refusalError(f *ast.FuncDecl, reason string) *Error {
	return &Error{fmt.Sprintf("%s %s; a compiled function takes and returns real numbers, strings, bools, []float64 "+
		"and structs of these: declare it in a cell without %%%%go, or begin its name with a small letter",
		f.Name.Name, reason), c.src.Name, c.line(f)}
}

// line returns the line at which a node starts.
func (c *Cell) line(n ast.Node) int { return c.fset.Position(n.Pos()).Line }

// sourceOf returns the text of a node.
func (c *Cell) sourceOf(n ast.Node) string {
	return c.text[c.fset.Position(n.Pos()).Offset:c.fset.Position(n.End()).Offset]
}

// collectImports returns the imports that are not in the standard library, and import declarations for the packages
// that the cell uses without importing them.
func (c *Cell) collectImports() (head string, external []string) {
	knownNames, unresolved := map[string]bool{}, map[*ast.Ident]bool{}
	for _, spec := range c.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		knownNames[path.Base(majorVersion.ReplaceAllString(p, ""))] = true
		if spec.Name != nil {
			knownNames[spec.Name.Name] = true
		}
		if !isStandard(p) {
			external = append(external, p)
		}
	}
	for _, id := range c.file.Unresolved {
		unresolved[id] = true
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && unresolved[id] && !knownNames[id.Name] {
				knownNames[id.Name] = true
				p := c.src.ImplicitImport(id.Name)
				if p != "" {
					head += fmt.Sprintf("; import %s %q", id.Name, p)
				}
				if p != "" && !isStandard(p) {
					external = append(external, p)
				}
			}
		}
		return true
	})
	return head, external
}

// majorVersion matches the end of a path such as math/rand/v2, which is not the name of the package.
var majorVersion = regexp.MustCompile(`/v\d+$`)

// isStandard reports whether a package is in the standard library.
func isStandard(p string) bool {
	firstElement, _, _ := strings.Cut(p, "/")
	return !strings.Contains(firstElement, ".")
}

// locate finds the first line of the cell in an error message of the go command, or the import of the package with
// which the message begins. If there is one, it returns an *Error for that line, and otherwise err.
func (c *Cell) locate(err error) error {
	text := err.Error()
	location := regexp.MustCompile(`(?:^|; )(?:cell/)?` + regexp.QuoteMeta(c.src.Name) + `:(\d+)(?::\d+)?: `)
	matches := location.FindAllStringSubmatchIndex(text, 2)
	if matches == nil {
		for _, s := range c.file.Imports {
			if p, _ := strconv.Unquote(s.Path.Value); strings.HasPrefix(text, p+": ") {
				return &Error{text, c.src.Name, c.line(s)}
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
	for i, f := range c.functions {
		if c.refusalReasons[i] == "" {
			names = append(names, cmp.Or(c.receiverType(f), f.Name.Name))
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
	var b strings.Builder
	for _, d := range c.file.Decls {
		text := ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			if i := slices.Index(c.functions, d); i >= 0 && c.refusalReasons[i] == "" {
				text = c.stubFunction(d, i, call)
			}
		case *ast.GenDecl:
			text = c.stubDeclaration(d)
		}
		b.WriteString(strings.Repeat("\n", max(0, c.line(d)-1-strings.Count(b.String(), "\n"))) + text + "; ")
	}
	return b.String()
}

// stubDeclaration returns a declaration of types or constants, and the imports from the standard library. It returns ""
// for other declarations.
func (c *Cell) stubDeclaration(d *ast.GenDecl) (text string) {
	switch d.Tok {
	case token.TYPE, token.CONST:
		return c.sourceOf(d)
	case token.IMPORT:
		for _, s := range d.Specs {
			if s := s.(*ast.ImportSpec); isStandard(strings.Trim(s.Path.Value, "\"`")) {
				text += "import " + c.sourceOf(s) + "; "
			}
		}
	}
	return text
}

// stubFunction returns a declaration with the signature of f, whose body calls function number of the program.
func (c *Cell) stubFunction(f *ast.FuncDecl, number int, call string) string {
	list := func(fields *ast.FieldList, prefix string) (decls, names []string) {
		for _, p := range fields.List {
			for range max(1, len(p.Names)) {
				name := fmt.Sprint("krrlab_", prefix, len(names))
				decls, names = append(decls, name+" "+c.sourceOf(p.Type)), append(names, name)
			}
		}
		return decls, names
	}
	params, in := list(f.Type.Params, "")
	receiver, results, out := "", "", ""
	if f.Recv != nil {
		receiver, in = "(krrlab_k "+c.sourceOf(f.Recv.List[0].Type)+") ", append([]string{"krrlab_k"}, in...)
	}
	if f.Type.Results != nil {
		decls, names := list(f.Type.Results, "r")
		results, out = "("+strings.Join(decls, ", ")+") ", "&"+strings.Join(names, ", &")
	}
	return fmt.Sprintf("func %s%s(%s) %s{ %s(%d, []any{%s}, []any{%s}); return }", receiver, f.Name.Name,
		strings.Join(params, ", "), results, call, number, strings.Join(in, ", "), out)
}
