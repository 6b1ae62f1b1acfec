package datasets

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Dates say how a column of dates or times is coded by features: days since the first day, the time of day, the day of
// the week and the day of the year. The last three are cyclic, and each is the sine and the cosine of an angle. A fit
// finds all but Order where Form is "".
type Dates struct {
	Form  string `json:"form,omitempty"`  // "date", or "time" for times of day without a date
	Order string `json:"order,omitempty"` // what comes first in 31/12/2024, "day" or "month"; "" or "auto": the cells decide
	First string `json:"first,omitempty"` // the day from which days are counted, the first of the training data
	Times bool   `json:"times,omitempty"` // the cells have times of day
	Zone  bool   `json:"zone,omitempty"`  // the times have a time zone, and are taken in UTC
}

// validate reports what no fit has found.
func (d *Dates) validate(column string) error {
	_, err := time.Parse(time.DateOnly, d.First)
	if err := known("order of dates", d.Order, []string{"", "auto", "day", "month"}); err != nil {
		return err
	}
	if d.Form == "" || d.Form == "time" || d.Form == "date" && err == nil {
		return nil
	}
	return fmt.Errorf("datasets: the dates of the column %s have the form %q, and the first day %q", quote(column), d.Form,
		d.First)
}

// suffixes returns what the names of the features end with, after the name of the column.
func (d *Dates) suffixes() []string {
	hour, all := []string{" hour sin", " hour cos"}, []string{" days"}
	if d.Form == "time" {
		return hour
	}
	if d.Times {
		all = append(all, hour...)
	}
	return append(all, " weekday sin", " weekday cos", " year sin", " year cos")
}

// dateCell matches the forms of dates and times: a date as dateLayouts and yearLast have it, a time of day, whether it is
// before noon, and a time zone. The date or all else may be missing.
var dateCell = regexp.MustCompile(`^(\d{4}[-/.]\d\d?(?:[-/.]\d\d?)?|\d{8}|\d\d?[-/.]\d\d?[-/.]\d{4})?` +
	`(?:(?:^|[T ,] ?)(\d\d?):(\d\d)(?::(\d\d(?:[.,]\d+)?))? ?([AaPp][Mm])? ?` +
	`(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$`)

// dateLayouts are the forms of dates whose year comes first, with hyphens.
var dateLayouts = []string{"2006-1-2", "2006-1", "20060102"}

// sinceEpoch matches seconds, milli-, micro- or nanoseconds since 1970, from 1973 on.
var sinceEpoch = regexp.MustCompile(`^\d{9,19}(?:\.\d*)?$`)

const (
	day      = 24 * 60 * 60 // seconds
	dayCodes = 4 * day      // seconds from the day before a date, in its local time, to two days after it
)

// dateReader reads a column of dates. A date is held as a number of its digits until the end of the file is known, which
// may show whether days or months come first; it is negative where the cell leaves that open.
type dateReader struct {
	Dates
	fixed                                 bool   // by a fit
	dayFirst, monthFirst, either          string // cells that show what comes first, or leave it open
	withZone, withoutZone, dated, undated string // cells with and without a time zone, and a date
	orderIsNew                            bool   // the cells of this file, or a flag of it, decided Order
	timesLeftOut                          bool   // the fit had no times of day, and the cells have
	first, last                           float64
}

// read returns the number that stands for a cell.
func (r *dateReader) read(text string) (float64, error) {
	if sinceEpoch.MatchString(text) {
		v, err := strconv.ParseFloat(text, 64)
		digits := len(strings.Split(text, ".")[0])
		for ; digits > 11; digits -= 3 {
			v /= 1000
		}
		if err != nil {
			return 0, err
		}
		return dateCode(time.Unix(int64(v), 0).UTC(), math.Mod(v, day)), r.sees(text, true, true, true)
	}
	m := dateCell.FindStringSubmatch(text)
	if m == nil || text == "" {
		return 0, r.wrong(text)
	}
	date, hasTime := strings.NewReplacer("/", "-", ".", "-").Replace(m[1]), m[2] != ""
	seconds, err := timeOfDay(m[2:])
	if err == nil {
		err = r.sees(text, hasTime, m[6] != "", date != "")
	}
	if err != nil {
		return 0, err
	}
	if date == "" {
		return dateCode(time.Unix(0, 0).UTC(), seconds), nil
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, date); err == nil {
			return dateCode(t, seconds), nil
		}
	}
	return r.yearLast(text, date, seconds)
}

