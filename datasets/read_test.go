package datasets

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
)

// dense returns the points as rows.
func dense(x points.Points) [][]float64 {
	n, d := x.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, d)
		x.RowTo(rows[i], i)
	}
	return rows
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// bz2 is "1,2\n3,4\n" packed by bzip2.
const bz2 = "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x93\xb7\x0d\x0c\x00\x00\x02\x58\x00\x00\x10\x00\x04\x3c\x00\x20\x00\x30\xc0\x08\x69\xb2\x88\x23\x27\x8b\xb9\x22\x9c\x28\x48\x49\xdb\x86\x86\x00"

// reading is a file and what is made of it: the rows, targets, labels, classes and columns, a part of the line
// on how it was read, or after a bang the error.
type reading struct {
	name, file string
	o          ReadOptions
	want       string
}

// checkReadings reads each file; an error is one line.
func checkReadings(t *testing.T, cases []reading) {
	t.Helper()
	for _, c := range cases {
		d, err := Read(strings.NewReader(c.file), "f", &c.o)
		want, bang := strings.CutPrefix(c.want, "!")
		got, said := "", fmt.Sprint(err)
		if err == nil {
			got, said = fmt.Sprintln(dense(d.X), d.Target, d.Labels, d.Class, d.Columns), d.Read.String()
		}
		if bang != (err != nil) || !strings.Contains(got+said, want) || strings.Contains(said, "\n") {
			t.Errorf("%s: %.2000s, want %s", c.name, got+said, c.want)
		}
	}
}

