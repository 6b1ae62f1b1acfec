package datasets

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestCategorical: a column of words becomes a feature for each of its values, in its place and sorted, with a header
// or without, a missing cell a separate value; other files are coded by the same values, and unknown ones are
// zeros.
func TestCategorical(t *testing.T) {
	const text = "size,color,y\n1,red,10\n2,blue,20\n3,,30\n4,red,40\n"
	want := [][]float64{{1, 0, 0, 1}, {2, 0, 1, 0}, {3, 1, 0, 0}, {4, 0, 0, 1}}
	for _, c := range []struct{ text, column string }{{text, "color"}, {text, "1"}, {text, "-2"},
		{text[strings.Index(text, "\n")+1:], "1"}} {
		d, err := Read(strings.NewReader(c.text), "file", &ReadOptions{Task: "regression",
			Categorical: []Category{{Column: c.column}}})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(dense(d.X), want) || d.Target[3] != 40 ||
			!reflect.DeepEqual(d.Categories, []Category{{c.column, []string{"", "blue", "red"}}}) {
			t.Errorf("column %s: %v, %v", c.column, dense(d.X), d.Categories)
		}
		if c.text == text && !reflect.DeepEqual(d.Columns, []string{"size", "color=", "color=blue", "color=red"}) {
			t.Errorf("%q", d.Columns)
		}
		head := strings.TrimSuffix(c.text[:strings.Index(c.text, "\n")+1], "1,red,10\n")
		others := []string{head + "5,green,1\n6,blue,2\n"}
		if c.column != "-2" { // the features alone
			others = append(others, strings.Replace(head, ",y", "", 1)+"5,green\n6,blue\n")
		}
		for _, other := range others {
			z, err := Read(strings.NewReader(other), "other",
				&ReadOptions{Task: "regression", Categorical: d.Categories, Dim: 4, TargetOptional: true})
			if err != nil {
				t.Fatalf("%q: %v", other, err)
			}
			if got := dense(z.X); !reflect.DeepEqual(got, [][]float64{{5, 0, 0, 0}, {6, 0, 1, 0}}) || z.Unknown != 1 {
				t.Errorf("%q: %v, %d unknown", other, got, z.Unknown)
			}
		}
	}
	many := lines(3000, func(i int) string { return fmt.Sprintf("w%d,1", i) })
	for _, c := range []struct {
		text string
		o    ReadOptions
		want string
	}{
		{text, ReadOptions{Categorical: []Category{{Column: "colour"}}},
			`line 1: categorical: no column is named "colour": there are "size", "color", "y"`},
		{text, ReadOptions{Categorical: []Category{{Column: "y"}}},
			"line 1: categorical: column 2 is in --target too"},
		{text, ReadOptions{Categorical: []Category{{Column: "1"}, {Column: "color"}}},
			"column 1 is in --categorical too"},
		{many, ReadOptions{Categorical: []Category{{Column: "0"}}},
			"line 1001, column 1: the column has more than 1000 different values"},
		{"1 1:2\n", ReadOptions{Categorical: []Category{{Column: "0"}}}, "--categorical is for csv files"},
		{text, ReadOptions{Categorical: []Category{{"color", []string{"red", "blue"}}}, Dim: 5},
			"points have 2 features, want 4"},
	} {
		fails(t, errOf(Read(strings.NewReader(c.text), "file", &c.o)), c.want)
	}
}
