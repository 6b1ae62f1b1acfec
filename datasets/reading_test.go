package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rowsOf returns n rows of a format with i·0.37 − 3, which is no whole number, and i as arguments.
func rowsOf(n int, format string) string {
	return lines(n, func(i int) string { return fmt.Sprintf(format, 0.37*float64(i)-3.02, i) })
}

// classesOf returns n rows of two features and one of the words in turn.
func classesOf(n int, words ...string) string {
	return lines(n,
		func(i int) string { return fmt.Sprintf("%.2f,%d,%s", 0.37*float64(i)-3.02, i%7, words[i%len(words)]) })
}

// TestReading: what is decided about a file is reported, or the file is refused with the flag that decides.
func TestReading(t *testing.T) {
	checkReadings(t, []reading{
		// Separators are those that give the rows one width and numbers in the cells.
		{"semicolons, commas in names", "width, cm;depth, cm;y\n" + rowsOf(20, "%.2f;%[2]d;0.5"), ReadOptions{},
			"separator semicolon (3 cells in 21 of 21 rows); header yes (words); 20 rows of 2 features"},
		{"tabs, times with blanks", rowsOf(20, "2024-05-01 08:%02[2]d\t%.2[1]f\t1.5"),
			ReadOptions{Drop: []string{"0"}}, "separator tab"},
		{"pipes", "a|b|y\n" + rowsOf(20, "%.2f|%[2]d|0.5"), ReadOptions{}, "separator pipe"},
		{"pipe in labels", "a,b,y\n" + classesOf(40, "u|v", "w|z"), ReadOptions{}, "separator comma"},
		{"blanks, then a tab before a name", rowsOf(20, "%6.2f   %-4[2]d 1.5\t\"big car %[2]d\""),
			ReadOptions{Drop: []string{"3"}, Target: "0"}, "separator blank (4 cells in 20 of 20 rows)"},
		{"colon by flag", "a:b:y\n" + rowsOf(20, "%.2f:%[2]d:0.5"), ReadOptions{Separator: ":", Format: "csv"},
			`separator ":" (--separator)`},
		{"tab by name", "a b\tc d\ty\n" + rowsOf(20, "%.2f\t%[2]d\t0.5"), ReadOptions{Separator: "tab"},
			"separator tab (--separator)"},
		{"quoted line breaks", "\"wid\nth\";\"a\n;,b\";y\n" + rowsOf(20, "%.2f;%[2]d;0.5"), ReadOptions{},
			"separator semicolon (3 cells in 21 of 21 rows)"},
		{"quoted blanks", "\"a b\" \"c\" \"y\"\n" + rowsOf(20, "%.2f %[2]d \"New  York, NY\""),
			ReadOptions{Target: "0"}, `!leave them out; cells are separated by a blank (--format separator= says otherwise); add --drop c --categorical y`},
		{"sep=", "sep=|\na|b|y\n" + rowsOf(20, "%.2f|%[2]d|0.5"), ReadOptions{},
			"separator pipe (the line sep= says so); header yes (words); 20 rows of 2 features; target \"y\"; " +
				"lines skipped: 1 (1)"},
		{"SEP= in capitals, a tab", "SEP=\t\r\na\tb\ty\r\n" + rowsOf(20, "%.2f\t%[2]d\t0.5"), ReadOptions{},
			"separator tab (the line"},
		{"decimal commas, tabs", rowsOf(20, "0,%[2]d\t1,%[2]d5\t0.5"), ReadOptions{}, "!decimal comma"},
		{"row names of R", "\"x\" \"y\"\n" + rowsOf(20, "\"%[2]d\" %.2[1]f 0.5"), ReadOptions{},
			"20 rows of 1 features; target \"y\"; left out \"0\"; the first column, which the header does not " +
				"name, is left out: row names"},
		{"row names, commas", "x,y\n" + rowsOf(20, "r%[2]d,%.2[1]f,0.5"), ReadOptions{Target: "y"}, "row names"},
		{"a separator at each line's end", "x,y\n" + rowsOf(20, "%.2f,%[2]d,"), ReadOptions{},
			"!the row has 3 columns, the header has 2"},
		// Headers.
		{"positions and a word", "0,1,kind\n" + classesOf(40, "cat", "dog"), ReadOptions{},
			"header yes (numbers that count the columns); 40 rows of 2"},
		{"positions from 1 and a word", "1,2,kind\n" + classesOf(40, "cat", "dog", "cow"), ReadOptions{},
			"header yes (numbers that count"},
		{"positions alone", "0,1,2\n" + rowsOf(20, "%.2f,%[2]d.5,0.5"), ReadOptions{},
			"header yes (numbers that count the columns); 20 rows"},
		{"index column and positions", ",0,1,2\n" + rowsOf(20, "%[2]d,%.2[1]f,%[2]d.5,0.5"),
			ReadOptions{Drop: []string{"0"}},
			`header yes (numbers that count the columns); 20 rows of 2 features; target "2"`},
		{"wavelengths over classes", "400.5,410,418,kind\n" + lines(40,
			func(i int) string { return fmt.Sprintf("%d.5,2,%d,%s", i%7, i%5, []string{"a", "b"}[i%2]) }),
			ReadOptions{}, `header yes (numbers that rise, and the word "kind")`},
		{"years over numbers", "2001,2002,2003,growth\n" + rowsOf(20, "%.2f,%[2]d,3,0.5"), ReadOptions{},
			`header yes (numbers that rise, and the word "growth")`},
		{"two numbers that rise and a new word", "3,8,kind\n" + classesOf(40, "cat", "dog"), ReadOptions{},
			"!say --format header=yes"},
		{"the same, said", "3,8,kind\n" + classesOf(40, "cat", "dog"), ReadOptions{Header: "no"},
			"header no (--header); 41 rows"},
		{"positions over whole numbers", "1,2,3,4,5\n" + rowsOf(20, "%[2]d,7,1,2,1"), ReadOptions{},
			"!say --format header=yes"},
		{"numbers and a word of many", rowsOf(40, "%.2f,%[2]d,cat") + "1,2,dog\n", ReadOptions{},
			"header no (the first row has numbers); 41 rows"},
		{"words in all columns, no header", lines(40, func(i int) string { return []string{"p,x,s", "e,y,n"}[i%2] }),
			ReadOptions{Target: "0", Categorical: []Category{{Column: "1"}, {Column: "2"}}},
			"header no (the words of the first row are in others too); 40 rows"},
		{"a header said to be none", "a,b,y\n" + classesOf(40, "cat", "dog"), ReadOptions{Header: "no"},
			`!"a" is not a number`},
		// Comments.
		{"#N/A in the first column", "x,z,y\n1,2,0.5\n#N/A,2,0.7\n" + rowsOf(20, "%.2f,%[2]d,0.5"),
			ReadOptions{KeepMissing: true}, "22 rows of 2 features; target \"y\"; missing cells: 1"},
		{"#A in the first column", "ch,x,y\n" + rowsOf(20, "#A,%.2f,0.5"),
			ReadOptions{Categorical: []Category{{Column: "ch"}}}, "20 rows of 2 features"},
		{"a row that begins with #", "#1,2.5,3\n" + rowsOf(20, "%.2f,%[2]d,0.5"), ReadOptions{},
			"!line 1: the line begins with # and has as many cells as the rows: say --format comment=#"},
		{"the same, a row", "#1,2.5,3\n" + rowsOf(20, "%.2f,%[2]d,0.5"), ReadOptions{Comment: "none"},
			`!"#1" is not a number`},
		{"the same, a comment", "#1,2.5,3\n" + rowsOf(20, "%.2f,%[2]d,0.5"), ReadOptions{Comment: "#"},
			"20 rows of 2 features; target column 2 (counted from 0); lines skipped: 1 (1)"},
		{"a header of NumPy", "# x z y\n" + rowsOf(20, "%.2f %[2]d 0.5"), ReadOptions{Target: "y"},
			"the header begins with #"},
		{"comments by flag", "x,z,y\n1,2,0.5\n% a, b\n" + rowsOf(20, "%.2f,%[2]d,0.5"), ReadOptions{Comment: "%"},
			"21 rows of 2 features; target \"y\"; lines skipped: 1 (3)"},
		{"a comment at the end", "x,z,y\n" + rowsOf(20, "%.2f,%[2]d,0.5") + "# done\n", ReadOptions{},
			"!line 22: the row has 1 columns, the header has 3; if lines that begin with # are comments, say " +
				"--format comment=#"},
		{"a footer", "x,z,y\n" + rowsOf(20, "%.2f,%[2]d,0.5") + "(20 rows)\n", ReadOptions{},
			`!the header has 3: "(20 rows)"`},
		{"labels #", rowsOf(20, "#p 1:%.2f 2:%[2]d"), ReadOptions{},
			"!say --format comment=# if it is a comment, --format comment=none if # begins a label"},
		{"the same, labels", rowsOf(20, "#p 1:%.2f 2:%[2]d") + rowsOf(20, "n 1:%.2f 2:%[2]d"),
			ReadOptions{Comment: "none"}, "labels #p (20), n (20)"},
		// LIBSVM.
		{"commas in comments", rowsOf(40, "%[2]d.5 1:%.2[1]f 3:1 # a, b; c"), ReadOptions{},
			"libsvm (items index:value); 40 rows of 3 features"},
		{"rows without features", "1\n1\n0\n" + rowsOf(40, "1 1:%.2f 2:%[2]d") + "0\n", ReadOptions{}, "libsvm"},
		{"no labels", rowsOf(40, "1:%.2f 2:%[2]d"), ReadOptions{}, "!the line has no label"},
		{"no labels, no target", rowsOf(40, "1:%.2f 2:%[2]d"), ReadOptions{Target: "none"},
			"libsvm (items index:value); 40 rows of 2 features"},
		{"a label is missing", rowsOf(40, "1 1:%.2f 2:%[2]d") + "1:3 2:4\n", ReadOptions{},
			"!line 41, column 1: the line has no label"},
		{"from 0", rowsOf(40, "1 0:%.2f 1:%[2]d"), ReadOptions{}, "!LIBSVM counts features from 1"},
		{"qid", rowsOf(40, "1 qid:%[2]d 1:%.2[1]f"), ReadOptions{}, `!index "qid"`},
		{"times are no items", rowsOf(40, "08:%02[2]d:00 %.2[1]f 0.5"), ReadOptions{Drop: []string{"0"}},
			"csv; separator blank"},
		// Cells that are no numbers.
		{"hexadecimal", "a,y\n" + rowsOf(20, "0x1p%[2]d,0.5"), ReadOptions{}, `!"0x1p0" is not a number: hexadecimal?`},
		{"the header again", "a,b,y\n" + classesOf(20, "1.5", "2.5") + "a,b,y\n" + classesOf(20, "1.5"), ReadOptions{},
			`!line 22, column 1: a: "a" is not a number: the header again? remove the line`},
		{"underscores", "a,y\n" + lines(20, func(int) string { return "1_0,0.5" }), ReadOptions{},
			`!"1_0" is not a number: underscores between digits? write 10`},
		{"exponents of Fortran", "a,y\n" + rowsOf(20, "%.2fd+01,0.5"), ReadOptions{},
			"!an exponent of Fortran? write E"},
		{"hexadecimal answers", "a,y\n" + rowsOf(20, "%.2f,0x1%[2]d"), ReadOptions{}, "!hexadecimal?"},
		{"underscored label", "a,b,y\n" + classesOf(40, "1_0", "2_0"), ReadOptions{Task: "classification"},
			"labels 1_0 (20), 2_0 (20)"},
		{"a name with a comma", "a,\"Price, EUR\",\"c, d\"\n" + rowsOf(20, "%.2f,%[2]d.5,3"),
			ReadOptions{Target: "Price, EUR"}, `2 features; target "Price, EUR"`},
		{"two names with commas", "a,\"Price, EUR\",\"c, d\"\n" + rowsOf(20, "%.2f,%[2]d.5,3"),
			ReadOptions{Target: `"Price, EUR","c, d"`}, `1 features; target "Price, EUR"`},
		// Labels are text.
		{"leading zeros", "a,b,y\n" + classesOf(40, "007", "7"), ReadOptions{}, "labels 007 (20), 7 (20)"},
		{"versions", "a,b,y\n" + classesOf(40, "2.10", "2.1", "2.0"), ReadOptions{Task: "classification"},
			"labels 2.0 (13), 2.1 (13), 2.10 (14)"},
		{"long numbers", "a,b,y\n" + classesOf(40, "9007199254740993", "9007199254740992"), ReadOptions{},
			"labels 9007199254740992 (20), 9007199254740993 (20)"},
		{"one number", "a,b,y\n" + classesOf(40, "+1", "1.0", "1", "-0", "0", "0.0", "1e0"), ReadOptions{},
			"labels 0 (17), 1 (23)"},
		{"zeros after the point", "a,b,y\n" + classesOf(40, "1.0000", "2.0000"), ReadOptions{},
			"labels 1 (20), 2 (20)"},
		{"as R writes", "a,b,y\n" + classesOf(40, "1e+05", "100000", "3"), ReadOptions{}, "labels 3 (13), 100000 (27)"},
		{"Latin-1", "a,b,y\n" + classesOf(40, "M\xfcller", "M\xf6ller"), ReadOptions{},
			"labels Möller (20), Müller (20)"},
		{"NA among words", "a,b,y\n" + classesOf(39, "no", "yes") + "1,1,N/A\n", ReadOptions{},
			`"N/A", in 1 of the rows, is taken for a class`},
		// Other files.
	})
	words := []string{"Null", "NULL", "#N/A", `\N`, "<NA>", "--", "nan", "n.a.", "#DIV/0!", "NaT", "None", "?"}
	d, err := Read(strings.NewReader("x,y\n"+lines(60, func(i int) string {
		if i < len(words) {
			return words[i] + ",0.5"
		}
		return "1.5,0.5"
	})), "f.csv", &ReadOptions{KeepMissing: true})
	if err != nil || d.Read.Missing != len(words) {
		t.Errorf("words for a missing value: %v, %v", d, err)
	}
}

