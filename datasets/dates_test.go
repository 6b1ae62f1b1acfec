package datasets

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// dateTable returns a table with a number, one of the given cells in the column when, and an answer.
func dateTable(cells ...string) string {
	text := "a,when,y\n"
	for i, cell := range cells {
		text += fmt.Sprintf("%d,%s,1\n", i%2, cell)
	}
	return text
}

// readDates reads the table with when as a column of dates.
func readDates(text, order string) (*Dataset, error) {
	return Read(strings.NewReader(text), "f", &ReadOptions{Task: "regression",
		ColumnCodings: []ColumnCoding{{Column: "when", Dates: &DateCoding{Order: order}}}})
}

// TestDates checks that dates in every form become the days since the first one, the time of day, the weekday and the
// day of the year, by the standard library's calendar. A file that is read with the columns of the fit must give the
// same features.
func TestDates(t *testing.T) {
	for _, c := range []struct {
		cells, order string // cells separated by |
		want         string // the instants, in RFC 3339
		note         string
	}{
		{"2024-03-01|2024-12-31|2023-01-01", "", "2024-03-01|2024-12-31|2023-01-01", "dates from 2023-01-01 to 2024-12-31"},
		{"20240301|2024/3/2|2024.3.3|2024-04", "", "2024-03-01|2024-03-02|2024-03-03|2024-04-01", ""},
		{"2024-03-01T10:30:15.5|2024-03-02 23:59|2024-03-04", "", "2024-03-01T10:30:15.5Z|2024-03-02T23:59:00Z|2024-03-04", ""},
		{"2024-03-01T00:30+01:00|2024-03-01 23:30:00 -0130|2024-03-02T01:00:00Z|2024-03-02T01:00:00+01", "",
			"2024-02-29T23:30:00Z|2024-03-02T01:00:00Z|2024-03-02T01:00:00Z|2024-03-02T00:00:00Z", "in UTC"},
		{"1709287815|1709287815000|1709287815000000|1709287815.0", "",
			"2024-03-01T10:10:15Z|2024-03-01T10:10:15Z|2024-03-01T10:10:15Z|2024-03-01T10:10:15Z", "in UTC"},
		{"01/02/2024|13/02/2024", "", "2024-02-01|2024-02-13", `the day first, as in "13/02/2024"`},
		{"1/2/2024 12:05 AM|2/13/2024 1:05 pm", "", "2024-01-02T00:05:00Z|2024-02-13T13:05:00Z", `the month first, as in "2/13`},
		{"01.02.2024|03-02-2024", "day", "2024-02-01|2024-02-03", "the day first"},
		{"01/02/2024|03/02/2024", "month", "2024-01-02|2024-03-02", "the month first"},
		{"10:30|23:59:30", "", "T10:30:00Z|T23:59:30Z", "times of day"},
	} {
		d, err := readDates(dateTable(strings.Split(c.cells, "|")...), c.order)
		if err != nil {
			t.Errorf("%s: %v", c.cells, err)
			continue
		}
		checkContains(t, d.ReadReport.String(), c.note)
		checkDates(t, c.cells, d, c.want)
		// The model has what it needs: the features of other files are found by the raw column, and equal.
		options := ReadOptions{Task: "regression", ColumnCodings: d.ColumnCodings, Columns: d.Columns, Dim: d.Dim()}
		text := "when,a,y\n"
		for i, cell := range strings.Split(c.cells, "|") {
			text += fmt.Sprintf("%s,%d,1\n", cell, i%2)
		}
		again := must(Read(strings.NewReader(text), "again", &options))
		if fmt.Sprint(denseRows(again.X)) != fmt.Sprint(denseRows(d.X)) {
			t.Errorf("%s: %v, then %v", c.cells, denseRows(d.X), denseRows(again.X))
		}
	}
}

// checkDates compares the features of d with the features that are computed here from the instants want, which are
// separated by |. cells is the text of the table, for messages.
func checkDates(t *testing.T, cells string, d *Dataset, want string) {
	t.Helper()
	var instants []time.Time
	onlyTimes := strings.HasPrefix(want, "T") // times of day without dates
	hasTimes := strings.Contains(want, "T")
	for _, text := range strings.Split(want, "|") {
		if onlyTimes {
			text = "1970-01-01" + text
		} else if !strings.Contains(text, "T") {
			text += "T00:00:00Z"
		}
		instants = append(instants, must(time.Parse(time.RFC3339, text)))
	}
	first := instants[0]
	for _, instant := range instants {
		if instant.Before(first) {
			first = instant
		}
	}
	first = first.Truncate(24 * time.Hour)
	for i, instant := range instants {
		row := []float64{float64(i % 2)}
		appendCycle := func(v, period float64) {
			row = append(row, math.Sin(2*math.Pi*v/period), math.Cos(2*math.Pi*v/period))
		}
		hour := instant.Sub(instant.Truncate(24 * time.Hour)).Hours()
		if !onlyTimes {
			row = append(row, instant.Sub(first).Hours()/24)
		}
		if hasTimes {
			appendCycle(hour, 24)
		}
		if !onlyTimes {
			appendCycle(float64((instant.Weekday()+6)%7), 7)
			appendCycle(float64(instant.YearDay()-1)+hour/24, 365.25)
		}
		got := denseRows(d.X)[i]
		if len(got) != len(row) || len(d.Columns) != len(row) {
			t.Fatalf("%s: %v, want %v", cells, got, row)
		}
		for j := range row {
			if math.Abs(got[j]-row[j]) > 1e-9 { // rounding errors of seconds since 1970, in days
				t.Errorf("%s: row %d is %v, want %v: %q", cells, i, got, row, d.Columns)
				break
			}
		}
	}
}

