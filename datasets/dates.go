package datasets

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DateCoding describes how a column of dates or times is coded by features: the number of days since the first day, and
// the time of day, the day of the week and the day of the year. The last three are cyclic; each is coded by the sine
// and the cosine of an angle. If Form is "", a fit determines all fields except a given Order.
type DateCoding struct {
	Form string `json:"form,omitempty"` // "date", or "time" for times of day without a date
	// Order says which number comes first in 31/12/2024, "day" or "month". If it is "" or "auto", the cells decide.
	Order    string `json:"order,omitempty"`
	First    string `json:"first,omitempty"` // day from which days are counted: the first one of the training data
	HasTimes bool   `json:"times,omitempty"` // the cells have times of day
	HasZone  bool   `json:"zone,omitempty"`  // the times have a time zone and are converted to UTC
}

// validate returns an error, with the name of the column, if the fields have values that no fit could have set.
func (d *DateCoding) validate(column string) error {
	_, err := time.Parse(time.DateOnly, d.First)
	if err := requireOneOf("order of dates", d.Order, []string{"", "auto", "day", "month"}); err != nil {
		return err
	}
	if d.Form == "" || d.Form == "time" || d.Form == "date" && err == nil {
		return nil
	}
	return fmt.Errorf("datasets: the dates of the column %s have the form %q, and the first day %q", quote(column),
		d.Form, d.First)
}

// suffixes returns the suffixes that follow the name of the column in the names of its features.
func (d *DateCoding) suffixes() []string {
	hourSuffixes, suffixes := []string{" hour sin", " hour cos"}, []string{" days"}
	if d.Form == "time" {
		return hourSuffixes
	}
	if d.HasTimes {
		suffixes = append(suffixes, hourSuffixes...)
	}
	return append(suffixes, " weekday sin", " weekday cos", " year sin", " year cos")
}

// dateCell matches the accepted forms of dates and times: a date in a form of dateLayouts or with the year last, a time
// of day, AM or PM, and a time zone. The date may be missing, or everything else.
var dateCell = regexp.MustCompile(`^(\d{4}[-/.]\d\d?(?:[-/.]\d\d?)?|\d{8}|\d\d?[-/.]\d\d?[-/.]\d{4})?` +
	`(?:(?:^|[T ,] ?)(\d\d?):(\d\d)(?::(\d\d(?:[.,]\d+)?))? ?([AaPp][Mm])? ?` +
	`(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$`)

// dateLayouts are the forms of dates with the year first, after all separators were replaced by hyphens.
var dateLayouts = []string{"2006-1-2", "2006-1", "20060102"}

// epochTime matches seconds, milliseconds, microseconds or nanoseconds since 1970, from 1973 on.
var epochTime = regexp.MustCompile(`^\d{9,19}(?:\.\d*)?$`)

const (
	secondsPerDay = 24 * 60 * 60
	// codesPerDay is the distance of the codes of two successive dates, in seconds. The conversion to UTC moves a time
	// by less than a day, so the seconds since the midnight of its local date are between −1 and 2 days. They need
	// three days; the fourth is a margin.
	codesPerDay = 4 * secondsPerDay
)

// dateReader reads a column of dates. Each cell is represented by a code (encodeDate) until the end of the file,
// because only then it may be known whether days or months come first. The code is negative if the day and the month of
// the cell could be exchanged.
type dateReader struct {
	DateCoding
	isFitted bool // a fit has set DateCoding

	// Each of these is the first cell of its kind; "" if there is none.
	dayFirstCell, monthFirstCell, ambiguousCell    string // first number: the day, the month, or possibly either
	zonedCell, unzonedCell, datedCell, undatedCell string // a time with a zone, a time without one, a date, no date

	orderIsNew       bool    // the cells of this file or a flag determined Order
	ignoresTimes     bool    // the cells have times of day, but those of the fit had none
	earliest, latest float64 // first and last time of all cells, in seconds since 1970
}

