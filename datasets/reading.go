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
	add := func(is bool, format string, args ...any) {
		if is {
			part = append(part, fmt.Sprintf(format, args...))
		}
	}
	add(r.Container != "", "unpacked from %s", r.Container)
	add(true, "%s", r.Format)
	add(r.Separator != "", "separator %s", r.Separator)
	add(r.Header != "", "header %s", r.Header)
	add(true, "%d rows of %d features", r.Rows, r.Features)
	target := "column " + r.Target + " (counted from 0)"
	if strings.HasPrefix(r.Header, "yes") {
		target = quote(r.Target)
	}
	add(r.Target != "", "target %s", target)
	var each []string
	for _, l := range r.Labels {
		each = append(each, fmt.Sprintf("%s (%d)", plain(l.Label), l.Rows))
	}
	n := len(each)
	add(n > shownClasses, "%d labels", n)
	add(0 < n && n <= shownClasses, "labels %s", strings.Join(each, ", "))
	add(len(r.Dropped) > 0, "left out %s", nameList(r.Dropped))
	add(len(r.Ignored) > 0, "left out, not in the model: %s", nameList(r.Ignored))
	more := ""
	if r.Skips > len(r.Skipped) {
		more = ", …"
	}
	lines := strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Skipped), "[]"), " ", ", ")
	add(r.Skips > 0, "lines skipped: %d (%s%s)", r.Skips, lines, more)
	add(r.Missing > 0, "missing cells: %d", r.Missing)
	repeats := r.Repeats.String()
	add(repeats != "", "%s", repeats)
	add(r.Unjudged != "", "answers left out: %s", r.Unjudged)
	return plain(filepath.Base(r.File)) + ": " + strings.Join(append(part, r.Notes...), "; ")
}
