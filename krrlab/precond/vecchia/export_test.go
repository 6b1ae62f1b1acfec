package vecchia

// Row returns the column indices and values of row i of G. The last index is i.
func (m *Inverse) Row(i int) ([]int32, []float32) { return m.g.row(i) }
