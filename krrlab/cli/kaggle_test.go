package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestSecondCommand: a table with an index, dates, two columns of words and a hundredth of its cells missing is refused with
// one line, whose command fits it; the model then predicts a table without answers, in another order.
func TestSecondCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	table := func(order ...string) string {
		var b strings.Builder
		b.WriteString(strings.Join(order, ",") + "\n")
		for i := range 200 {
			x, z := math.Sin(float64(i)), math.Cos(3*float64(i))
			cell := map[string]string{
				"Id": fmt.Sprint(1001 + i), "sold on": fmt.Sprintf("2024-03-%02d", 1+i%28), "street, no": []string{"Main", "Oak \"A\"", "Elm"}[i%3],
				"color": []string{"red", "blue", "", "NA"}[i%4], "size": fmt.Sprintf("%.4f", x), "rooms": fmt.Sprintf("%.4f", z),
				"price": fmt.Sprintf("%.4f", 3*x-2*z+float64(i%3)), "name": fmt.Sprintf("house %d", i),
			}
			if i%50 == 7 {
				cell["size"], cell["rooms"] = "", "NA"
			}
			for j, name := range order {
				if text := cell[name]; strings.ContainsAny(text, `",`) {
					cell[name] = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
				}
				if j > 0 {
					b.WriteString(",")
				}
				b.WriteString(cell[name])
			}
			b.WriteString("\n")
		}
		return strings.ReplaceAll(b.String(), "street, no,", "\"street, no\",")
	}
	write(t, dir, "it's train.csv", table("Id", "sold on", "street, no", "color", "size", "rooms", "name", "price"))
	write(t, dir, "new.csv", table("rooms", "Id", "color", "street, no", "size"))
	first := []string{"fit", "--train", "it's train.csv", "--target", "price", "--holdout", "0.2", "--out", "m.krr"}
	code, _, errs := command(t, first...)
	want := `krrlab: it's train.csv: columns that are no numbers: "sold on" has dates or times, "street, no" has words (3, such as "Main"), ` +
		`"color" has words (2, such as "red"), "name" has words (200, such as "house 0"); in 200 rows 8 cells are missing: "size" 4, "rooms" 4; ` +
		`say krrlab fit --train 'it'\''s train.csv' --target price --holdout 0.2 --out m.krr --drop 'Id,sold on,name' --categorical '"street, no",color' --impute median` + "\n"
	if code != exitError || errs != want {
		t.Fatalf("exit %d, %swant %s", code, errs, want)
	}
	code, out, errs := command(t, append(first, "--drop", "Id,sold on,name", "--categorical", `"street, no",color`, "--impute", "median")...)
	if code != exitOK || !strings.Contains(out, `target "price"; left out "Id", "sold on", "name"; missing cells: 8`) {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs = command(t, "predict", "--model", "m.krr", "--in", "new.csv")
	if code != exitOK || strings.Count(out, "\n") != 201 || !strings.Contains(errs, `left out "Id"; missing cells: 8`) {
		t.Errorf("exit %d, %d lines, %s", code, strings.Count(out, "\n"), errs)
	}
}

// TestForeignWords: flags and words of other programs are known.
func TestForeignWords(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "a.csv", priced(40, "x", "y", "price"))
	for args, want := range map[string]string{
		"fit --train a.csv --alpha 1": "did you mean --lambda?", "fit --train a.csv --sep ;": "did you mean --separator?", "predict --input a.csv": "unknown flag",
		"fit --train -": "want a file; /dev/stdin is what is piped in", "fit --train a.csv --separator ab": "want auto, one character, or comma",
		"fit --train a.csv --header maybe": "want one of auto, yes, no", "fit --train a.csv --comment //": "want one character, or none",
		"fit --data moons --comment %": "--comment goes with --train",
	} {
		if code, _, errs := command(t, strings.Fields(args)...); code == exitOK || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s, want %s", args, code, errs, want)
		}
	}
	for _, args := range []string{"fit --train a.csv --kernel rbf", "tune --train a.csv --kernels rbf --points 3"} {
		if code, out, errs := command(t, strings.Fields(args)...); code != exitOK || !strings.Contains(out, "gaussian(") {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
}
