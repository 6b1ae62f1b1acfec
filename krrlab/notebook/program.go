package notebook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/notebook/golang"
)

// ExportProgram writes a notebook as a program, a Go file for the command go run. The notes name the cells that become
// comments in the program, in whole or in part (see golang.Session.Program). If the notebook has no equivalent program,
// ExportProgram returns an error that names the cell, and writes nothing. dataDirs has the same meaning as in Options.
func ExportProgram(file, out string, dataDirs []string) (notes []string, err error) {
	_, cells, err := readNotebook(file)
	if err != nil {
		return nil, err
	}
	var notebookCells []golang.NotebookCell
	for _, c := range cells {
		cell, _ := c.(map[string]any)
		kind, _ := cell["cell_type"].(string)
		notebookCells = append(notebookCells,
			golang.NotebookCell{Kind: kind, Tags: tags(c), Text: joinLines(cell["source"])})
	}
	s, err := golang.New(dataDirs)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	base := filepath.Base(file)
	src, notes, err := s.Program(notebookCells, strings.TrimSuffix(base, filepath.Ext(base)))
	if err != nil {
		return notes, fmt.Errorf("%s: %w", file, err)
	}
	return notes, atomicfile.WriteFile(out, src)
}

// ImportProgram writes a program as a notebook. A program of ExportProgram becomes the exported notebook, without
// outputs. Any other program becomes one cell.
func ImportProgram(file, out string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	programCells, err := golang.ProgramCells(src)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var cells []any
	for _, c := range programCells {
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
