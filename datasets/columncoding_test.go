package datasets

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestColumnCoding checks that a column of words becomes one feature for each of its sorted values, in the place of
// the column. A missing cell is a separate value. Another file is coded by the same values, and all its features are
// zero for an unknown word.
func TestColumnCoding(t *testing.T) {
	const text = "size,color,y\n1,red,10\n2,blue,20\n3,,30\n4,red,40\n"
	want := [][]float64{{1, 0, 0, 1}, {2, 0, 1, 0}, {3, 1, 0, 0}, {4, 0, 0, 1}}
	for _, c := range []struct{ text, column string }{{text, "color"}, {text, "1"}, {text, "-2"},
		{text[strings.Index(text, "\n")+1:], "1"}} {
		d := must(Read(strings.NewReader(c.text), "file", &ReadOptions{Task: "regression",
			ColumnCodings: []ColumnCoding{{Column: c.column}}}))
		if !reflect.DeepEqual(denseRows(d.X), want) || d.Target[3] != 40 ||
			!reflect.DeepEqual(d.ColumnCodings, []ColumnCoding{{Column: c.column, Values: []string{"", "blue",
				"red"}}}) {
			t.Errorf("column %s: %v, %v", c.column, denseRows(d.X), d.ColumnCodings)
		}
		if c.text == text && !reflect.DeepEqual(d.Columns, []string{"size", "color=", "color=blue", "color=red"}) {
			t.Errorf("columns %q", d.Columns)
		}
		head := strings.TrimSuffix(c.text[:strings.Index(c.text, "\n")+1], "1,red,10\n")
		others := []string{head + "5,green,1\n6,blue,2\n"}
		if c.column != "-2" { // the features alone
			others = append(others, strings.Replace(head, ",y", "", 1)+"5,green\n6,blue\n")
		}
		for _, other := range others {
			otherData, err := Read(strings.NewReader(other), "other",
				&ReadOptions{Task: "regression", ColumnCodings: d.ColumnCodings, Dim: 4, TargetOptional: true})
			if err != nil {
				t.Fatalf("%q: %v", other, err)
			}
			if got := denseRows(otherData.X); !reflect.DeepEqual(got, [][]float64{{5, 0, 0, 0}, {6, 0, 1, 0}}) ||
				len(otherData.UnknownWords) != 1 {
				t.Errorf("%q: %v, %v unknown", other, got, otherData.UnknownWords)
			}
		}
	}
	many := joinLines(3000, func(i int) string { return fmt.Sprintf("w%d,1", i) })
	for _, c := range []struct {
		text    string
		options ReadOptions
		wantErr string
	}{
		{text, ReadOptions{ColumnCodings: []ColumnCoding{{Column: "colour"}}},
			`line 1: categorical: no column is named "colour": there are "size", "color", "y"`},
		{text, ReadOptions{ColumnCodings: []ColumnCoding{{Column: "y"}}},
			"line 1: categorical: column 2 is in --target too"},
		{text, ReadOptions{ColumnCodings: []ColumnCoding{{Column: "1"}, {Column: "color"}}},
			"column 1 is in --categorical too"},
		{many, ReadOptions{ColumnCodings: []ColumnCoding{{Column: "0"}}},
			"line 1001, column 1: the column has more than 1000 different values"},
		{"1 1:2\n", ReadOptions{ColumnCodings: []ColumnCoding{{Column: "0"}}}, "--categorical is for csv files"},
		{text, ReadOptions{ColumnCodings: []ColumnCoding{{Column: "color", Values: []string{"red", "blue"}}}, Dim: 5},
			"points have 2 features, want 4"},
	} {
		wantError(t, errorFrom(Read(strings.NewReader(c.text), "file", &c.options)), c.wantErr)
	}
}

