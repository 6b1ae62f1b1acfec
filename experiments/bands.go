package experiments

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/plots"
)

// Roles of the entries of figures 1 and 2.
const (
	exactRole    = "exact method"
	featuresRole = "random features"
)

// spot is what the seeds gave at one place of a curve: one s of figure 1, one n of figure 2.
type spot struct {
	x          float64
	c          Case      // of the first seed
	errors     []float64 // of the seeds that ran and converged, ascending
	seconds    []float64 // of training them, ascending
	iterations []float64 // ascending
	seeds      int       // planned
	capped     int       // seeds that ran and did not converge: no point of the curve
}

// complete reports whether all seeds ran and converged.
func (p *spot) complete() bool { return p != nil && p.seeds > 0 && len(p.errors) == p.seeds }

// curve collects the entries of a row and a role by their place, in the order of the plan.
func (r *Report) curve(row, role string, at func(Case) float64) []*spot {
	var out []*spot
	for _, e := range r.Find(row, role) {
		x := at(e.Case)
		i := slices.IndexFunc(out, func(p *spot) bool { return p.x == x })
		if i < 0 {
			i = len(out)
			out = append(out, &spot{x: x, c: e.Case})
		}
		p := out[i]
		p.seeds++
		switch v := e.Result; {
		case !v.Ran():
		case !v.Converged:
			p.capped++
		case math.IsNaN(v.Error()): // it was not judged
		default:
			p.errors = append(p.errors, v.Error())
			p.seconds = append(p.seconds, v.Train())
			p.iterations = append(p.iterations, float64(v.Iterations))
		}
	}
	for _, p := range out {
		slices.Sort(p.errors)
		slices.Sort(p.seconds)
		slices.Sort(p.iterations)
	}
	return out
}

// bySketch and byPoints are the abscissae of figures 1 and 2.
func bySketch(c Case) float64 { return float64(c.S) }
func byPoints(c Case) float64 { return float64(sizeOf(c).N) }

// median returns the median of an ascending sample, halfway between the middle two of an even number; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ends returns the least and the largest of an ascending sample; NaN of none.
func ends(v []float64) (lo, hi float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	return v[0], v[len(v)-1]
}

// series makes a line of a curve: the medians of of over those of x, with the least and the
// most of the seeds as a band; none if no place has a value.
func series(name string, curve []*spot, x, of func(*spot) []float64) []plots.Series {
	s, found := plots.Series{Name: name}, false
	for _, p := range curve {
		v := of(p)
		lo, hi := ends(v)
		s.AddBand(median(x(p)), median(v), lo, hi)
		found = found || len(v) > 0
	}
	if !found {
		return nil
	}
	return []plots.Series{s}
}

// curveTable adds a row to the table for each place of the curves that has a result; head has its first cells.
func (r *Report) curveTable(t *plots.Table, roles []string, by func(Case) float64, head func(row, role string, p *spot) []any) []*plots.Table {
	for _, row := range r.Rows() {
		for _, role := range roles {
			for _, p := range r.curve(row, role, by) {
				if len(p.errors)+p.capped == 0 {
					continue
				}
				its := plots.Blank()
				if role == exactRole || role == autoRole {
					its = spread(p.iterations, "%.0f")
				}
				t.Add(append(head(row, role, p), p.seedsText(), spread(errorsOf(p), "%.2f"), spread(p.seconds, "%.3g"), its)...)
			}
		}
	}
	return []*plots.Table{t}
}

// What series are of.
func place1(p *spot) []float64    { return []float64{p.x} }
func secondsOf(p *spot) []float64 { return p.seconds }
func errorsOf(p *spot) []float64 { // per cent
	return floats.ScaleTo(make([]float64, len(p.errors)), 100, p.errors)
}

// errorTicks returns what to label on an axis of errors in per cent from lo to hi: the exact method's,
// which no other may hide, and round ones apart from it. NaN for none.
func errorTicks(exact, lo, hi float64) []float64 {
	ticks := []float64{exact}
	if math.IsNaN(exact) {
		ticks = nil
	}
	for _, v := range []float64{0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100} {
		if v >= lo && v <= hi && !(math.Max(v, exact)/math.Min(v, exact) < 1.15) {
			ticks = append(ticks, v)
		}
	}
	return ticks
}

