package vecchia

// Row returns the stored row i of G: its column indices, i last, and its values.
func (m *Inverse) Row(i int) ([]int32, []float32) { return m.g.row(i) }
