package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// numberRows returns n rows of a format with the arguments 0.37·i − 3.02, which is not a whole number, and i.
func numberRows(n int, format string) string {
	return joinLines(n, func(i int) string { return fmt.Sprintf(format, 0.37*float64(i)-3.02, i) })
}

// classRows returns n rows of two features and one of the words in turn.
func classRows(n int, words ...string) string {
	return joinLines(n,
		func(i int) string { return fmt.Sprintf("%.2f,%d,%s", 0.37*float64(i)-3.02, i%7, words[i%len(words)]) })
}

// TestReadReport checks that every decision about a file is reported, or that the file is refused with the flag that
// decides.
func TestReadReport(t *testing.T) {
	checkReadings(t, []reading{{"Latin-1", "a,b,y\n" + classRows(40, "M\xfcller", "M\xf6ller"), ReadOptions{},
		"labels Möller (20), Müller (20)"}})
	words := []string{"Null", "NULL", "#N/A", `\N`, "<NA>", "--", "nan", "n.a.", "#DIV/0!", "NaT", "None", "?"}
	d, err := Read(strings.NewReader("x,y\n"+joinLines(60, func(i int) string {
		if i < len(words) {
			return words[i] + ",0.5"
		}
		return "1.5,0.5"
	})), "f.csv", &ReadOptions{KeepMissing: true})
	if err != nil || d.ReadReport.Missing != len(words) {
		t.Errorf("words for a missing value: %v, %v", d, err)
	}
}

// TestFeaturesByName checks that the features of a model are found by their names, and that nothing is guessed if the
// file has no names.
func TestFeaturesByName(t *testing.T) {
	codings := []ColumnCoding{{Column: "1", Values: []string{"", "red", "blue"}}}
	columns := []string{"a", "color=", "color=red", "color=blue", "b"}
	for _, c := range []struct {
		name, file string
		options    ReadOptions
		x          []float64 // features of the first row, or nil if the file is refused
		want       string    // part of the read report or of the error
	}{
		{"another order", "b,y,color,a\n2,0.5,red,1\n3,0.7,blue,4\n", ReadOptions{Target: "y"},
			[]float64{1, 0, 1, 0, 2}, `target "y"`},
		{"others among them", "id,b,date,color,a,note\n7,2,2024-01-01,blue,1,hi\n8,3,2024-01-02,,4,ho\n",
			ReadOptions{Target: "y"}, []float64{1, 0, 0, 1, 2}, `left out, not in the model: "id", "date", "note"`},
		{"an empty target", "a,color,b,y\n1,red,2,\n3,red,4,0.5\n", ReadOptions{Target: "y"}, []float64{1, 0, 1, 0, 2},
			"answers left out: line 2, target: the cell is empty"},
		{"a target of words", "a,color,b,y\n1,red,2,unknown\n3,red,4,unknown\n", ReadOptions{Target: "y"},
			[]float64{1, 0, 1, 0, 2}, `answers left out: line 2, target: "unknown"`},
		{"one is missing", "a,color,y\n1,red,0.5\n", ReadOptions{Target: "y"}, nil,
			`the columns "b" of the model are missing: there are "a", "color", "y"`},
		{"all are missing", "u,v,w\n1,2,0.5\n3,4,0.7\n", ReadOptions{Target: "y"}, nil, "none of the columns"},
		{"twice", "a,color,b,b\n1,red,2,3\n", ReadOptions{Target: "y"}, nil, `several columns are named "b"`},
		{"no header, a column more", "1,red,2,0.5\n3,red,4,0.7\n", ReadOptions{Target: "y"}, nil,
			"4 columns without a header, and 3 features of the model: if column 4 has the answers, say --target 3"},
		{"no header, the features", "1,red,2\n3,red,4\n", ReadOptions{Target: "y"}, []float64{1, 0, 1, 0, 2},
			"2 rows of 5 features"},
	} {
		options := c.options
		options.Columns, options.ColumnCodings, options.Dim, options.Task, options.TargetOptional = columns, codings, 5,
			"regression", true
		d, err := Read(strings.NewReader(c.file), "f.csv", &options)
		if err != nil {
			if c.x != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			continue
		}
		if c.x == nil || !slices.Equal(denseRows(d.X)[0], c.x) || !strings.Contains(d.ReadReport.String(), c.want) {
			t.Errorf("%s: %v, %v, want %v and %s", c.name, denseRows(d.X)[0], d.ReadReport, c.x, c.want)
		}
	}
}

