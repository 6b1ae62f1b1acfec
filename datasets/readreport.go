package datasets

import (
	"fmt"
	"path/filepath"
	"strings"
)

// ReadReport records how a file was interpreted, and why. It is the line `read` of a report.
type ReadReport struct {
	File         string `json:"file"`
	Container    string `json:"container,omitempty"` // containers in which the file is packed
	Format       string `json:"format"`
	Separator    string `json:"separator,omitempty"` // separator of the cells of a csv file, and the reason
	Header       string `json:"header,omitempty"`    // "yes" or "no", and the reason
	Rows         int    `json:"rows"`
	SkippedLines []int  `json:"skipped,omitempty"` // first maxListedSkips blank lines and comments
	SkippedCount int    `json:"skips,omitempty"`   // total number of such lines
	Target       string `json:"target,omitempty"`  // name of the target column, or its number counted from 0
	Features     int    `json:"features"`
	// Dropped are columns that the options drop, and Ignored are columns that the model does not use.
	Dropped []string     `json:"dropped,omitempty"`
	Ignored []string     `json:"ignored,omitempty"`
	Labels  []LabelCount `json:"labels,omitempty"`
	Missing int          `json:"missing,omitempty"` // number of missing cells, to be filled in
	Repeats *Repeats     `json:"repeats,omitempty"` // how rows are grouped; nil without answers
	// NoAnswersReason says why optional answers of the file were ignored; "" if they were not.
	NoAnswersReason string   `json:"unjudged,omitempty"`
	Notes           []string `json:"notes,omitempty"`
}

// LabelCount is a class and its number of rows.
type LabelCount struct {
	Label string `json:"label"`
	Rows  int    `json:"rows"`
}

// maxListedSkips is the largest number of skipped lines that a ReadReport lists.
const maxListedSkips = 10

// addSkipped records n skipped lines from firstLine on.
func (r *ReadReport) addSkipped(firstLine, n int) {
	for k := range min(n, maxListedSkips-len(r.SkippedLines)) {
		r.SkippedLines = append(r.SkippedLines, firstLine+k)
	}
	r.SkippedCount += n
}

// separatorName returns the name of the separator, without the reason; "" for a file without separators.
func (r *ReadReport) separatorName() string {
	name, _, _ := strings.Cut(r.Separator, " ")
	return name
}

// note adds a remark to the report.
func (r *ReadReport) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// countRows sets the numbers of rows, features and labels from the data that were read.
func (r *ReadReport) countRows(d *Dataset) {
	r.Rows, r.Features = d.Len(), d.Dim()
	if d.Class == nil {
		return
	}
	rows := d.rowsOfClasses()
	for k, label := range d.Labels {
		r.Labels = append(r.Labels, LabelCount{label, rows[k]})
		if isMissing(label) {
			r.note("%s, in %d of the rows, is taken for a class: if it stands for a missing answer, remove these rows",
				quote(label), rows[k])
		}
	}
}

// String returns the description in one line.
func (r *ReadReport) String() string {
	var parts []string
	addIf := func(applies bool, format string, args ...any) { // appends a part if the condition applies
		if applies {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	addIf(r.Container != "", "unpacked from %s", r.Container)
	addIf(true, "%s", r.Format)
	addIf(r.Separator != "", "separator %s", r.Separator)
	addIf(r.Header != "", "header %s", r.Header)
	addIf(true, "%d rows of %d features", r.Rows, r.Features)
	target := "column " + r.Target + " (counted from 0)"
	if strings.HasPrefix(r.Header, "yes") {
		target = quote(r.Target)
	}
	addIf(r.Target != "", "target %s", target)
	var labels []string
	for _, count := range r.Labels {
		labels = append(labels, fmt.Sprintf("%s (%d)", quoteIfLong(count.Label), count.Rows))
	}
	n := len(labels)
	addIf(n > maxShownClasses, "%d labels", n)
	addIf(0 < n && n <= maxShownClasses, "labels %s", strings.Join(labels, ", "))
	addIf(len(r.Dropped) > 0, "left out %s", nameList(r.Dropped))
	addIf(len(r.Ignored) > 0, "left out, not in the model: %s", nameList(r.Ignored))
	ellipsis := ""
	if r.SkippedCount > len(r.SkippedLines) {
		ellipsis = ", …"
	}
	lines := strings.ReplaceAll(strings.Trim(fmt.Sprint(r.SkippedLines), "[]"), " ", ", ")
	addIf(r.SkippedCount > 0, "lines skipped: %d (%s%s)", r.SkippedCount, lines, ellipsis)
	addIf(r.Missing > 0, "missing cells: %d", r.Missing)
	repeats := r.Repeats.String()
	addIf(repeats != "", "%s", repeats)
	addIf(r.NoAnswersReason != "", "answers left out: %s", r.NoAnswersReason)
	return quoteIfLong(filepath.Base(r.File)) + ": " + strings.Join(append(parts, r.Notes...), "; ")
}