func (r *dateReader) wrong(text string) error {
	return fmt.Errorf("%s is no date or time that can be read: want forms such as 2024-12-31, 2024-12-31T23:59:59+01:00, "+
		"31/12/2024 23:59, 23:59:59 or seconds since 1970", quote(text))
}

// sees notes what a cell has, and reports what does not go with the cells before or with the fit.
func (r *dateReader) sees(text string, hasTime, hasZone, hasDate bool) error {
	note := func(cell *string, is bool) {
		if is && *cell == "" {
			*cell = strings.Clone(text)
		}
	}
	note(&r.withZone, hasTime && hasZone)
	note(&r.withoutZone, hasTime && !hasZone)
	note(&r.dated, hasDate)
	note(&r.undated, !hasDate)
	const fit = "; those of the fit have "
	switch {
	case r.dated != "" && r.undated != "":
		return fmt.Errorf("%s has a date, and %s has none", quote(r.dated), quote(r.undated))
	case r.withZone != "" && r.withoutZone != "":
		return fmt.Errorf("%s has a time zone, and %s has none: write one in all cells, such as Z for UTC, or in none",
			quote(r.withZone), quote(r.withoutZone))
	case !r.fixed:
		r.Times, r.Zone = r.Times || hasTime, r.withZone != ""
	case hasTime && hasDate && !r.Times:
		r.timesLeftOut = true
	case r.Form == "time" && hasDate:
		return fmt.Errorf("%s has a date%sa time alone", quote(text), fit)
	case r.Form == "date" && !hasDate:
		return fmt.Errorf("%s has no date%sone", quote(text), fit)
	case hasTime && hasZone && !r.Zone:
		return fmt.Errorf("%s has a time zone%snone: leave it out, in the clock time of the fit", quote(text), fit)
	case hasTime && !hasZone && r.Zone:
		return fmt.Errorf("%s has no time zone%sone: write it with one, such as Z for UTC", quote(text), fit)
	}
	return nil
}

// yearLast returns the number of a date in whose cell the year comes last.
func (r *dateReader) yearLast(text, date string, seconds float64) (float64, error) {
	t, notDayFirst := time.Parse("2-1-2006", date)
	monthFirst, notMonthFirst := time.Parse("1-2-2006", date)
	code, cell := dateCode(t, seconds), &r.dayFirst
	switch {
	case notDayFirst != nil && notMonthFirst != nil:
		return 0, r.wrong(text)
	case notDayFirst != nil:
		code, cell = dateCode(monthFirst, seconds), &r.monthFirst
	case notMonthFirst == nil:
		code, cell = -code, &r.either
	}
	*cell = cmp.Or(*cell, strings.Clone(text))
	switch {
	case r.dayFirst != "" && r.monthFirst != "":
		return 0, fmt.Errorf("the day comes first in %s, and the month in %s", quote(r.dayFirst), quote(r.monthFirst))
	case r.Order == "day" && r.monthFirst != "" || r.Order == "month" && r.dayFirst != "":
		return 0, fmt.Errorf("%s does not have the %s first, as the other dates or --date-order say", quote(text), r.Order)
	}
	return code, nil
}

// timeOfDay returns the seconds since midnight in UTC, or without a time zone on the clock, of the groups of dateCell.
func timeOfDay(m []string) (seconds float64, err error) {
	if m[0] == "" {
		return 0, nil
	}
	hour, _ := strconv.Atoi(m[0])
	minute, _ := strconv.Atoi(m[1])
	second, _ := strconv.ParseFloat(cmp.Or(strings.Replace(m[2], ",", ".", 1), "0"), 64)
	if half := strings.ToLower(m[3]); half != "" {
		if hour < 1 || hour > 12 {
			return 0, fmt.Errorf("the hour %d does not go with %s", hour, half)
		}
		hour = hour%12 + map[string]int{"pm": 12}[half]
	}
	if hour > 23 || minute > 59 || second > 61 {
		return 0, fmt.Errorf("%s:%s:%v is no time of day", m[0], m[1], second)
	}
	seconds, zone := float64(hour*3600+minute*60)+second, m[4]
	if zone != "" && strings.ContainsAny(zone[:1], "+-") {
		digits := strings.Replace(zone[1:], ":", "", 1)
		h, _ := strconv.Atoi(digits[:2])
		min, _ := strconv.Atoi(cmp.Or(digits[2:], "0"))
		offset := float64(h*3600 + min*60)
		if zone[0] == '+' {
			offset = -offset
		}
		if seconds += offset; h > 23 || min > 59 {
			return 0, fmt.Errorf("%s is no time zone", zone)
		}
	}
	return seconds, nil
}

