package cli

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/krrlab/lab/krrlab/npy"
)

// asNamed returns what writes a table of numbers as CSV, or, if the file is named .npy, as a matrix with the columns of the table
// but the first, which counts the rows; true and false are 1 and 0, and one column is a vector.
func asNamed(name string, write func(w io.Writer) error) func(w io.Writer) error {
	if filepath.Ext(name) != ".npy" {
		return write
	}
	return func(w io.Writer) error {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			return err
		}
		c := csv.NewReader(&text)
		names, err := c.Read()
		if err != nil {
			return err
		}
		var data []float64
		shape := []int{0, len(names) - 1}
		for row, err := c.Read(); err != io.EOF; row, err = c.Read() {
			if err != nil {
				return err
			}
			for j, cell := range row[1:] {
				v, err := strconv.ParseFloat(cell, 64)
				if b, e := strconv.ParseBool(cell); err != nil && e == nil && b {
					v = 1
				} else if err != nil && e != nil {
					return fmt.Errorf("%s: the column %s has %q, and a .npy file holds numbers only: write a .csv file", name, names[1+j], cell)
				}
				data = append(data, v)
			}
			shape[0]++
		}
		if shape[1] == 1 {
			shape = shape[:1]
		}
		return npy.Write(w, data, shape...)
	}
}
