package notebook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// ExportProgram writes a notebook as a program, a Go file that go run takes. Its notes name the cells that are comments
// there, in whole or in part (golang.Session.Program). If the notebook has no equivalent program, ExportProgram returns
// an error that names the cell, and writes nothing. dataDirs are those of Options.
func ExportProgram(file, out string, dataDirs []string) (notes []string, err error) {
	_, cells, err := readNotebook(file)
	if err != nil {
		return nil, err
	}
	var list []golang.NotebookCell
	for _, c := range cells {
		cell, _ := c.(map[string]any)
		kind, _ := cell["cell_type"].(string)
		list = append(list, golang.NotebookCell{Kind: kind, Tags: tags(c), Text: joinLines(cell["source"])})
	}
	s, err := golang.New(dataDirs)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	base := filepath.Base(file)
	src, notes, err := s.Program(list, strings.TrimSuffix(base, filepath.Ext(base)))
	if err != nil {
		return notes, fmt.Errorf("%s: %w", file, err)
	}
	return notes, atomicfile.WriteFile(out, src)
}

// ImportProgram writes a program as a notebook: the notebook of ExportProgram, without outputs, or one cell with any
// other program.
func ImportProgram(file, out string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	list, err := golang.ProgramCells(src)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var cells []any
	for _, c := range list {
		cell := map[string]any{"cell_type": c.Kind, "source": c.Text, "metadata": map[string]any{}}
		if c.Kind == "code" {
			cell["outputs"], cell["execution_count"] = []any{}, nil
		}
		if c.Tags != nil {
			cell["metadata"] = map[string]any{"tags": c.Tags}
		}
		cells = append(cells, cell)
	}
	return writeNotebook(out, map[string]any{"cells": cells, "nbformat": 4, "nbformat_minor": 4})
}
