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
