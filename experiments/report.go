package experiments

// Report is an experiment that was run, whole or in part: its entries with their results.
// Its JSON, in results/<id>.<scale>.json, is all that tables, figures and verdicts are made
// of.
type Report struct {
	ID      string  `json:"id"`
	Scale   Scale   `json:"scale"`
	Title   string  `json:"title"`
	Section string  `json:"section"`
	Entries []Entry `json:"entries"`
}

// Rows returns the names of the rows, each once, in the order of the entries.
func (r *Report) Rows() []string {
	var rows []string
	seen := map[string]bool{}
	for i := range r.Entries {
		if name := r.Entries[i].Row; !seen[name] {
			seen[name] = true
			rows = append(rows, name)
		}
	}
	return rows
}

// Find returns the entries of a row and a role, in the order of the plan: one for each seed.
func (r *Report) Find(row, role string) []*Entry {
	var out []*Entry
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Row == row && e.Role == role {
			out = append(out, e)
		}
	}
	return out
}
