package golang

import "testing"

// TestRecursiveTypes uses compiled types that refer to themselves as cells use others.
func TestRecursiveTypes(t *testing.T) {
	s := open(t, nil)
	cells(t, s, equal,
		"import (\"container/list\"; \"gonum.org/v1/gonum/mat\"; \"github.com/krrlab/lab/plots\")\nfunc none() *plots.Figure { return nil }\nnone() == nil", "→true",
		"func draw(m *mat.Dense) *plots.Figure { r, c := m.Dims(); return &plots.Figure{Width: float64(r * c)} }\ndraw(mat.NewDense(2, 3, nil)).Width", "→6",
		"f := plots.Figure{}\nf.Panels = append(f.Panels, plots.Figure{Title: \"in\"})\nf.Panels[0].Title", "→in",
		"func first(l *list.List) *list.Element { return l.Front() }\nl := list.New()\nl.PushBack(4)\nfirst(l).Value", "→4",
	)
}

// TestMissing: the first cell says what the kernel lacks, in lines that the later ones do not repeat.
func TestMissing(t *testing.T) {
	s := open(t, nil)
	s.missing = []string{"this kernel lacks a", "this kernel lacks b"}
	cells(t, s, equal, "1", "stderr: this kernel lacks a\nthis kernel lacks b\n→1", "2", "→2")
}
