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
	"strconv"
	"strings"
)

// ErrHalted says that a call was given up.
var ErrHalted = errors.New("native: halted")

// Error is what is wrong with a cell, or has ended a call of one of its functions.
type Error struct {
	Text string // one line
	Cell string
	Line int
}

// Error is the text with the place.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s, line %d)", e.Text, e.Cell, e.Line) }

// Builder builds a program of files in a folder, which the caller removes, by the name "program". imports are those
// that are not of the standard library.
type Builder func(ctx context.Context, files map[string]string, imports []string) (dir string, err error)

// Source is a cell to be compiled.
type Source struct {
	Name, Code string                   // of the code the first line is left out
	Named      func(name string) string // the path of the package that a name means without an import, "" for none
}

// Cell is a cell that was compiled.
type Cell struct {
	src       Source
	fset      *token.FileSet
	file      *ast.File
	text      string // what fset's positions are of
	functions []*ast.FuncDecl
	refused   []string // why they cannot be called
	*process
}

var (
	//go:embed wire.go
	wireSource string
	//go:embed serve.go
	serveSource string
	//go:embed map.go
	mapSource string
)

// Compile compiles a cell and starts its program. What is wrong with the cell is a scanner.ErrorList, or an *Error.
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
		expr, generic := f.Name.Name, f.Type.TypeParams != nil
		if f.Recv != nil {
			t := c.source(f.Recv.List[0].Type)
			expr, generic = "("+t+")."+expr, strings.Contains(t, "[")
		}
		if !generic {
			c.functions = append(c.functions, f)
			table += "\t" + expr + ",\n"
		} else if c.offered(f) {
			return nil, c.refuse(f, "is generic")
		}
	}
	head, imports := c.imports()
	dir, err := build(ctx, files(src.Name, strings.Replace(c.text, "package cell", "package cell"+head, 1),
		table+"}\n"), imports)
	if err != nil {
		return nil, c.located(err)
	}
	defer os.RemoveAll(dir)
	p, hello, err := start(ctx, src.Name, filepath.Join(dir, "program"))
	if err != nil {
		return nil, err
	}
	c.process = p
	for _, f := range c.functions {
		why := hello.nextText()
		if c.refused = append(c.refused, why); why != "" && c.offered(f) {
			c.Stop()
			return nil, c.refuse(f, why)
		}
	}
	return c, nil
}

// files are those of the program of a cell.
func files(name, cell, table string) map[string]string {
	inMain := func(s string) string { return strings.Replace(s, "package native", "package main", 1) }
	return map[string]string{
		"main.go": fmt.Sprintf("package main\n\nimport \"notebook/cell\"\n\nfunc main() { Serve(%q, cell.Krrlab) }\n",
			name),
		"wire.go": inMain(wireSource), "serve.go": inMain(serveSource), "map.go": inMain(mapSource),
		"cell/cell.go": "//line " + name + ":1\n" + cell, "cell/zz.go": table,
	}
}

// parse parses a cell. A kernel that has Eval alone gets a loop over it behind the cell, for package kernel calls
// EvalTile once a tile.
func parse(src Source) (*Cell, error) {
	c := &Cell{src: src, fset: token.NewFileSet(), text: "package cell\n" + src.Code}
	var err error
	if c.file, err = parser.ParseFile(c.fset, src.Name, c.text, 0); err != nil {
		return nil, err
	}
	tiles, loops := map[string]bool{}, ""
	for _, d := range c.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "EvalTile" {
			tiles[c.receiver(f)] = true
		}
	}
	for _, d := range c.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "Eval" || tiles[c.receiver(f)] {
			continue
		}
		if r := f.Type.Results; r != nil && c.source(r) == "float64" && twoPoints.MatchString(c.source(f.Type.Params)) {
			loops += fmt.Sprintf(tileLoop, c.source(f.Recv.List[0].Type))
		}
	}
	if loops == "" {
		return c, nil
	}
	src.Code += loops
	return parse(src)
}

var twoPoints = regexp.MustCompile(`^\([\pL\w]+( +\[\]float64)?, *[\pL\w]+ +\[\]float64\)$`)

const tileLoop = `
func (k %s) EvalTile(dst, x, z []float64, nx, nz int) {
	for p := range dst {
		d := len(x) / nx
		i, j := p/nz*d, p%%nz*d
		dst[p] = k.Eval(x[i:i+d:i+d], z[j:j+d:j+d])
	}
}
`

// receiver is the name of the type that a method is of, without type parameters and a pointer; "" for a function.
func (c *Cell) receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(c.source(f.Recv.List[0].Type), "(* "), "[")
	return strings.TrimRight(name, ") ")
}

// offered reports whether a function is for the session: its name is exported, and that of the type whose method it is.
func (c *Cell) offered(f *ast.FuncDecl) bool {
	return f.Name.IsExported() && (f.Recv == nil || ast.IsExported(c.receiver(f)))
}