// TestUnnamedColumn checks that a column without a name, such as an index written by pandas, is not taken for the
// target if no target is named, and a column with the name none is not if the target is none.
func TestUnnamedColumn(t *testing.T) {
	options := ReadOptions{Columns: []string{"a", "b"}, Dim: 2, Task: "regression"}
	d := must(Read(strings.NewReader(",a,b,y\n7,1,2,0.5\n8,3,4,0.6\n"), "f.csv", &options))
	if !slices.Equal(d.Target, []float64{0.5, 0.6}) {
		t.Errorf("the last column is the target by default: %v", d.ReadReport)
	}
	options.TargetOptional = true
	for target, head := range map[string]string{"": ",a,b\n", "none": "none,a,b\n"} {
		options.Target = target
		if d := must(Read(strings.NewReader(head+"7,1,2\n8,3,4\n"), "f.csv", &options)); d.HasAnswers() {
			t.Errorf("answers %v: %v", d.Target, d.ReadReport)
		}
	}
}

// TestClassIn checks how labels of other files are matched with known ones. They match by the same text, else by the
// same number, boolean or Unicode text, and else, with a note, by the only label that differs in case.
func TestClassIn(t *testing.T) {
	for _, c := range []struct {
		labels, known []string
		want          []int
	}{
		{[]string{"1.0", "+2"}, []string{"1", "2"}, []int{0, 1}},
		{[]string{"01", "1"}, []string{"1", "01"}, []int{1, 0}},
		{[]string{"1.10"}, []string{"1.1"}, []int{-1}}, {[]string{"True"}, []string{"true"}, []int{0}},
		{[]string{"Ko\u0308ln", "ULM", "Ulm"}, []string{"K\u00f6ln", "Ulm", "ULM"}, []int{0, 2, 1}},
		{[]string{"ulm"}, []string{"Ulm", "ULM"}, []int{-1}},
		{[]string{"-0.0"}, []string{"-1", "0"}, []int{1}},
		{[]string{"1000000000000000002"}, []string{"1000000000000000001"}, []int{-1}},
	} {
		d := &Dataset{Name: "d", Labels: c.labels, Class: []int{0}}
		if got := d.ClassIn(c.known); !slices.Equal(got, c.want) {
			t.Errorf("%q among %q: %v", c.labels, c.known, got)
		}
		if note, err := d.CheckLabels(c.known); (err != nil) != (c.want[0] < 0) || note != "" {
			t.Errorf("%q among %q: %s, %v", c.labels, c.known, note, err)
		}
	}
	d := &Dataset{Name: "d", Labels: []string{"YES", "maybe"}, Class: []int{0, 1}}
	note, err := d.CheckLabels([]string{"no", "yes"})
	checkContains(t, note, `labels taken as equal: "YES" = "yes"; d: the labels "maybe", of 1 of 2 rows, are not among`)
	if classIn := d.ClassIn([]string{"no", "yes"}); err != nil || !slices.Equal(classIn, []int{1, -1}) {
		t.Errorf("classes %v, %v, want 1 and -1", classIn, err)
	}
}

// TestDecodeText checks that text that is not UTF-8 is read as Windows-1252, and that every byte remains distinct.
func TestDecodeText(t *testing.T) {
	source, decoded := &Source{report: &ReadReport{}}, map[string]bool{}
	for b := 128; b < 256; b++ {
		decoded[source.decodeText(string([]byte{byte(b)}))] = true
	}
	if len(decoded) != 128 || !decoded["€"] || !decoded["ü"] || !decoded["\u0081"] || len(source.report.Notes) != 1 {
		t.Errorf("%d texts, %q", len(decoded), source.report.Notes)
	}
}