// parseCell returns the code of a cell (encodeDate), with a negative sign if its day and month could be exchanged. It
// returns an error if the cell is no date or time, or does not go with earlier cells or the fit.
func (r *dateReader) parseCell(text string) (float64, error) {
	if epochTime.MatchString(text) {
		epochSeconds, err := strconv.ParseFloat(text, 64)
		digits := len(strings.Split(text, ".")[0])
		for ; digits > 11; digits -= 3 { // seconds have 9 to 11 digits, and each smaller unit has three more
			epochSeconds /= 1000
		}
		if err != nil {
			return 0, err
		}
		code := encodeDate(time.Unix(int64(epochSeconds), 0).UTC(), math.Mod(epochSeconds, secondsPerDay))
		return code, r.checkParts(text, dateParts{time: true, zone: true, date: true})
	}
	groups := dateCell.FindStringSubmatch(text)
	if groups == nil || text == "" {
		return 0, r.formError(text)
	}
	date, hasTime := strings.NewReplacer("/", "-", ".", "-").Replace(groups[1]), groups[2] != ""
	seconds, err := parseTimeOfDay(groups[2:])
	if err == nil {
		err = r.checkParts(text, dateParts{hasTime, groups[6] != "", date != ""})
	}
	if err != nil {
		return 0, err
	}
	if date == "" {
		return encodeDate(time.Unix(0, 0).UTC(), seconds), nil
	}
	for _, layout := range dateLayouts {
		if day, err := time.Parse(layout, date); err == nil {
			return encodeDate(day, seconds), nil
		}
	}
	return r.parseYearLast(text, date, seconds)
}

// formError returns the error for a cell that has none of the accepted forms.
func (r *dateReader) formError(text string) error {
	return fmt.Errorf("%s is no date or time that can be read: want forms such as 2024-12-31, "+
		"2024-12-31T23:59:59+01:00, 31/12/2024 23:59, 23:59:59 or seconds since 1970", quote(text))
}

// dateParts says which parts a cell has.
type dateParts struct{ time, zone, date bool }

// checkParts records the parts of a cell, and returns an error if they are inconsistent with earlier cells or with the
// fit.
func (r *dateReader) checkParts(text string, has dateParts) error {
	recordFirst := func(cell *string, applies bool) {
		if applies && *cell == "" {
			*cell = strings.Clone(text)
		}
	}
	recordFirst(&r.zonedCell, has.time && has.zone)
	recordFirst(&r.unzonedCell, has.time && !has.zone)
	recordFirst(&r.datedCell, has.date)
	recordFirst(&r.undatedCell, !has.date)
	const fittedCellsHave = "; those of the fit have "
	switch {
	case r.datedCell != "" && r.undatedCell != "":
		return fmt.Errorf("%s has a date, and %s has none", quote(r.datedCell), quote(r.undatedCell))
	case r.zonedCell != "" && r.unzonedCell != "":
		return fmt.Errorf("%s has a time zone, and %s has none: write one in all cells, such as Z for UTC, or in none",
			quote(r.zonedCell), quote(r.unzonedCell))
	case !r.isFitted:
		r.HasTimes, r.HasZone = r.HasTimes || has.time, r.zonedCell != ""
	case has.time && has.date && !r.HasTimes:
		r.ignoresTimes = true
	case r.Form == "time" && has.date:
		return fmt.Errorf("%s has a date%sa time alone", quote(text), fittedCellsHave)
	case r.Form == "date" && !has.date:
		return fmt.Errorf("%s has no date%sone", quote(text), fittedCellsHave)
	case has.time && has.zone && !r.HasZone:
		return fmt.Errorf("%s has a time zone%snone: leave it out, in the clock time of the fit", quote(text),
			fittedCellsHave)
	case has.time && !has.zone && r.HasZone:
		return fmt.Errorf("%s has no time zone%sone: write it with one, such as Z for UTC", quote(text),
			fittedCellsHave)
	}
	return nil
}