// TestDateFaults checks that cells that are not dates, or whose day and month are ambiguous, are refused with their
// place and a remedy, in the file of the fit and in later files.
func TestDateFaults(t *testing.T) {
	for cells, want := range map[string]string{
		"2024-01-01|2023-02-29": `f, line 3, column 2: when: "2023-02-29" is no date`, "2024-01-01|soon": `"soon" is no date`,
		"2024-01-01|31/31/2024": "is no date", "2024-01-01|2024-01-01T25:00": "25:00:0 is no time of day",
		"1/2/2024 13:00 pm": "the hour 13 does not go with pm", "01/02/2024|03/04/2024": "add order=day or order=month to --dates",
		"13/01/2024|01/13/2024": `the day comes first in "13/01/2024", and the month in "01/13/2024"`,
		"10:00|2024-01-01":      `"2024-01-01" has a date, and "10:00" has none`, "2024-01-01|": "the cell is empty",
		"2024-01-01T10:00Z|2024-01-01T10:00": `"2024-01-01T10:00Z" has a time zone, and "2024-01-01T10:00" has none`,
		"1/2/24":                             "is no date", "2024-01-01T10:00+25:00": "is no time zone",
	} {
		wantError(t, errorFrom(readDates(dateTable(strings.Split(cells, "|")...), "")), want)
	}
	wantError(t, errorFrom(readDates(dateTable("13/01/2024"), "month")), "does not have the month first")
	for _, c := range []struct{ fit, other, want string }{
		{"2024-01-01", "01/02/2024", "is open (\"01/02/2024\"): write the year first"},
		{"2024-01-01T10:00", "2024-01-01T10:00Z", "those of the fit have none"},
		{"2024-01-01T10:00Z", "2024-01-01 10:00", "those of the fit have one"}, {"10:00", "2024-01-01", "a time alone"},
		{"2024-01-01", "10:00", "has no date; those of the fit have one"}, {"13/01/2024", "01/13/2024", "have the day first"},
	} {
		d := must(readDates(dateTable(c.fit, c.fit), ""))
		options := ReadOptions{Task: "regression", ColumnCodings: d.ColumnCodings, Columns: d.Columns, Dim: d.Dim()}
		wantError(t, errorFrom(Read(strings.NewReader(dateTable(c.other)), "f", &options)), c.want)
	}
	for cells, want := range map[string]string{
		"2024-01-01|2024-01-02|": "dates or times (--drop when leaves them out); add --dates when --impute median", "10:00|11:00": "add --dates when",
		"2024-01-01|2024-01-32": `which --dates cannot read: "2024-01-32" is no date`, "2024-01-01|2024-01-02|5": "and numbers; add --drop when",
		"01/02/2024|03/04/2024": "add order=day or order=month to --dates; add --drop when",
	} {
		wantError(t, errorFrom(Read(strings.NewReader(dateTable(strings.Split(cells, "|")...)), "f", nil)), want)
	}
	for want, coding := range map[string]DateCoding{`the first day "soon"`: {Form: "date", First: "soon"},
		`the form "x"`:           {Form: "x"},
		"unknown order of dates": {Order: "year"}} {
		wantError(t, errorFrom(Read(strings.NewReader(dateTable("2024-01-01")), "f",
			&ReadOptions{ColumnCodings: []ColumnCoding{{Column: "when", Dates: &coding}}})), want)
	}
	d := must(readDates(dateTable("2024-01-01", "2024-01-02"), ""))
	options := ReadOptions{Task: "regression", ColumnCodings: d.ColumnCodings, Columns: d.Columns, Dim: d.Dim()}
	later := must(Read(strings.NewReader(dateTable("2024-01-01T10:00", "13/01/2024")), "f", &options))
	checkContains(t, later.ReadReport.String(),
		`the day first, as in "13/01/2024"; the times of day are left out, as the fit had none`)
	gaps := must(Read(strings.NewReader(dateTable("2024-01-01", "")), "f", &ReadOptions{Task: "regression",
		KeepMissing:   true,
		ColumnCodings: []ColumnCoding{{Column: "when", Dates: &DateCoding{}}}}))
	if row := denseRows(gaps.X)[1]; gaps.ReadReport.Missing != 1 || !math.IsNaN(row[1]) || !math.IsNaN(row[5]) ||
		row[0] != 1 {
		t.Errorf("a missing date is %v, want 1 and NaN for each of its parts", row)
	}
}
