package plots

import (
	"encoding/csv"
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sampleTable returns a table with all kinds of cells.
func sampleTable() *Table {
	t := &Table{Title: "Results", Caption: "s_λ & 100 %",
		Columns: []Column{{Name: "data set"}, {Name: "n"}, {Name: "time", Unit: "s", Format: "%.1f"}, {Name: "κ"},
			{Name: "note", Right: true}}}
	t.Add("mnist", 60000, 115.04, 2.34567e-5, "a|b, \"q\"\n<i>")
	t.Add("cal_housing", 640, math.NaN(), -1e300, nil)
	t.Add("50 %", nil, math.Inf(1), 12)
	return t
}

// TestText checks the alignment of columns.
func TestText(t *testing.T) {
	got := strings.Split(sampleTable().Text(), "\n")
	if got[0] != "Results" || got[len(got)-2] != "s_λ & 100 %" {
		t.Errorf("title or caption: %q", got)
	}
	for i, want := range []string{
		"data set          n  time (s)         κ          note",
		"───────────  ──────  ────────  ────────  ────────────",
		"mnist        60,000     115.0  2.346e-5  a|b, \"q\" <i>",
		"cal_housing     640       NaN    -1e300",
		"50 %                        ∞        12",
	} {
		if got[i+1] != want {
			t.Errorf("line %d:\n%q, want\n%q", i+1, got[i+1], want)
		}
	}
}

// TestMarkdown checks that special characters are escaped.
func TestMarkdown(t *testing.T) {
	got := sampleTable().Markdown()
	checkContains(t, got, "**Results**\n\n| data set | n | time (s) | κ | note |\n|:---|---:|---:|---:|---:|\n",
		"| a\\|b, \"q\"<br>&lt;i&gt; |\n", "| cal\\_housing | 640 | NaN | -1e300 |  |\n", "\ns\\_λ &amp; 100 %\n")
}

// TestCSV checks that all digits and all characters are preserved, and a blank row.
func TestCSV(t *testing.T) {
	table := sampleTable()
	rows, err := csv.NewReader(strings.NewReader(table.CSV())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"data set", "n", "time (s)", "κ", "note"},
		{"mnist", "60000", "115.04", "2.34567e-05", "a|b, \"q\"\n<i>"}, {"cal_housing", "640", "NaN", "-1e+300", ""},
		{"50 %", "", "+Inf", "12", ""}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	blankRow := &Table{Columns: []Column{{Name: "a"}}, Rows: [][]Cell{{}, {Text("x")}}}
	if rows, _ := csv.NewReader(strings.NewReader(blankRow.CSV())).ReadAll(); len(rows) != 3 {
		t.Errorf("a blank row was lost: %q", blankRow.CSV())
	}
}

// TestCSVSpreads checks that the numbers of a sample have separate columns in CSV, and that the other formats show its
// text.
func TestCSVSpreads(t *testing.T) {
	table := &Table{Columns: ParseColumns("its", "error")}
	table.Add(Spread(85, 83, 88.5, "85 (83–88.5)"), Spread(0.25, math.NaN(), math.NaN(), "25 %"))
	table.Add(7, nil)
	table.Add(Spread(math.NaN(), 1001, math.Inf(1), "FAIL (1000)"), "unknown")
	table.Add(nil, 1)
	if got := table.CSV(); got != "its,its least,its most,error\n85,83,88.5,0.25\n7,7,7,\n,1001,+Inf,unknown\n,,,1\n" {
		t.Errorf("CSV of ranges: %q", got)
	}
	checkContains(t, table.Markdown(), "| 85 (83–88.5) | 25 % |\n", "| FAIL (1000) | unknown |\n")
}

// TestTableHTML checks that the element is well-formed, and that special characters are escaped.
func TestTableHTML(t *testing.T) {
	got := sampleTable().HTML()
	checkWellFormed(t, strings.ReplaceAll(got, "<br>", "<br/>"))
	checkContains(t, got, `<td style="text-align:right">60,000</td>`, "a|b, &#34;q&#34;<br>&lt;i&gt;",
		"<caption><b>Results</b><br>s<sub>λ</sub> &amp; 100 %</caption>")
}

// TestAddTypes checks that a value of any string type, and a number with a String method, becomes a text.
func TestAddTypes(t *testing.T) {
	type word string
	table := &Table{Columns: make([]Column, 4)}
	table.Add(word("w"), time.Saturday, 2*time.Second, int8(3))
	if want := []Cell{Text("w"), Text("Saturday"), Text("2s"), Number(3)}; !reflect.DeepEqual(table.Rows[0], want) {
		t.Errorf("%v, want %v", table.Rows[0], want)
	}
}

// TestAddPanics checks that too many cells, or an unknown type, cause a panic.
func TestAddPanics(t *testing.T) {
	for _, v := range [][]any{{1, 2}, {true}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Add(%v) did not panic", v)
				}
			}()
			(&Table{Columns: []Column{{}}}).Add(v...)
		}()
	}
}

// TestBounds checks that the text of a bound is a bound, and differs from it by less than a unit of the last digit, in
// any format.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	values := []float64{0, 1500, 9.9996, 9.9994, -9.9996, 99999.6, 150003.9, 0.1, 1e-300, 5e-324, math.MaxFloat64 / 2}
	for range 2000 {
		values = append(values, random.NormFloat64()*math.Pow(10, float64(random.IntN(40)-20)))
	}
	formatCell := func(c Cell, format string) string {
		table := &Table{Columns: []Column{{Format: format}}}
		table.Add(c)
		return strings.ReplaceAll(table.cellText(0, 0), ",", "")
	}
	for _, v := range values {
		for format, unit := range map[string]float64{"": 1e-3 * math.Abs(v), "%.4g": 1e-3 * math.Abs(v),
			"%.2e": 1e-2 * math.Abs(v), "%.2f": 0.01} {
			lo, loErr := strconv.ParseFloat(formatCell(AtLeast(v), format), 64)
			hi, hiErr := strconv.ParseFloat(formatCell(AtMost(v), format), 64)
			// The two bounds differ by at most a unit of the last digit and rounding errors.
			if loErr != nil || hiErr != nil || lo > v || hi < v || hi-lo > unit+1e-15*math.Abs(v)+5e-324 {
				t.Fatalf("%v as %q: from %g to %g", v, format, lo, hi)
			}
		}
	}
	for want, got := range map[string]string{
		"1.501e5": formatCell(AtMost(150003.9), ""), "1.5e5": formatCell(AtLeast(150003.9), ""),
		"∞": formatCell(AtMost(math.Inf(1)), ""), "-∞": formatCell(AtLeast(math.Inf(-1)), ""),
		"NaN": formatCell(AtMost(math.NaN()), ""), "150004": formatCell(AtMost(150004), ""),
		"12.4 %": formatCell(AtMost(12.36), "%.1f %%"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if s := AtMost(150003.9).String(); s != "150003.9" {
		t.Errorf("AtMost(150003.9) is %s", s)
	}
}

// checkContains reports an error for each of the parts that the text does not contain.
func checkContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// TestPreformattedHTML checks that the columns of a text remain aligned if subscripts make names narrower.
func TestPreformattedHTML(t *testing.T) {
	if got := PreformattedHTML("λ_max  4\n x_y  λ_p\n"); got != `<pre style="white-space:pre;overflow-x:auto">`+
		"λₘₐₓ   4\n x<sub>y</sub>  λ<sub>p</sub>\n</pre>\n" {
		t.Errorf("got %q", got)
	}
}

// checkWellFormed ends the test if a text is not well-formed XML.
func checkWellFormed(t *testing.T, text string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}