func (c *Cell) refuse(f *ast.FuncDecl, why string) *Error {
	return &Error{fmt.Sprintf("%s %s; a compiled function takes and returns real numbers, strings, bools, []float64 "+
		"and structs of these: declare it in a cell without %%%%go, or begin its name with a small letter",
		f.Name.Name, why), c.src.Name, c.line(f)}
}

func (c *Cell) line(n ast.Node) int { return c.fset.Position(n.Pos()).Line }

// source is the text of a piece of the cell.
func (c *Cell) source(n ast.Node) string {
	return c.text[c.fset.Position(n.Pos()).Offset:c.fset.Position(n.End()).Offset]
}

// imports returns the imports that are not of the standard library, and a head with those that the cell uses without
// having written them.
func (c *Cell) imports() (head string, others []string) {
	known, open := map[string]bool{}, map[*ast.Ident]bool{}
	for _, spec := range c.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		known[path.Base(version.ReplaceAllString(p, ""))] = true
		if spec.Name != nil {
			known[spec.Name.Name] = true
		}
		if !standard(p) {
			others = append(others, p)
		}
	}
	for _, id := range c.file.Unresolved {
		open[id] = true
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && open[id] && !known[id.Name] {
				known[id.Name] = true
				p := c.src.Named(id.Name)
				if p != "" {
					head += fmt.Sprintf("; import %s %q", id.Name, p)
				}
				if p != "" && !standard(p) {
					others = append(others, p)
				}
			}
		}
		return true
	})
	return head, others
}

var version = regexp.MustCompile(`/v\d+$`) // math/rand/v2

// standard reports whether a package is of the standard library.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

// located finds the line of the cell in what the go command says.
func (c *Cell) located(err error) error {
	text := err.Error()
	place := regexp.MustCompile(`(?:^|; )(?:cell/)?` + regexp.QuoteMeta(c.src.Name) + `:(\d+)(?::\d+)?: `)
	at := place.FindAllStringSubmatchIndex(text, 2)
	if at == nil {
		for _, s := range c.file.Imports {
			if p, _ := strconv.Unquote(s.Path.Value); strings.HasPrefix(text, p+": ") {
				return &Error{text, c.src.Name, c.line(s)}
			}
		}
		return err
	}
	line, _ := strconv.Atoi(text[at[0][2]:at[0][3]])
	if len(at) > 1 {
		text = text[:at[1][0]]
	}
	return &Error{strings.TrimSuffix(text[at[0][1]:], "; too many errors"), c.src.Name, line}
}

// Names are those of the functions that the session can call, and of the types whose methods it can call.
func (c *Cell) Names() (names []string) {
	for i, f := range c.functions {
		if c.refused[i] == "" {
			names = append(names, cmp.Or(c.receiver(f), f.Name.Name))
		}
	}
	return names
}

// Stop ends the program. Calls say so.
func (c *Cell) Stop() {
	c.fail("the compiled program was ended because its cell was run again: compute again the values made before " +
		"that")
	c.kill()
}

// Stub is the cell as the session is to see it, on the same lines: its types and constants, and those functions and
// methods that can be called, which call a function such as Call by its name in the session.
func (c *Cell) Stub(call string) string {
	var b strings.Builder
	for _, d := range c.file.Decls {
		text := ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			for i, f := range c.functions {
				if f == d && c.refused[i] == "" {
					text = c.calling(f, i, call)
				}
			}
		case *ast.GenDecl:
			if d.Tok == token.TYPE || d.Tok == token.CONST {
				text = c.source(d)
			}
			for _, s := range d.Specs {
				if s, ok := s.(*ast.ImportSpec); ok && standard(strings.Trim(s.Path.Value, "\"`")) {
					text += "import " + c.source(s) + "; "
				}
			}
		}
		b.WriteString(strings.Repeat("\n", max(0, c.line(d)-1-strings.Count(b.String(), "\n"))) + text + "; ")
	}
	return b.String()
}

// calling is a function that calls that of the program.
func (c *Cell) calling(f *ast.FuncDecl, number int, call string) string {
	list := func(fields *ast.FieldList, prefix string) (decls, names []string) {
		for _, p := range fields.List {
			for range max(1, len(p.Names)) {
				name := fmt.Sprint("krrlab_", prefix, len(names))
				decls, names = append(decls, name+" "+c.source(p.Type)), append(names, name)
			}
		}
		return decls, names
	}
	params, in := list(f.Type.Params, "")
	receiver, results, out := "", "", ""
	if f.Recv != nil {
		receiver, in = "(krrlab_k "+c.source(f.Recv.List[0].Type)+") ", append([]string{"krrlab_k"}, in...)
	}
	if f.Type.Results != nil {
		decls, names := list(f.Type.Results, "r")
		results, out = "("+strings.Join(decls, ", ")+") ", "&"+strings.Join(names, ", &")
	}
	return fmt.Sprintf("func %s%s(%s) %s{ %s(%d, []any{%s}, []any{%s}); return }", receiver, f.Name.Name,
		strings.Join(params, ", "), results, call, number, strings.Join(in, ", "), out)
}