// ticksAt returns what to label of the places of curves: all of up to four, and of more every second,
// third, …, the largest among them.
func ticksAt(curves ...[]*spot) []float64 {
	var out []float64
	for _, c := range curves {
		for _, p := range c {
			if len(p.errors) > 0 {
				out = append(out, p.x)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	every, last := (len(out)+3)/4, len(out)-1
	var ticks []float64
	for i, x := range out {
		if (last-i)%every == 0 {
			ticks = append(ticks, x)
		}
	}
	return ticks
}

// long matches a whole number of five digits or more that stands by itself.
var long = regexp.MustCompile(`(^|[ (=])\d{5,}\b`)

// grouped writes the whole numbers of a text as thousands does.
func grouped(text string) string {
	return long.ReplaceAllStringFunc(text, func(s string) string {
		at := strings.IndexFunc(s, unicode.IsDigit)
		n, err := strconv.Atoi(s[at:])
		if err != nil { // longer than any that we write
			return s
		}
		return s[:at] + thousands(n)
	})
}

// thousands writes a number with commas from five digits on, as tables do.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && n >= 10000; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// spread writes an ascending sample as "median (least–most)", one value as it is, with the verb
// of a float64; blank for none.
func spread(v []float64, verb string) plots.Cell {
	if len(v) == 0 {
		return plots.Blank()
	}
	lo, hi := ends(v)
	m, a, b := fmt.Sprintf(verb, median(v)), fmt.Sprintf(verb, lo), fmt.Sprintf(verb, hi)
	if len(v) == 1 || a == b {
		return plots.Text(m)
	}
	return plots.Text(fmt.Sprintf("%s (%s–%s)", m, a, b))
}

// seedsText says how many seeds a place has: "5", "3 of 5 converged".
func (p *spot) seedsText() plots.Cell {
	switch n := len(p.errors); {
	case p.capped > 0:
		return plots.Text(fmt.Sprintf("%d of %d converged", n, n+p.capped))
	case n < p.seeds:
		return plots.Text(fmt.Sprintf("%d of %d run", n, p.seeds))
	default:
		return plots.Number(float64(n))
	}
}

// reseeded returns an entry for each of so many seeds, all of them tested.
func reseeded(row, role string, c Case, seeds, expect int) []Entry {
	var out []Entry
	for k := range seeds {
		c.Seed = uint64(k + 1)
		out = append(out, Entry{Row: row, Role: role, Case: c, Expect: expect})
	}
	return out
}

// allErrors returns the errors of all seeds at all places, ascending.
func allErrors(curve []*spot) []float64 {
	var out []float64
	for _, p := range curve {
		out = append(out, p.errors...)
	}
	slices.Sort(out)
	return out
}

// best returns the place, of those that ok accepts, that is better than all before it; nil if there is none.
func best(curve []*spot, ok func(*spot) bool, better func(a, b *spot) bool) (found *spot) {
	for _, p := range curve {
		if ok(p) && (found == nil || better(p, found)) {
			found = p
		}
	}
	return found
}

func ran(p *spot) bool      { return len(p.errors) > 0 }
func planned(*spot) bool    { return true }
func first(_, _ *spot) bool { return false }

func leastError(a, b *spot) bool { return median(a.errors) < median(b.errors) }
func further(a, b *spot) bool    { return a.x > b.x }

// largest and smallest return the places of the largest and the smallest x that ran, at the one of x that ran,
// and quickest the one of the least median of seconds; nil if there is none.
func largest(curve []*spot) *spot { return best(curve, ran, further) }
func smallest(curve []*spot) *spot {
	return best(curve, ran, func(a, b *spot) bool { return a.x < b.x })
}
func at(curve []*spot, x float64) *spot {
	return best(curve, func(p *spot) bool { return ran(p) && p.x == x }, first)
}
func quickest(curve []*spot) *spot {
	return best(curve, ran, func(a, b *spot) bool { return median(a.seconds) < median(b.seconds) })
}
