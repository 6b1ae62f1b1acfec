package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestSuggestedCommand checks the way from a raw table to a model. The table has an index, dates, three columns of
// words and missing cells in four of 200 rows. The first fit is refused with one line that names a command; this
// command fits the table, and the model then predicts a table without answers and with its columns in another order.
func TestSuggestedCommand(t *testing.T) {
	table := func(order ...string) string {
		var text strings.Builder
		text.WriteString(strings.Join(order, ",") + "\n")
		for i := range 200 {
			x, z := math.Sin(float64(i)), math.Cos(3*float64(i))
			cell := map[string]string{
				"Id": fmt.Sprint(1001 + i), "sold on": fmt.Sprintf("2024-03-%02d", 1+i%28),
				"street, no": []string{"Main", "Oak \"A\"", "Elm"}[i%3],
				"color":      []string{"red", "blue", "", "NA"}[i%4], "size": fmt.Sprintf("%.4f", x),
				"rooms": fmt.Sprintf("%.4f", z),
				"price": fmt.Sprintf("%.4f", 3*x-2*z+float64(i%3)), "name": fmt.Sprintf("house %d", i),
			}
			if i%50 == 7 {
				cell["size"], cell["rooms"] = "", "NA"
			}
			for j, name := range order {
				if value := cell[name]; strings.ContainsAny(value, `",`) {
					cell[name] = `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
				}
				if j > 0 {
					text.WriteString(",")
				}
				text.WriteString(cell[name])
			}
			text.WriteString("\n")
		}
		return strings.ReplaceAll(text.String(), "street, no,", "\"street, no\",")
	}
	enterTempFolder(t, map[string]string{
		"it's train.csv": table("Id", "sold on", "street, no", "color", "size", "rooms", "name", "price"),
		"new.csv":        table("rooms", "Id", "color", "sold on", "street, no", "size"),
	})
	firstCommand := []string{"fit", "--train", "it's train.csv", "--target", "price", "--holdout", "0.2", "--out",
		"m.krr"}
	code, _, stderr := runCommand(t, firstCommand...)
	want := `krrlab: it's train.csv: columns that are no numbers: "sold on" has dates or times (--drop 'sold on' leaves them out), ` +
		`"street, no" has words (3, such as "Main"), ` +
		`"color" has words (2, such as "red"), "name" has words (200, such as "house 0"); ` +
		`in 200 rows 8 cells are missing: "size" 4, "rooms" 4; "Id" looks like an identifier (whole numbers that all ` +
		`differ, or the name): unless the numbers are times, ranks or the like, leave them out; ` +
		`say krrlab fit --train 'it'\''s train.csv' --target price --holdout 0.2 --out m.krr ` +
		`--drop Id,name --categorical '"street, no",color' --dates 'sold on' --impute median` + "\n"
	if code != exitError || stderr != want {
		t.Fatalf("exit %d, %swant %s", code, stderr, want)
	}
	code, out, stderr := runCommand(t, append(firstCommand, "--drop", "Id,name", "--categorical", `"street, no",color`,
		"--dates", "sold on", "--impute", "median")...)
	if code != exitOK ||
		!strings.Contains(out,
			`target "price"; left out "Id", "name"; missing cells: 8; "sold on": dates from 2024-03-01 to 2024-03-28`) {
		t.Fatalf("exit %d, %s%s", code, out, stderr)
	}
	if out = runScript(t, "$ predict --model m.krr --in new.csv\nleft out \"Id\"; missing cells: 8"); strings.Count(
		out, "\n") != 201 {
		t.Errorf("%d lines", strings.Count(out, "\n"))
	}
}

// TestKernelRBF checks that fit and tune accept "rbf", the name of the Gaussian kernel in other programs.
func TestKernelRBF(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": priceTable(40, "x", "y", "price")})
	runScript(t, `
$ fit --train a.csv --kernel rbf
	gaussian(
$ tune --train a.csv --kernels rbf --points 3
	gaussian(`)
}
