package lowrank

// WithoutT returns a copy of f without the triangular factor T, which is stored only by factors of one process.
func WithoutT(f *Factor) *Factor {
	other := *f
	other.lower, other.residualDiag = nil, nil
	return &other
}
