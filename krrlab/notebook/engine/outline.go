package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// CellPart is an import, a declaration or a statement at the top level of a cell that was type-checked but not run.
type CellPart struct {
	Start, End int                     // byte range in the code
	Node       ast.Node                // syntax; its positions have no meaning
	Objects    map[string]types.Object // packages and objects of cells that the part uses or declares, by name
	ShownTypes []types.Type            // types of the displayed values, if the part is the last expression of the cell
	ShowsCall  bool                    // the displayed expression is a call
}

// Outline type-checks a cell and returns its parts in the order of the code. If the cell is a program, a call of main
// is appended to the code. Its declarations become visible to later calls of Compile and Outline, but cannot be run: an
// engine must be used for outlines only.
func (e *Engine) Outline(name, code string) (parts []CellPart, wholeCode string, err error) {
	c, err := e.Compile(name, code)
	if err != nil {
		return nil, code, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(c.sections); n > 0 && c.sections[n-1].items[0].end > len(code) {
		code += callMain
	}
	units := c.units
	for _, sec := range c.sections {
		inSection, err := e.sectionParts(code, sec)
		if err != nil {
			return nil, code, err
		}
		// A section of statements is one unit or several, which have lines; any other section is one unit.
		for {
			e.addObjects(inSection, sec, units[0])
			units = units[1:]
			if sec.kind != statement || len(units) == 0 || units[0].lines == nil {
				break
			}
		}
		parts = append(parts, inSection...)
	}
	if n := len(parts); n > 0 {
		parts[n-1].ShownTypes, parts[n-1].ShowsCall = c.shownTypes, c.EndsWithCall
	}
	slices.SortFunc(parts, func(a, b CellPart) int { return a.Start - b.Start })
	e.visible = c.visibleAtEnd
	return parts, code, nil
}

// sectionParts parses a section into parts, without their objects.
func (e *Engine) sectionParts(code string, sec section) (parts []CellPart, err error) {
	file, err := e.parse("", code, sec)
	if err != nil {
		return nil, err
	}
	add := func(n ast.Node) {
		parts = append(parts, CellPart{Start: e.offset(sec, n.Pos()), End: e.offset(sec, n.End()), Node: n,
			Objects: map[string]types.Object{}})
	}
	for _, d := range file.Decls {
		if sec.kind != statement {
			add(d)
			continue
		}
		for _, stmt := range d.(*ast.FuncDecl).Body.List {
			add(stmt)
		}
	}
	if lastItem := sec.items[len(sec.items)-1]; lastItem.isList { // parse has put the list of expressions into a call
		parts[len(parts)-1].Start, parts[len(parts)-1].End = lastItem.start, lastItem.end
	}
	return parts, nil
}

// offset returns the offset in the cell of a position in a parsed section.
func (e *Engine) offset(sec section, pos token.Pos) int {
	return e.fset.Position(pos).Offset - len(sec.head())
}

// addObjects adds the objects of a unit (a separately compiled piece of a cell) to the parts of its section.
func (e *Engine) addObjects(parts []CellPart, sec section, u *unit) {
	if u.pkg == nil {
		return
	}
	ast.Inspect(u.src.files[0], func(n ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		if !ok || strings.HasPrefix(ident.Name, ReservedPrefix) {
			return true
		}
		obj := u.src.info.ObjectOf(ident)
		_, isPackage := obj.(*types.PkgName)
		if !isPackage && (obj == nil || !isDeclaredByCell(obj) || obj.Pkg().Scope().Lookup(obj.Name()) != obj) {
			return true
		}
		offset := e.offset(sec, ident.Pos())
		for i, part := range slices.Backward(parts) {
			if part.Start > offset {
				continue
			}
			if part.Objects[ident.Name] == nil {
				parts[i].Objects[ident.Name] = obj
			}
			break
		}
		return true
	})
}

// CheckProgram type-checks the file of a program and returns its errors, also those about variables and imports without
// a use.
func (e *Engine) CheckProgram(src []byte) (errs []types.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return []types.Error{{Fset: fset, Msg: err.Error()}}
	}
	conf := types.Config{Importer: importer{e}, Error: func(err error) {
		typeErr, _ := err.(types.Error)
		errs = append(errs, typeErr)
	}}
	_, _ = conf.Check(mainPath, fset, []*ast.File{file}, nil) // the error is the first of errs
	return errs
}