// parseYearLast returns the code of a date whose cell has the year last.
func (r *dateReader) parseYearLast(text, date string, seconds float64) (float64, error) {
	dayFirst, dayFirstErr := time.Parse("2-1-2006", date)
	monthFirst, monthFirstErr := time.Parse("1-2-2006", date)
	code, cell := encodeDate(dayFirst, seconds), &r.dayFirstCell
	switch {
	case dayFirstErr != nil && monthFirstErr != nil:
		return 0, r.formError(text)
	case dayFirstErr != nil:
		code, cell = encodeDate(monthFirst, seconds), &r.monthFirstCell
	case monthFirstErr == nil:
		code, cell = -code, &r.ambiguousCell
	}
	*cell = cmp.Or(*cell, strings.Clone(text))
	switch {
	case r.dayFirstCell != "" && r.monthFirstCell != "":
		return 0, fmt.Errorf("the day comes first in %s, and the month in %s", quote(r.dayFirstCell),
			quote(r.monthFirstCell))
	case r.Order == "day" && r.monthFirstCell != "" || r.Order == "month" && r.dayFirstCell != "":
		return 0, fmt.Errorf("%s does not have the %s first, as the other dates or --dates order= say", quote(text),
			r.Order)
	}
	return code, nil
}

// parseTimeOfDay returns the seconds since midnight, in UTC if there is a time zone, else in the local time of the
// cell. groups are the groups of dateCell from the hour on: hour, minute, second, AM or PM, and time zone.
func parseTimeOfDay(groups []string) (seconds float64, err error) {
	if groups[0] == "" {
		return 0, nil
	}
	hour, _ := strconv.Atoi(groups[0])
	minute, _ := strconv.Atoi(groups[1])
	second, _ := strconv.ParseFloat(cmp.Or(strings.Replace(groups[2], ",", ".", 1), "0"), 64)
	if amOrPM := strings.ToLower(groups[3]); amOrPM != "" {
		if hour < 1 || hour > 12 {
			return 0, fmt.Errorf("the hour %d does not go with %s", hour, amOrPM)
		}
		hour = hour%12 + map[string]int{"pm": 12}[amOrPM]
	}
	if hour > 23 || minute > 59 || second > 61 { // 60 and more is a leap second
		return 0, fmt.Errorf("%s:%s:%v is no time of day", groups[0], groups[1], second)
	}
	seconds, zone := float64(hour*3600+minute*60)+second, groups[4]
	if zone != "" && strings.ContainsAny(zone[:1], "+-") {
		digits := strings.Replace(zone[1:], ":", "", 1)
		zoneHours, _ := strconv.Atoi(digits[:2])
		zoneMinutes, _ := strconv.Atoi(cmp.Or(digits[2:], "0"))
		offset := float64(zoneHours*3600 + zoneMinutes*60)
		if zone[0] == '+' {
			offset = -offset
		}
		if seconds += offset; zoneHours > 23 || zoneMinutes > 59 {
			return 0, fmt.Errorf("%s is no time zone", zone)
		}
	}
	return seconds, nil
}

// encodeDate returns the code of a date and of the seconds since its midnight: the digits of the date as the number
// yyyymmdd, times codesPerDay, plus the seconds and one day. The seconds must be at least −1 day and below 3 days.
func encodeDate(t time.Time, seconds float64) float64 {
	year, month, day := t.Date()
	return float64((year*100+int(month))*100+day)*codesPerDay + seconds + secondsPerDay
}