// TestRead: separators, headers, marks, targets by number and name, columns left out, and every fault with its place.
func TestRead(t *testing.T) {
	whole := gzipped(strings.Repeat("1,2\n3,4\n", 5000))
	const named, bare = "id,name,a,y,b\n17,Ann,1,0.5,2\n18,,3,1.5,4\n", "17,Ann,1,0.5,2\n18,Bo,3,1.5,4\n"
	classes := strings.Repeat("0,1\n0,2\n", 10)
	other := strings.Repeat("0,other\n", 5)
	checkReadings(t, []reading{
		{"no newline at the end", "1,2,3.5\n4,5,6", ReadOptions{}, "[[1 2] [4 5]] [3.5 6] [] [] []"},
		{"crlf and blank lines", "\r\n1,2,3.5\r\n\r\n4,5,6\r\n\r\n", ReadOptions{}, "[[1 2] [4 5]] [3.5 6] [] [] []"},
		{"header quoted", "\"a\",\"b,c\",\"y\"\n1,2,3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] [a b,c]"},
		{"numbers as names", "2020,2021\n1,2\n", ReadOptions{Target: "0"}, "[[2021] [2]] [2020 1] [] [] []"},
		{"from the end", "1,7.5,2\n", ReadOptions{Target: "-2"}, "[[1 2]] [7.5] [] [] []"},
		{"none", "1,7,2\n", ReadOptions{Target: "none"}, "[[1 7 2]] [] [] [] []"},
		{"dim without target", "1,7\n", ReadOptions{Dim: 2}, "[[1 7]] [] [] [] []"},
		{"dim with target", "1,7,0.5\n", ReadOptions{Dim: 2}, "[[1 7]] [0.5] [] [] []"},
		{"text labels, no header", "1,2,cat\n3,4,dog\n5,6,cat\n", ReadOptions{},
			"[[1 2] [3 4] [5 6]] [] [cat dog] [0 1 0] []"},
		{"classes by task", "1,10\n2,9\n3,10.0\n", ReadOptions{Task: "classification"},
			"[[1] [2] [3]] [] [9 10] [1 0 1] []"},
		{"regression by task", strings.Repeat("1,0\n2,1\n", 5), ReadOptions{Task: "regression"},
			"[[1] [2] [1] [2] [1] [2] [1] [2] [1] [2]] [0 1 0 1 0 1 0 1 0 1] [] [] []"},
		{"blanks", " 1  2 3.5 \n4 5   6.5\n", ReadOptions{}, "[[1 2] [4 5]] [3.5 6.5] [] [] []"},
		{"spaces after commas", "1, 2, 3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"booleans", "a,b,y\nTrue,1,0.5\nfalse,2,1.5\n", ReadOptions{}, "[[1 1] [0 2]] [0.5 1.5] [] [] [a b]"},
		{"booleans are noted", "a,b,y\nTrue,1,0.5\nfalse,2,1.5\n", ReadOptions{}, `true and false are read as 1 and 0 in "a"`},
		{"booleans to predict", "TRUE,1\n0,2\n,3\n", ReadOptions{Dim: 2, KeepMissing: true}, "[[1 1] [0 2] [NaN 3]]"},
		{"booleans among numbers", "a,b,y\n7,1,0.5\nfalse,2,1.5\n", ReadOptions{},
			"!line 3, column 1: a: true or false, and the column has other numbers, such as 7"},
		{"booleans among words", "a,b,y\nTrue,1,0.5\nmaybe,2,1.5\nfalse,3,2.5\n", ReadOptions{}, "!add --categorical a"},
		{"a column without values", "a,b,y\n,1,0.5\n,2,1.5\n", ReadOptions{}, `!"a" has no value; add --drop a`},
		{"bzip2", bz2, ReadOptions{Target: "none"}, "[[1 2] [3 4]] [] [] [] []"},
		{"max rows", "1,2.5\n3,4.5\n5,oops\n", ReadOptions{MaxRows: 2}, "[[1] [3]] [2.5 4.5] [] [] []"},
		{"no header", "1,2,3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"CR at the end", "1,2,3.5\r", ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"header", "a, b ,y\n1,2,3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] [a b]"},
		{"target first", "y,a,b\n3.5,1,2\n", ReadOptions{Target: "y"}, "[[1 2]] [3.5] [] [] [a b]"},
		{"named among numbers", "2019,2020,y\n1,2,3.5\n", ReadOptions{Target: "y"}, "[[1 2]] [3.5] [] [] [2019 2020]"},
		{"no name in the corner", ",a,y\n1,2,3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] [ a]"},
		{"Latin-1", "gr\xf6\xdfe,y\n1,3.5\n", ReadOptions{}, "[[1]] [3.5] [] [] [größe]"},
		{"mark before a name", "\xef\xbb\xbfy,a\n3.5,1\n", ReadOptions{Target: "y"}, "[[1]] [3.5] [] [] [a]"},
		{"mark, packed", gzipped("\xef\xbb\xbf1,2,3.5\n"), ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"mark, LIBSVM", "\xef\xbb\xbf1.5 1:2\n", ReadOptions{}, "[[2]] [1.5] [] [] []"},
		{"comments", "# made; by \"hand\n\na,y\n# here too\n1,3.5\n", ReadOptions{}, "[[1]] [3.5] [] [] [a]"},
		{"comment before blanks", "# x, y\n1 2 3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] []"},
		{"quoted comma", "\"a, m\";\"b\";y\n1;2;3.5\n", ReadOptions{}, "[[1 2]] [3.5] [] [] [a, m b]"},
		{"lines of blanks", "  \n1,2,3.5\n \t \n4,5,6.5\n   ", ReadOptions{}, "[[1 2] [4 5]] [3.5 6.5] [] [] []"},
		{"lines of blanks among tabs", "1\t2\t3.5\n  \n4\t5\t6.5\n", ReadOptions{}, "[[1 2] [4 5]] [3.5 6.5] [] [] []"},
		{"optional, there", "3.5,1,2\n", ReadOptions{Target: "0", TargetOptional: true, Dim: 2},
			"[[1 2]] [3.5] [] [] []"},
		{"optional, by name", "y,a,b\n3.5,1,2\n", ReadOptions{Target: "y", TargetOptional: true, Dim: 2},
			"[[1 2]] [3.5] [] [] [a b]"},
		{"optional, not there", "a,b\n1,2\n", ReadOptions{Target: "y", TargetOptional: true, Dim: 2},
			"[[1 2]] [] [] [] [a b]"},
		{"optional, LIBSVM", "3.5 1:2\n", ReadOptions{Target: "y", TargetOptional: true}, "[[2]] [3.5] [] [] []"},
		{"none, LIBSVM", "3.5 1:2\n", ReadOptions{Target: "none"}, "[[2]] [] [] [] []"},
		{"names", named, ReadOptions{Drop: []string{"name", "id"}, Target: "y"}, "[[1 2] [3 4]] [0.5 1.5] [] [] [a b]"},
		{"numbers", bare, ReadOptions{Drop: []string{"0", "1", "-1"}, Target: "-2"}, "[[1] [3]] [0.5 1.5] [] [] []"},
		{"dim is of what is left", named, ReadOptions{Drop: []string{"0", "1"}, Target: "y", Dim: 2},
			"[[1 2] [3 4]] [0.5 1.5] [] [] [a b]"},
		{"no target", "id,a,b\n7,1,2\n", ReadOptions{Drop: []string{"id", "name"}, Target: "y", TargetOptional: true,
			Dim: 2},
			"[[1 2]] [] [] [] [a b]"},
		{"the features alone", "a,b\n1,2\n", ReadOptions{Drop: []string{"0"}, Target: "1", TargetOptional: true,
			Dim: 2},
			"[[1 2]] [] [] [] [a b]"},
		{"with the target", named, ReadOptions{Drop: []string{"0", "name"}, Target: "y", TargetOptional: true, Dim: 2},
			"[[1 2] [3 4]] [0.5 1.5] [] [] [a b]"},
		{"another format", "1.5 1:2\n", ReadOptions{Drop: []string{"id"}, TargetOptional: true},
			"[[2]] [1.5] [] [] []"},
		{"drop", named, ReadOptions{Drop: []string{"ids"}},
			`!f, line 1: drop: no column is named "ids": there are "id", "name"`},
		{"drop", named, ReadOptions{Drop: []string{"5"}},
			"!f, line 1: drop: column 5: the rows have 5 columns, 0 to 4"},
		{"drop", named, ReadOptions{Drop: []string{"y"}, Target: "y"},
			"!f, line 1: target: column 3 is in --drop too"},
		{"drop", named, ReadOptions{Drop: []string{"0", "1", "2", "4"}, Target: "y"},
			"!f, line 1: no column is left for a feature"},
		{"drop", "1 1:2\n", ReadOptions{Drop: []string{"id"}},
			"!f: a file of format libsvm has no columns with names: --drop is for csv files"},
		{"drop", named, ReadOptions{Dim: 3, DimOf: "train.csv"},
			"!f, line 1: points have 4 features, train.csv has 3; column 5 is taken for the target"},
		{"drop", "1,2,3,4\n2,3,Bob,5\n", ReadOptions{Dim: 2, DimOf: "the model"},
			"!f, line 1: points have 3 features, the model has 2; column 4 is taken for the target"},
		{"drop", named, ReadOptions{},
			`!f: columns that are no numbers: "name" has words (1, such as "Ann"); "id" looks like an identifier (whole numbers that all differ, or the name): unless the numbers are times, ranks or the like, leave them out; add --drop id --categorical name`},
		{"empty", "", ReadOptions{}, "!f: the file is empty"},
		{"empty gzip", gzipped(""), ReadOptions{}, "!f: the file is empty"},
		{"ragged", "1,2,3\n1,2\n", ReadOptions{}, "!f, line 2: the row has 2 columns, the first row has 3"},
		{"ragged under header", "a,b\n1,2\n\n1,2,3\n", ReadOptions{},
			"!f, line 4: the row has 3 columns, the header has 2"},
		{"nan", "1,2,3\n1,nan,3\n", ReadOptions{}, `!f, line 2, column 2: "nan" is not finite`},
		{"overflow", "1,2,3\n1,1e309,3\n", ReadOptions{}, `!f, line 2, column 2: "1e309" is too large`},
		{"later block", strings.Repeat("1,2\n", 2058) + "x,2\n", ReadOptions{},
			`!f, line 2059, column 1: "x" is not a number`},
		{"target empty", "1,2.5\n1,\n", ReadOptions{}, "!f, line 2: target"},
		{"target text", "1,2.5\n1,x\n", ReadOptions{Task: "regression"}, "!f, line 2: target"},
		{"target index", "1,2\n", ReadOptions{Target: "2"}, "!f, line 1: target: column 2: the rows have 2 columns"},
		{"target name", "a,b\n1,2\n", ReadOptions{Target: "c"}, `!f, line 1: target: no column is named "c"`},
		{"target only", "1\n2\n", ReadOptions{Format: "csv"},
			"!f, line 1: one column only (separator comma (one column)): no features"},
		{"open quote", "1,\"2\n3,4\n", ReadOptions{}, `!f, line 2: extraneous or missing " in quote`},
		{"dim", "1,2,3,4\n", ReadOptions{Dim: 2},
			"!f, line 1: points have 3 features, want 2; column 4 is taken for the target"},
		{"cut gzip", whole[:len(whole)/2], ReadOptions{}, "!f: the file is cut short"},
		{"damaged gzip", whole[:len(whole)-6] + "abcdef", ReadOptions{}, "!f: bad checksum"},
		{"cut bzip2", bz2[:20], ReadOptions{}, "!f: the file is cut short"},
		{"damaged bzip2", bz2[:20] + "x" + bz2[21:], ReadOptions{}, "!f: damaged bzip2 data"},
		{"svm zero", "1 1:2\n1 0:2\n", ReadOptions{}, "!f, line 2, column 2: index 0: LIBSVM counts features from 1"},
		{"svm falling", "1 1:2\n1 4:2 3:3\n", ReadOptions{},
			"!f, line 2, column 3: index 3 after index 4: indices must increase"},
		{"svm colon", "1 1:2\n1 4\n", ReadOptions{}, `!f, line 2, column 2: "4" is not of the form index:value`},
		{"svm huge index", "1 1:2\n1 2147483647:1\n", ReadOptions{},
			`!f, line 2, column 2: index "2147483647": want a whole number from 1 to 2147483646`},
		{"svm label", "1.5 1:2\nx 4:2\n", ReadOptions{Task: "regression"}, "!f, line 2: target"},
		{"svm no feature", "1\n2\n", ReadOptions{Format: "libsvm"}, "!f: no row has a feature"},
		{"svm dim", "1 5:2\n", ReadOptions{Dim: 3}, "!f, line 1: points have 5 features, want 3"},
		{"missing in row 1", "NA,2\n3,4\n5,6\n", ReadOptions{}, `!f, line 1, column 1: "NA" is not a number`},
		{"empty in row 1", "1,,2\n3,4,5\n", ReadOptions{}, "!f, line 1, column 2: the cell is empty"},
		{"row 1 all missing", "NA,NA\n3,4\n", ReadOptions{}, `!f, line 1, column 1: "NA" is not a number`},
		{"decimal commas in row 1", "1,5;2,5\n3,5;4,5\n", ReadOptions{},
			`!f, line 1, column 1: "1,5" is not a number: decimal comma? write 1.5`},
		{"decimal comma", "a;y\n1,5;2\n", ReadOptions{},
			`!f, line 2, column 1: a: "1,5" is not a number: decimal comma? write 1.5`},
		{"decimal comma in the target", "a;y\n1;2.5\n3;-7,25\n", ReadOptions{},
			`!f, line 3: target: "-7,25" is not a number`},
		{"cell by name", "a,b,y\n1,2,3\n1,two,3\n", ReadOptions{}, `!f, line 3, column 2: b: "two" is not a number`},
		{"target name", "price,x,y\n1,2,3\n", ReadOptions{Target: "prise"},
			`!f, line 1: target: no column is named "prise": there are "price", "x", "y"`},
		{"target of many", "a" + strings.Repeat(",b", 29) + "\n", ReadOptions{Target: "c"}, `!"b" and 10 more`},
		{"target name without header", "1,2,3\n", ReadOptions{Target: "y"},
			`!f, line 1: target: no column is named "y": the first row has numbers only`},
		{"optional, but not to be found", "a,b,c\n1,2,3\n", ReadOptions{Target: "y", TargetOptional: true, Dim: 2},
			`!f, line 1: points have 3 features, want 2, and target: no column is named "y"`},
		{"CR", "a,b\r1,2\r3,4\r", ReadOptions{}, "!f: one line only: a header without rows, or CR line ends"},
		{"UTF-16", "\xff\xfe1\x00,\x002\x00", ReadOptions{}, "!f: the text is UTF-16; save as UTF-8"},
		{"UTF-16, big", gzipped("\xfe\xff\x001\x00,"), ReadOptions{}, "!f: the text is UTF-16; save as UTF-8"},
		{"a zip archive", "PK\x03\x04\x14\x00\x08\x00\n1,2\n", ReadOptions{}, "!f: damaged zip data"},
		{"two columns of a name", "a,b,a\n1,2,3\n4,5,6\n", ReadOptions{Drop: []string{"a"}},
			`!f, line 1: drop: several columns are named "a": say which by its number`},
		{"one cell is missing", "a,y\n,1\n2,3\n", ReadOptions{},
			"!f, line 2, column 1: a: the cell is empty; fill in or remove missing values"},
		{"target of LIBSVM", "1 1:2\n", ReadOptions{Target: "price"},
			"!f: a file of format libsvm has its answers first in each line: --target price is for csv files"},
		{"target of idx", "\x00\x00\x08\x03", ReadOptions{Target: "0"},
			"!f: a file of format idx has its answers in a separate file: --target 0"},
		{"row of one word", "1,2\nx\n", ReadOptions{}, "!f, line 2: the row has 1 columns, the first row has 2"},
		{"words", "0,cat\n0,dog\n", ReadOptions{}, "[[0] [0]] [] [cat dog] [0 1] []"},
		{"a word in numbers", "0,7.5\n0,8.25\n0,N/A\n0,x\n", ReadOptions{},
			`!f, line 3: target: "N/A" is not a number, though others are: fill in or remove it, or say --task classification`},
		{"a word before numbers", "0,N/A\n0,7.5\n0,8.25\n", ReadOptions{}, `!f, line 1: target: "N/A" is not a number`},
		{"words in whole numbers of many values", "0,other\n0,1\n0,2\n0,3\n", ReadOptions{},
			`!f, line 1: target: "other" is not a number`},
		{"a class of words", classes + other, ReadOptions{},
			"[] [1 2 other] [0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 2 2 2 2 2] []"},
		{"a stray word in classes", classes + "0,other\n", ReadOptions{},
			`!f, line 21: target: "other" is not a number`},
		{"missing values in classes", classes + strings.Repeat("0,NA\n", 5), ReadOptions{},
			`!f, line 21: target: "NA" is not a number`},
		{"said to be classes", "0,7.5\n0,N/A\n", ReadOptions{Task: "classification"},
			"[[0] [0]] [] [7.5 N/A] [0 1] []"},
		{"an empty class", "0,cat\n0,\n", ReadOptions{Task: "classification"},
			"!f, line 2: target: the cell is empty; fill in or remove missing values"},
		{"many blocks", strings.Repeat("1,2,0.5\n", 5003), ReadOptions{}, "5003 rows of 2 features"},
		{"wider than data of the same LIBSVM file", "1 1:2\n1 64:1\n2 3:1\n", ReadOptions{Dim: 63, DimOf: "train.svm"},
			"!f, line 2: points have 64 features, train.svm has 63; where the last features of sparse data are " +
				"all zero, say --dim 64 for both files"},
		{"LIBSVM, zeros, comments and blanks", "1.5\t1:2  3:0 4:-1 # 9:9\n# all\n\n \r\n2.5 2:7\r\n3.5", ReadOptions{},
			"[[2 0 0 -1] [0 7 0 0] [0 0 0 0]] [1.5 2.5 3.5] [] [] []"},
		{"LIBSVM, the first rows", "1.5 1:2\n2.5 2:3\n3.5 9:1\n", ReadOptions{MaxRows: 2},
			"[[2 0] [0 3]] [1.5 2.5] [] [] []"},
		{"LIBSVM, more features than are there", "1.5 1:2\n", ReadOptions{Dim: 3}, "[[2 0 0]] [1.5] [] [] []"},
		{"LIBSVM, one line longer than any buffer", "1 1:1\n3 " + strings.Repeat(" ", 1<<19) + "2:5\n",
			ReadOptions{Task: "regression"},
			"[[1 0] [0 5]] [1 3] [] [] []"},
		{"LIBSVM, classes", "+1 1:0.5\n-1 2:1e-3\n+1\n", ReadOptions{Task: "classification"},
			"[[0.5 0] [0 0.001] [0 0]] [] [-1 1] [1 0 1] []"},
		{"", "1.5 0:1\n", ReadOptions{Format: "libsvm"},
			"!f, line 1, column 2: index 0: LIBSVM counts features from 1"},
		{"", "1.5 2:1 2:1\n", ReadOptions{}, "!index 2 after index 2"},
		{"", "1.5 1:x\n", ReadOptions{Format: "libsvm"}, `!value of index 1: "x"`},
		{"", "1.5 1:1\n2.5 5:1\n3.5 2:1\n", ReadOptions{Dim: 3}, "!f, line 2: "},
		{"no such format", "1,2\n", ReadOptions{Format: "xls"}, "!xls"},
		{"no such task", "1,2\n", ReadOptions{Task: "rank"}, "!rank"},
		// Targets in a local number format, dates and texts of all kinds are no classes unless the user says so.
		{"five decimal commas", "a;b;y\n" + lines(5, func(i int) string { return fmt.Sprintf("1;2;%d,5", 10+i) }),
			ReadOptions{},
			`!line 2: target: "10,5" is not a number: decimal comma? write 10.5; if the answers are classes, say --task classification`},
		{"thousands", lines(300, func(i int) string { return fmt.Sprintf(`1;"1,%03d,567"`, i) }), ReadOptions{},
			`!"1,000,567" is not a number: separators of thousands? write 1000567;`},
		{"thousands and comma", lines(9, func(i int) string { return fmt.Sprintf("1;1.234.567,%d", i) }), ReadOptions{},
			"!write 1234567.0"},
		{"apostrophes", lines(9, func(i int) string { return fmt.Sprintf("1;1'234'56%d.5", i) }), ReadOptions{},
			"!write 1234560.5"},
		{"dates", lines(40, func(i int) string { return fmt.Sprintf("1,2024-01-%02d", 1+i%28) }), ReadOptions{},
			`!"2024-01-01" is not a number: a date? write a number`},
		{"percent", lines(40, func(i int) string { return fmt.Sprintf("1,%d %%", i%3) }), ReadOptions{},
			"!a unit? write the number alone"},
		{"minus of print", lines(40, func(int) string { return "1,−5" }), ReadOptions{},
			"!write the minus sign as a hyphen"},
		{"half stars", lines(40, func(i int) string { return []string{"1;4", "1;3,5"}[i%2] }), ReadOptions{},
			`!line 2: target: "3,5" is not a number, though others are`},
		{"names", lines(40, func(i int) string { return fmt.Sprintf("1,person %d", i) }), ReadOptions{},
			"!the 40 rows have more than 20 different words, too many to be classes"},
		{"ages", lines(40, func(i int) string { return []string{"1,20-30", "1,30-40", "1,70+"}[i%3] }), ReadOptions{},
			"labels 20-30 (14)"},
		{"the largest target", "1,2.5\n2,-1e100\n", ReadOptions{}, "[[1] [2]] [2.5 -1e+100] [] [] []"},
		{"beyond it", "1,2.5\n2,-1.01e100\n", ReadOptions{},
			`!f, line 2: target: "-1.01e100" is too large to be squared`},
	})
	fails(t, errOf(ReadFile(t.Context(), t.TempDir(), nil)), "folder")
	fails(t, errOf(ReadFile(t.Context(), "no/such/file", nil)), "no/such/file")
}

// idxFiles writes n images of h×w pixels, pixel j of image i being 10i+j, and their labels and returns the images'
// path.
func idxFiles(t *testing.T, n, h, w int, edit func(images, labels []byte) (i, l []byte)) string {
	images := binary.BigEndian.AppendUint32(nil, idxImages)
	labels := binary.BigEndian.AppendUint32(nil, idxLabels)
	for _, v := range []int{n, h, w} {
		images = binary.BigEndian.AppendUint32(images, uint32(v))
	}
	labels = binary.BigEndian.AppendUint32(labels, uint32(n))
	for i := range n {
		for j := range h * w {
			images = append(images, byte(10*i+j))
		}
		labels = append(labels, byte(i%3))
	}
	if edit != nil {
		images, labels = edit(images, labels)
	}
	dir := t.TempDir()
	if labels != nil {
		put(t, dir, "t-labels-idx1-ubyte.gz", gzipped(string(labels)))
	}
	return put(t, dir, "t-images-idx3-ubyte", images)
}

// TestIDX: images of few pixels, and of more in all than are read at once.
func TestIDX(t *testing.T) {
	for _, c := range []struct{ n, h, w, most, want int }{{4, 2, 3, 3, 3}, {700, 50, 50, 0, 700},
		{700, 50, 50, 9999, 700}} {
		d := must(ReadFile(t.Context(), idxFiles(t, c.n, c.h, c.w, nil),
			&ReadOptions{Task: "classification", MaxRows: c.most}))
		x := d.X.(*points.Bytes)
		if x.N != c.want || x.D != c.h*c.w || !slices.Equal(d.Labels, []string{"0", "1", "2"}) {
			t.Fatalf("%v: %d×%d, labels %q", c, x.N, x.D, d.Labels)
		}
		for i := range x.N {
			if row := x.Row(i); row[0] != byte(10*i) || row[x.D-1] != byte(10*i+x.D-1) || d.Class[i] != i%3 {
				t.Fatalf("%v: image %d is %v of class %d", c, i, row, d.Class[i])
			}
		}
	}
	if d, err := ReadFile(t.Context(), idxFiles(t, 2, 2, 3, func(i, _ []byte) (_, _ []byte) { return i, nil }),
		&ReadOptions{Target: "none"}); err != nil || d.HasAnswers() {
		t.Errorf("without labels: %v", err)
	}
}

// TestIDXFaults checks the faults of idx files.
func TestIDXFaults(t *testing.T) {
	for want, edit := range map[string]func(i, l []byte) (_, _ []byte){
		"wrong magic number 0x00000803, want 0x00000801": func(i, _ []byte) (_, _ []byte) { return i, i },
		"wrong magic number 0x00000a03":                  func(i, l []byte) (_, _ []byte) { i[2] = 10; return i, l },
		"3 labels for 4 images":                          func(i, l []byte) (_, _ []byte) { l[7] = 3; return i, l },
		"cut short: 3 of 4 images":                       func(i, l []byte) (_, _ []byte) { return i[:len(i)-1], l },
		"cut short: 2 of 4 labels":                       func(i, l []byte) (_, _ []byte) { return i, l[:len(l)-2] },
		"labels are missing":                             func(i, l []byte) (_, _ []byte) { return i, nil },
		"0 images":                                       func(i, l []byte) (_, _ []byte) { i[7] = 0; return i, l },
		"images of 0×3 pixels":                           func(i, l []byte) (_, _ []byte) { i[11] = 0; return i, l },
		"images of 2×65539 pixels":                       func(i, l []byte) (_, _ []byte) { i[13] = 1; return i, l },
		"cut short: 4 of 2147483652":                     func(i, l []byte) (_, _ []byte) { i[4] = 128; return i, l },
	} {
		_, err := ReadFile(t.Context(), idxFiles(t, 4, 2, 3, edit), &ReadOptions{Format: "idx"})
		var pe *ParseError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), want) || !strings.Contains(pe.File, "idx") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"1,2,3\n4,5,6\n", "a,b\n1,2\n", "\"x\",1\n", "1 2 3\n", "1;2\n", bz2, gzipped("1,2\n")} {
		f.Add([]byte(s), "")
		f.Add([]byte(s), "0")
	}
	f.Fuzz(func(t *testing.T, b []byte, target string) { check(t, b, &ReadOptions{Format: "csv", Target: target}) })
}

