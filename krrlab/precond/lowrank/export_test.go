package lowrank

// WithoutT returns a copy of f without T, which only factors of one process keep.
func WithoutT(f *Factor) *Factor {
	other := *f
	other.lower, other.residualDiag = nil, nil
	return &other
}