// dateCode returns the number of a date whose seconds, from its midnight on, are between −day and 3·day.
func dateCode(t time.Time, seconds float64) float64 {
	year, month, date := t.Date()
	return float64((year*100+int(month))*100+date)*dayCodes + seconds + day
}

// seconds returns those since 1970 of a cell's number.
func (d *Dates) seconds(code float64) float64 {
	swap := code < 0 && d.Order == "month"
	code = math.Abs(code)
	digits := int(code / dayCodes)
	year, month, date := digits/10000, digits/100%100, digits%100
	if swap {
		month, date = date, month
	}
	t := time.Date(year, time.Month(month), date, 0, 0, 0, 0, time.UTC)
	return float64(t.Unix()) + math.Mod(code, dayCodes) - day
}

// settle decides what the cells left open, whose numbers are given. It is an error if they do not show whether days or
// months come first.
func (r *dateReader) settle(codes func(func(code float64))) error {
	switch {
	case r.Order == "day" || r.Order == "month":
		r.orderIsNew = !r.fixed
	case r.dayFirst != "":
		r.Order, r.orderIsNew = "day", true
	case r.monthFirst != "":
		r.Order, r.orderIsNew = "month", true
	case r.either != "":
		remedy := "add --date-order day or --date-order month"
		if r.fixed {
			remedy = "write the year first, as in 2024-12-31"
		}
		return fmt.Errorf("whether days or months come first is open (%s): %s", quote(r.either), remedy)
	default:
		r.Order = ""
	}
	first, last := math.Inf(1), math.Inf(-1)
	codes(func(code float64) { first, last = min(first, r.seconds(code)), max(last, r.seconds(code)) })
	if r.first, r.last = first, last; r.fixed {
		return nil
	}
	r.Form = "date"
	if r.dated == "" {
		r.Form = "time"
	} else if first <= last {
		r.First = dayText(first)
	}
	return nil
}

// noCodes stands for the cells of a column where only Order is to be settled.
func noCodes(func(code float64)) {}

func dayText(seconds float64) string { return time.Unix(int64(seconds), 0).UTC().Format(time.DateOnly) }

// String says in a line what the cells were taken for.
func (r *dateReader) String() string {
	text := "times of day"
	if r.Form == "date" {
		text = "dates from " + dayText(r.first) + " to " + dayText(r.last)
	}
	if r.orderIsNew {
		text += ", the " + r.Order + " first"
		if shown := r.dayFirst + r.monthFirst; shown != "" {
			text += ", as in " + quote(shown)
		}
	}
	if r.Zone {
		text += ", in UTC"
	}
	if r.timesLeftOut {
		text += "; the times of day are left out, as the fit had none"
	}
	return text
}

// put sets the features of a cell by its number: NaN without one.
func (d *Dates) put(row []float64, code float64) {
	t := d.seconds(code)
	if math.IsNaN(code) {
		t = math.NaN()
	}
	cycle := func(at, period float64) {
		row[0], row[1] = math.Sincos(2 * math.Pi * at / period)
		row = row[2:]
	}
	ofDay := math.Mod(math.Mod(t, day)+day, day)
	if d.Form == "time" {
		cycle(ofDay, day)
		return
	}
	first, _ := time.Parse(time.DateOnly, d.First) // by validate or settle a date
	row[0] = (t - float64(first.Unix())) / day
	row = row[1:]
	if d.Times {
		cycle(ofDay, day)
	}
	midnight := (t - ofDay) / day // days since 1970, a Thursday
	cycle(midnight+3, 7)
	yearDay := t
	if !math.IsNaN(t) {
		yearDay = float64(time.Unix(int64(math.Floor(t)), 0).UTC().YearDay()-1) + ofDay/day
	}
	cycle(yearDay, 365.25)
}