func FuzzLIBSVM(f *testing.F) {
	for _, s := range []string{"1 1:2 3:4\n", "+1 # c\n-1 2147483646:1", "a 1:1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "libsvm"}) })
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x02ab"))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b, &ReadOptions{Format: "idx", Target: "none"}) })
}

// check reads b and checks that what comes out is sound: it never panics, and accepts
// finite numbers only.
func check(t *testing.T, b []byte, o *ReadOptions) {
	d, err := Read(bytes.NewReader(b), "file", o)
	if err != nil {
		return
	}
	n := d.Len()
	if n < 1 || d.Dim() < 1 || d.Target != nil && len(d.Target) != n || d.Class != nil && len(d.Class) != n {
		t.Fatalf("%d points of dimension %d, %d targets, %d classes", n, d.Dim(), len(d.Target), len(d.Class))
	}
	if x, ok := d.X.(*points.CSR); ok && x.D > 1<<20 {
		return // too wide to make dense
	}
	if err := points.CheckFinite(d.X); err != nil {
		t.Fatal(err)
	}
}

// TestReadFileEnds: a context that ends while a file is read ends the reading, with its error, in
// whatever form the file is; a file that is read to its end is not concerned.
func TestReadFileEnds(t *testing.T) {
	dir := t.TempDir()
	for name, line := range map[string]string{"table.csv": "1,2,3\n", "table.libsvm": "1 1:2 2:3\n"} {
		path := put(t, dir, name, strings.Repeat(line, 1<<17))
		ctx := &counted{Context: context.Background(), most: 2}
		if _, err := ReadFile(ctx, path, &ReadOptions{Task: "regression"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if d, err := ReadFile(t.Context(), path, &ReadOptions{Task: "regression"}); err != nil || d.Len() != 1<<17 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counted is a context that ends when it was asked more than most times.
type counted struct {
	context.Context
	most, asked int
}

func (c *counted) Err() error {
	if c.asked++; c.asked > c.most {
		return context.Canceled
	}
	return nil
}

// must returns v of a call that a test begins with, and panics with its error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func errOf[T any](_ T, err error) error { return err }

// fails reports an error that does not say what it is to say, or that there is none.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// contains reports it if a text lacks a part.
func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s, want %q", text, want)
	}
}
