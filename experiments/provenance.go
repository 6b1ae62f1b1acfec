package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"

	"github.com/krrlab/lab/plots"
)

// Provenance returns what the numbers of the report come from: for every set of data its
// file, checksum and rows, and the machines, dates, versions and seeds of the cases.
func (r *Report) Provenance() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("Where the numbers come from (%s, %s scale)", r.ID, r.Scale),
		Columns: []plots.Column{{Name: "what"}, {Name: "value"}},
	}
	var machines, dates, commits, seeds []string
	add := func(list *[]string, s string) {
		if s != "" && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	var data []string
	described := map[place]bool{}
	for _, e := range r.Entries {
		x := e.Result
		if !x.Ran() {
			continue
		}
		add(&machines, x.Machine.String())
		add(&commits, x.Commit)
		add(&seeds, fmt.Sprint(e.Case.Seed))
		date, _, _ := strings.Cut(x.Date, "T")
		add(&dates, date)
		if key := (place{x.Data.Name, x.Data.N}); !described[key] && !e.Case.CountOnly {
			described[key] = true
			add(&data, x.Data.String())
		}
	}
	slices.Sort(dates)
	row := func(what string, list []string) {
		for _, v := range list {
			t.Add(what, v)
		}
	}
	row("machine", machines)
	if len(dates) > 0 {
		span := dates[0]
		if last := dates[len(dates)-1]; last != span {
			span += " to " + last
		}
		t.Add("date", span)
	}
	row("version", commits)
	if len(seeds) > 0 {
		t.Add("seeds", strings.Join(seeds, ", "))
	}
	row("data", data)
	return t
}

// String describes the machine in one line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d threads, %s of memory, BLAS %s, %s", m.CPU, m.Threads, accel.Bytes(m.Memory), m.BLAS, m.OS)
}

// String describes the data in one line: rows, source, what is special, checksums.
func (d Data) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d", d.Name, d.N)
	if d.N < d.Of {
		fmt.Fprintf(&b, " of %d", d.Of)
	}
	b.WriteString(" training rows")
	if d.TestN > 0 {
		fmt.Fprintf(&b, ", %d test rows", d.TestN)
	}
	if d.Source != "" {
		fmt.Fprintf(&b, "; %s", d.Source)
	}
	if d.Note != "" {
		fmt.Fprintf(&b, "; %s", d.Note)
	}
	for i, sum := range d.SHA256 {
		if i == 0 {
			b.WriteString("; sha256")
		}
		fmt.Fprintf(&b, " %s…", sum[:min(12, len(sum))])
	}
	return b.String()
}

// NotRun returns what has no result, and why: one row for each row of the report and reason, with
// its cases.
func (r *Report) NotRun() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("What was not run (%s, %s scale)", r.ID, r.Scale),
		Columns: []plots.Column{{Name: "row"}, {Name: "cases"}, {Name: "why"}},
	}
	roles := map[[2]string][]string{}
	var order [][2]string
	for _, e := range r.Entries {
		why := e.whyNot()
		if why == "" {
			continue
		}
		key := [2]string{e.Row, why}
		if roles[key] == nil {
			order = append(order, key)
		}
		if !slices.Contains(roles[key], e.Role) {
			roles[key] = append(roles[key], e.Role)
		}
	}
	for _, key := range order {
		t.Add(key[0], strings.Join(roles[key], ", "), key[1])
	}
	return t
}

// whyNot says why the entry has no result; empty if it has.
func (e *Entry) whyNot() string {
	switch {
	case e.Skip != "":
		return e.Skip
	case e.Result == nil:
		return "not reached before the run was interrupted"
	case !e.Result.Ran():
		return fmt.Sprintf("%s: %s", e.Result.Status, e.Result.Reason)
	}
	return ""
}

// place names the training rows of a set.
type place struct {
	name string
	n    int
}