// TestByName: the features of a model are found by their names, and nothing is guessed where there are none.
func TestByName(t *testing.T) {
	cat := []Category{{Column: "1", Values: []string{"", "red", "blue"}}}
	columns := []string{"a", "color=", "color=red", "color=blue", "b"}
	for _, c := range []struct {
		name, file string
		o          ReadOptions
		x          []float64 // of the first row
		want       string
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
		o := c.o
		o.Columns, o.Categorical, o.Dim, o.Task, o.TargetOptional = columns, cat, 5, "regression", true
		d, err := Read(strings.NewReader(c.file), "f.csv", &o)
		if err != nil {
			if c.x != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			continue
		}
		if c.x == nil || !slices.Equal(dense(d.X)[0], c.x) || !strings.Contains(d.Read.String(), c.want) {
			t.Errorf("%s: %v, %v, want %v and %s", c.name, dense(d.X)[0], d.Read, c.x, c.want)
		}
	}
}

// TestClassIn: labels of other files are those of the same text, or else of the same number, boolean or Unicode text, or
// else, with a note, the only one that differs in case.
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
	contains(t, note, `labels taken as equal: "YES" = "yes"; d: the labels "maybe", of 1 of 2 rows, are not among`)
	if at := d.ClassIn([]string{"no", "yes"}); err != nil || !slices.Equal(at, []int{1, -1}) {
		t.Errorf("%v, %v", at, err)
	}
}