// decodeSeconds returns the seconds since 1970 of a code.
func (d *DateCoding) decodeSeconds(code float64) float64 {
	isMonthFirst := code < 0 && d.Order == "month"
	code = math.Abs(code)
	digits := int(code / codesPerDay)
	year, month, day := digits/10000, digits/100%100, digits%100
	if isMonthFirst {
		month, day = day, month
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return float64(t.Unix()) + math.Mod(code, codesPerDay) - secondsPerDay
}

// decideOrder sets Order from the cells. It returns an error if they do not show whether days or months come first.
func (r *dateReader) decideOrder() error {
	switch {
	case r.Order == "day" || r.Order == "month":
		r.orderIsNew = !r.isFitted
	case r.dayFirstCell != "":
		r.Order, r.orderIsNew = "day", true
	case r.monthFirstCell != "":
		r.Order, r.orderIsNew = "month", true
	case r.ambiguousCell != "":
		remedy := "add order=day or order=month to --dates"
		if r.isFitted {
			remedy = "write the year first, as in 2024-12-31"
		}
		return fmt.Errorf("whether days or months come first is open (%s): %s", quote(r.ambiguousCell), remedy)
	default:
		r.Order = ""
	}
	return nil
}

// setRange sets earliest and latest from the codes of all cells, in which NaN stands for a missing cell. If no fit has
// set Form and First, it sets them too. decideOrder must have succeeded.
func (r *dateReader) setRange(codes iter.Seq[float64]) {
	r.earliest, r.latest = math.Inf(1), math.Inf(-1)
	for code := range codes {
		if seconds := r.decodeSeconds(code); !math.IsNaN(code) {
			r.earliest, r.latest = min(r.earliest, seconds), max(r.latest, seconds)
		}
	}
	switch {
	case r.isFitted:
	case r.datedCell == "":
		r.Form = "time"
	default:
		if r.Form = "date"; r.earliest <= r.latest {
			r.First = formatDay(r.earliest)
		}
	}
}

// formatDay returns the date of a time in seconds since 1970, as 2024-12-31.
func formatDay(seconds float64) string {
	return time.Unix(int64(seconds), 0).UTC().Format(time.DateOnly)
}

// String describes in one line how the cells were interpreted.
func (r *dateReader) String() string {
	text := "times of day"
	if r.Form == "date" {
		text = "dates from " + formatDay(r.earliest) + " to " + formatDay(r.latest)
	}
	if r.orderIsNew {
		text += ", the " + r.Order + " first"
		if example := r.dayFirstCell + r.monthFirstCell; example != "" {
			text += ", as in " + quote(example)
		}
	}
	if r.HasZone {
		text += ", in UTC"
	}
	if r.ignoresTimes {
		text += "; the times of day are left out, as the fit had none"
	}
	return text
}

// setFeatures writes the features of the cell with the given code to row: NaN if the code is NaN.
func (d *DateCoding) setFeatures(row []float64, code float64) {
	seconds := d.decodeSeconds(code)
	if math.IsNaN(code) {
		seconds = math.NaN()
	}
	setCycle := func(value, period float64) {
		row[0], row[1] = math.Sincos(2 * math.Pi * value / period)
		row = row[2:]
	}
	secondOfDay := math.Mod(math.Mod(seconds, secondsPerDay)+secondsPerDay, secondsPerDay)
	if d.Form == "time" {
		setCycle(secondOfDay, secondsPerDay)
		return
	}
	firstDay, _ := time.Parse(time.DateOnly, d.First) // validate and decideOrder ensure that it is a date
	row[0] = (seconds - float64(firstDay.Unix())) / secondsPerDay
	row = row[1:]
	if d.HasTimes {
		setCycle(secondOfDay, secondsPerDay)
	}
	day := (seconds - secondOfDay) / secondsPerDay // whole days since 1970-01-01, a Thursday
	setCycle(day+3, 7)                             // a multiple of 7 for Mondays
	yearDay := seconds                             // NaN for a missing cell
	if !math.IsNaN(seconds) {
		yearDay = float64(time.Unix(int64(math.Floor(seconds)), 0).UTC().YearDay()-1) + secondOfDay/secondsPerDay
	}
	setCycle(yearDay, 365.25) // the mean length of a year, in days
}