// TestCategoriesOfEqualFeatures checks that two columns with the same values, or two columns of dates, keep their own
// categories. The columns may be given by names or numbers in any order, also in a file that is read with the columns
// of a model.
func TestCategoriesOfEqualFeatures(t *testing.T) {
	const text = "a,b,start,end,y\nno,yes,2020-01-01,2021-01-01,1\nyes,no,2020-03-05,2021-02-03,2\nno,no,2020-05-06,2021-03-01,3\n"
	for _, columns := range [][]string{{"b", "a", "end", "start"}, {"1", "0", "3", "2"}, {"-4", "-5", "-2", "-3"},
		{"1", "-5", "3", "-3"}, {"b", "0", "3", "start"}} {
		options := &ReadOptions{Target: "y", Task: "regression"}
		for i, column := range columns {
			coding := ColumnCoding{Column: column}
			if i >= 2 {
				coding.Dates = &DateCoding{}
			}
			options.ColumnCodings = append(options.ColumnCodings, coding)
		}
		d := must(Read(strings.NewReader(text), "train", options))
		want := []string{columns[1], columns[0], columns[3], columns[2]}
		for i, source := range d.SourceColumns() {
			if source.Coding == nil || source.Coding.Column != want[i] {
				t.Errorf("column %s: %+v, want the category of %s", source.Name, source.Coding, want[i])
			}
		}
		options = &ReadOptions{Target: "y", Task: "regression", Columns: d.Columns, ColumnCodings: d.ColumnCodings}
		again := must(Read(strings.NewReader(text), "again", options))
		if !reflect.DeepEqual(denseRows(again.X), denseRows(d.X)) ||
			!reflect.DeepEqual(again.ColumnCodings, d.ColumnCodings) {
			t.Errorf("%q: %v\n%v, want\n%v\n%v", columns, again.ColumnCodings, denseRows(again.X), d.ColumnCodings,
				denseRows(d.X))
		}
		if err := d.checkCoding(again); err != nil {
			t.Error(err)
		}
		slices.Reverse(again.ColumnCodings)
		again.ColumnCodings[0].Column = "other"
		wantError(t, d.checkCoding(again), "is coded differently")
	}
}

// TestEqualWords checks that words and column names that people regard as the same, such as 1.0 and 1, are coded alike
// in one file and in others. A note lists them, unknown words are countdownContext, and a column without any known word
// is refused.
func TestEqualWords(t *testing.T) {
	for _, c := range []struct {
		words  string // cells of the first file
		values string // categories that the first file gives
		other  string // cells of the other file
		codes  string // for each cell of the other file the index of its category, or - for an unknown word
		note   string // part of the note about the other file
	}{
		{"1 2 3", "1 2 3", "1.0 +2 3e0", "012", `words taken as equal in "k": "+2" = "2", "1.0" = "1", "3e0" = "3"`},
		{"1 1.0 2", "1 2", "2.0 01 1", "1-0", `"2.0" = "2"`},
		{"True False", "False True", "TRUE false true", "101", `"TRUE" = "True"`},
		{"Ko\u0308ln Ulm", "Ko\u0308ln Ulm", "K\u00f6ln ULM ulm", "011", `in "k": "ULM" = "Ulm", "ulm" = "Ulm"`},
		{"ulm ULM", "ULM ulm", "Ulm ULM ulm", "-01", ""},
		{"a - b", "- a b", "NA a B", "012", `"B" = "b", "NA" = "-"`},
		{"a - NA", "- NA a", "? a A", "-22", `"A" = "a"`},
	} {
		rows := func(words string) string {
			text := "size,k,y\n"
			for i, word := range strings.Fields(words) {
				text += fmt.Sprintf("%d,%s,1\n", i, word)
			}
			return text
		}
		options := ReadOptions{Task: "regression", ColumnCodings: []ColumnCoding{{Column: "k"}}}
		d := must(Read(strings.NewReader(rows(c.words)), "file", &options))
		if got := strings.Join(d.ColumnCodings[0].Values, " "); got != c.values {
			t.Errorf("%s: values %s, want %s", c.words, got, c.values)
		}
		options = ReadOptions{Task: "regression", ColumnCodings: d.ColumnCodings, Columns: d.Columns, Dim: d.Dim()}
		otherData := must(Read(strings.NewReader(strings.Replace(rows(c.other), "size", "SIZE", 1)), "other", &options))
		codes := ""
		for _, row := range denseRows(otherData.X) {
			codes += strings.Replace(fmt.Sprint(slices.Index(row[1:], 1)), "-1", "-", 1)
		}
		if unknown := strings.Count(codes, "-"); codes != c.codes || unknown != len(otherData.UnknownWords) ||
			unknown > 0 && otherData.UnknownWords[0].Words[0].Rows != 1 {
			t.Errorf("%s, then %s: %s, want %s; unknown %v", c.words, c.other, codes, c.codes, otherData.UnknownWords)
		}
		checkContains(t, otherData.ReadReport.String(), `columns taken as equal: "SIZE" = "size"`)
		checkContains(t, otherData.ReadReport.String(), c.note)
		wantError(t, errorFrom(Read(strings.NewReader(rows("x y x")), "other", &options)),
			`in "k": "x" (2), "y" (1); they have "`)
	}
}
