package vecchia

// Row returns row i of G as it is held: its columns, i last, and values.
func (m *Inverse) Row(i int) ([]int32, []float32) { return m.rows.row(i) }
