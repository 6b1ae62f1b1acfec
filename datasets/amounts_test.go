package datasets

import (
	"fmt"
	"strings"
	"testing"
)

// TestAmounts: amounts in parentheses are negative where the whole column is numbers, of features and answers, which a
// note says; else the message names the form.
func TestAmounts(t *testing.T) {
	table := func(head string, cells []string) string {
		text := head + "\n"
		for i, cell := range cells {
			text += fmt.Sprintf("%d;%s\n", i%3, cell)
		}
		return text
	}
	for cells, want := range map[string]string{
		"(3.00) 7 (.5)": "[-3 7 -0.5]", "(1,234.50) 1,000.00 ( 12 )": "[-1234.5 1000 -12]", "1.234,50 (1.234.567) -2": "[1234.5 -1.234567e+06 -2]",
		"(0) 1 2": "[0 1 2]", "(3) x 5": "!line 3, column 2: cost: \"x\" is not a number",
		"(3) (1,234) 5": "!a negative amount in parentheses, a decimal comma or a separator of thousands?",
		"(3) ($3) 5":    "!a negative amount in parentheses, a unit?", "1,000.00 2 3": "!separators of thousands? write 1000.00",
		"(-3) 1 2": "!\"(-3)\" is not a number", "(1e999) 1 2": "!is not a number",
	} {
		words := strings.Fields(strings.ReplaceAll(cells, "( 12 )", "(12)"))
		o := ReadOptions{Task: "regression", Separator: ";", Target: "0", Header: "yes"}
		d, err := Read(strings.NewReader(table("y;cost", words)), "f", &o)
		o.Target = "cost"
		target, errTarget := Read(strings.NewReader(table("a;cost", words)), "f", &o)
		if text, bad := strings.CutPrefix(want, "!"); bad {
			fails(t, err, text)
			if errTarget == nil {
				t.Errorf("%s: the target is read", cells)
			}
			continue
		}
		if err != nil || errTarget != nil {
			t.Errorf("%s: %v, %v", cells, err, errTarget)
			continue
		}
		var got []float64
		for _, row := range dense(d.X) {
			got = append(got, row[0])
		}
		if fmt.Sprint(got) != want || fmt.Sprint(target.Target) != want {
			t.Errorf("%s: %v, target %v, want %s", cells, got, target.Target, want)
		}
		contains(t, d.Read.String(), `"cost": amounts in parentheses, in `)
		contains(t, target.Read.String(), "target: amounts in parentheses, in ")
	}
}

// TestDoubtfulLabels: labels that look like something else are classes where the task says so, which a line says.
func TestDoubtfulLabels(t *testing.T) {
	rows := func(labels string, form string) string {
		return lines(30, func(i int) string {
			l := strings.Fields(labels)
			return fmt.Sprintf(form, l[i%len(l)], i%7)
		})
	}
	csv, svm := "%s,%d", "%s 1:%d"
	for _, c := range []struct{ labels, form, task, comment, want string }{
		{"nan b", csv, "auto", "", `!"nan" is not finite; fill in or remove missing values; if it is a label, say --task classification`},
		{"nan b", csv, "classification", "", `"nan", in 15 of the rows, is taken for a class`},
		{"inf b", csv, "classification", "", "labels b (15), inf (15)"},
		{"1e3 1000 x", csv, "classification", "", `labels taken as equal: "1e3" = "1000"`},
		{"1000 1e3 x", csv, "classification", "", `labels taken as equal: "1e3" = "1000"`},
		{"#1 #2", csv, "auto", "", `!all 30 lines begin with #, such as "#1,0": say --format comment=none if they are rows`},
		{"#1 #2", csv, "auto", "none", "labels #1 (15), #2 (15)"},
		{"1,3 2", svm, "auto", "", `!"1,3" is a set of labels, or a number with a decimal comma: --task classification`},
		{"1,35 2,5", svm, "regression", "", `!"1,35" is a set of labels, or a number`},
		{"1,3 2", svm, "classification", "", `labels such as "1,3" are sets of labels`},
	} {
		o := ReadOptions{Task: c.task, Comment: c.comment, Target: map[string]string{csv: "0"}[c.form]}
		d, err := Read(strings.NewReader(rows(c.labels, c.form)), "f", &o)
		if text, bad := strings.CutPrefix(c.want, "!"); bad {
			fails(t, err, text)
		} else if err != nil {
			t.Errorf("%s: %v", c.labels, err)
		} else {
			contains(t, d.Read.String(), c.want)
		}
	}
}
