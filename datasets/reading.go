package datasets

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Reading is what was decided of a file as it was read, and why: the line `read` of a report.
type Reading struct {
	File      string `json:"file"`
	Container string `json:"container,omitempty"` // what the file is packed in
	Format    string `json:"format"`
	Separator string `json:"separator,omitempty"` // of the cells of a csv file, and why it
	Header    string `json:"header,omitempty"`    // "yes" or "no", and why
	Rows      int    `json:"rows"`
	Skipped   []int  `json:"skipped,omitempty"` // lines that are no rows: blank ones and comments; the first of them
	Skips     int    `json:"skips,omitempty"`   // how many there are
	Target    string `json:"target,omitempty"`  // its name, or number counted from 0
	Features  int    `json:"features"`
	// Dropped are columns that are left out since the options say so, Ignored those that the model does not have.
	Dropped []string     `json:"dropped,omitempty"`
	Ignored []string     `json:"ignored,omitempty"`
	Labels  []LabelCount `json:"labels,omitempty"`
	Missing int          `json:"missing,omitempty"` // cells without a value, to be filled in
	Repeats *Repeats     `json:"repeats,omitempty"` // of the rows; nil without answers
	// Unjudged says why the answers of a file that needs none were left out.
	Unjudged string   `json:"unjudged,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// LabelCount is a class and how many rows have it.
type LabelCount struct {
	Label string `json:"label"`
	Rows  int    `json:"rows"`
}

// mostSkipped is the most lines that a Reading names.
const mostSkipped = 10

// skip notes that lines from first on, n of them, are no rows.
func (r *Reading) skip(first, n int) {
	for k := range min(n, mostSkipped-len(r.Skipped)) {
		r.Skipped = append(r.Skipped, first+k)
	}
	r.Skips += n
}

func (r *Reading) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// count sets what is known of the data when they are read.
func (r *Reading) count(d *Dataset) {
	r.Rows, r.Features = d.Len(), d.Dim()
	if d.Class == nil {
		return
	}
	rows := make([]int, len(d.Labels))
	for _, c := range d.Class {
		rows[c]++
	}
	for k, l := range d.Labels {
		r.Labels = append(r.Labels, LabelCount{l, rows[k]})
		if isMissing(l) {
			r.note("%s, in %d of the rows, is taken for a class: if it stands for a missing answer, remove these rows",
				quote(l), rows[k])
		}
	}
}

// String returns one line.
func (r *Reading) String() string {
	var part []string
	add := func(format string, args ...any) { part = append(part, fmt.Sprintf(format, args...)) }
	if r.Container != "" {
		add("unpacked from %s", r.Container)
	}
	add("%s", r.Format)
	target := "column " + r.Target + " (counted from 0)"
	if r.Separator != "" {
		add("separator %s", r.Separator)
	}
	if r.Header != "" {
		add("header %s", r.Header)
		if strings.HasPrefix(r.Header, "yes") {
			target = quote(r.Target)
		}
	}
	add("%d rows of %d features", r.Rows, r.Features)
	if r.Target != "" {
		add("target %s", target)
	}
	if n := len(r.Labels); n > shownClasses {
		add("%d labels", n)
	} else if n > 0 {
		var each []string
		for _, l := range r.Labels {
			each = append(each, fmt.Sprintf("%s (%d)", plain(l.Label), l.Rows))
		}
		add("labels %s", strings.Join(each, ", "))
	}
	if len(r.Dropped) > 0 {
		add("left out %s", nameList(r.Dropped))
	}
	if len(r.Ignored) > 0 {
		add("left out, not in the model: %s", nameList(r.Ignored))
	}
	if r.Skips > 0 {
		more := ""
		if r.Skips > len(r.Skipped) {
			more = ", …"
		}
		lines := strings.Trim(fmt.Sprint(r.Skipped), "[]")
		add("lines skipped: %d (%s%s)", r.Skips, strings.ReplaceAll(lines, " ", ", "), more)
	}
	if r.Missing > 0 {
		add("missing cells: %d", r.Missing)
	}
	if text := r.Repeats.String(); text != "" {
		add("%s", text)
	}
	if r.Unjudged != "" {
		add("answers left out: %s", r.Unjudged)
	}
	return plain(filepath.Base(r.File)) + ": " + strings.Join(append(part, r.Notes...), "; ")
}
