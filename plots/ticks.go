package plots

import (
	"math"
	"strconv"
	"strings"
)

// tick is one mark of an axis; a minor one has no label.
type tick struct {
	at    float64
	label string
}

// scale maps the values of an axis to [0, 1].
type scale struct {
	lo, hi float64
	log    bool
	ticks  []tick
}

// at returns the place of v on the axis: 0 at lo, 1 at hi.
func (s *scale) at(v float64) float64 {
	if s.log {
		return (math.Log(v) - math.Log(s.lo)) / (math.Log(s.hi) - math.Log(s.lo))
	}
	return (v - s.lo) / (s.hi - s.lo)
}

// newScale chooses the ends and ticks of an axis for data in [lo, hi], which the axis
// can show. About n ticks are labelled.
func newScale(a *Axis, lo, hi float64, n int) *scale {
	s := &scale{lo: lo, hi: hi, log: a.Log}
	if a.Log {
		if lo == hi {
			lo, hi = lo/2, hi*2
		}
		pad := math.Exp(0.04 * (math.Log(hi) - math.Log(lo)))
		s.lo, s.hi = math.Max(lo/pad, math.SmallestNonzeroFloat64), math.Min(hi*pad, math.MaxFloat64)
	} else {
		if lo == hi {
			w := math.Max(math.Abs(lo)*0.1, 1e-300)
			if lo == 0 {
				w = 1
			}
			lo, hi = lo-w, hi+w
		}
		pad := 0.04*hi - 0.04*lo
		s.lo, s.hi = lo-pad, hi+pad
		if lo >= 0 && s.lo < 0 { // no negative ground under data that has none
			s.lo = 0
		}
		s.lo, s.hi = math.Max(s.lo, -math.MaxFloat64/4), math.Min(s.hi, math.MaxFloat64/4)
	}
	if l, h := a.ends(); true {
		if !math.IsNaN(l) {
			s.lo = l
		}
		if !math.IsNaN(h) {
			s.hi = h
		}
	}
	if !(s.lo < s.hi) { // one end was fixed beyond the data
		if l, _ := a.ends(); !math.IsNaN(l) {
			s.hi = widen(s.lo, a.Log, +1)
		} else {
			s.lo = widen(s.hi, a.Log, -1)
		}
	}
	if a.Log {
		s.ticks = logTicks(s.lo, s.hi, n)
	} else {
		s.ticks = linearTicks(s.lo, s.hi, n)
	}
	return s
}

// widen returns a value above (sign > 0) or below v.
func widen(v float64, log bool, sign float64) float64 {
	if log {
		return v * math.Pow(10, sign)
	}
	return v + sign*math.Max(1, math.Abs(v))
}

// linearTicks labels multiples of 1, 2 or 5 times a power of ten: as many as there are
// up to n+1.
func linearTicks(lo, hi float64, n int) []tick {
	exp := int(math.Floor(math.Log10((hi-lo)/float64(max(n, 2))))) - 1
	mult, step := 1, 0.0
	for range 100 {
		step = math.Pow(10, float64(exp))
		unit := float64(mult) * step
		if math.Floor(hi/unit+1e-9)-math.Ceil(lo/unit-1e-9) <= float64(n) {
			break
		}
		switch mult {
		case 1:
			mult = 2
		case 2:
			mult = 5
		default:
			mult, exp = 1, exp+1
		}
	}
	// Multiples of the step are integers j·mult·10^exp, so that no label shows a
	// rounding error.
	first, last := math.Ceil(lo/(float64(mult)*step)-1e-9), math.Floor(hi/(float64(mult)*step)+1e-9)
	var ts []tick
	for j := first; j <= last && len(ts) < 50; j++ {
		ts = append(ts, tick{at: j * float64(mult) * step})
	}
	top := math.Max(math.Abs(lo), math.Abs(hi))
	for i := range ts {
		ts[i].label = tickLabel((first+float64(i))*float64(mult), exp, top)
	}
	return ts
}

// tickLabel writes j·10^exp: plainly where that is short, and with a power of ten
// otherwise. top is the largest magnitude on the axis.
func tickLabel(j float64, exp int, top float64) string {
	if j == 0 {
		return "0"
	}
	if top < 1e7 && exp >= -4 {
		return group(minus(strconv.FormatFloat(j*math.Pow(10, float64(exp)), 'f', max(0, -exp), 64)))
	}
	// Write every label over the power of ten of the largest one.
	p := int(math.Floor(math.Log10(top)))
	digits := max(0, p-exp)
	m := strconv.FormatFloat(j*math.Pow(10, float64(exp-p)), 'f', digits, 64)
	return minus(m) + "×10" + superscript(p)
}

// logTicks labels powers of ten, every k-th one if there are many; if there are few
// it labels 2 and 5 times them too, or all their multiples. The rest are minor ticks.
func logTicks(lo, hi float64, n int) []tick {
	decades := math.Log10(hi) - math.Log10(lo)
	every := 1
	for decades/float64(every) > float64(max(n, 2))+1 {
		every++
	}
	fine := decades < 1.7 || 3*decades <= float64(n)+1 // room for 2 and 5 as well
	plain := fine && lo >= 1e-3 && hi <= 1e6           // labels without powers of ten
	p0, p1 := int(math.Floor(math.Log10(lo)-1e-9)), int(math.Ceil(math.Log10(hi)+1e-9))
	var ts []tick
	for p := p0; p <= p1; p++ {
		for m := 1; m <= 9; m++ {
			v := float64(m) * math.Pow(10, float64(p))
			if v < lo*(1-1e-12) || v > hi*(1+1e-12) || v == 0 || m > 1 && every > 1 {
				continue
			}
			t := tick{at: v}
			if m == 1 && mod(p, every) == 0 || fine && (m == 2 || m == 5) || decades < 0.7 {
				t.label = logLabel(m, p, plain)
			}
			ts = append(ts, t)
		}
	}
	if labelled(ts) < 2 { // less than a fifth of a decade: linear ticks tell more
		return linearTicks(lo, hi, n)
	}
	return ts
}

// logLabel writes m·10^p.
func logLabel(m, p int, plain bool) string {
	switch {
	case plain:
		return group(strconv.FormatFloat(float64(m)*math.Pow(10, float64(p)), 'f', max(0, -p), 64))
	case m == 1:
		return "10" + superscript(p)
	}
	return strconv.Itoa(m) + "×10" + superscript(p)
}

func labelled(ts []tick) (n int) {
	for _, t := range ts {
		if t.label != "" {
			n++
		}
	}
	return n
}

// mod returns p mod k in [0, k).
func mod(p, k int) int { return ((p % k) + k) % k }

// superscript writes p in superscript digits.
func superscript(p int) string {
	return strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
		"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(p))
}

// minus replaces a leading hyphen by a minus sign.
func minus(s string) string {
	if strings.HasPrefix(s, "-") {
		return "−" + s[1:]
	}
	return s
}

// group puts a comma between each three digits of the whole part of a decimal
// number of five digits or more.
func group(s string) string { return commas(s, 5) }

// commas is group for numbers of so many digits or more.
func commas(s string, from int) string {
	sign := ""
	for _, m := range []string{"−", "-"} {
		if strings.HasPrefix(s, m) {
			sign, s = m, s[len(m):]
		}
	}
	whole, frac, _ := strings.Cut(s, ".")
	if frac != "" {
		frac = "." + frac
	}
	if len(whole) >= from && strings.Trim(whole, "0123456789") == "" {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	return sign + whole + frac
}

// scientific writes v in at most three digits: 10⁻³, 2.5×10⁻⁴, 0.1, 20.
func scientific(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	m, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	p, _ := strconv.Atoi(e)
	if p == 3 {
		return minus(strconv.FormatFloat(v, 'f', 0, 64))
	}
	if p >= -1 && p <= 2 {
		return minus(strconv.FormatFloat(v, 'g', 3, 64))
	}
	m = strings.TrimRight(strings.TrimRight(m, "0"), ".")
	switch m {
	case "1":
		return "10" + superscript(p)
	case "-1":
		return "−10" + superscript(p)
	}
	return minus(m) + "×10" + superscript(p)
}

// isPlain reports whether a tick at v is best labelled without a power of ten.
func isPlain(v float64) bool {
	a := math.Abs(v)
	return v == 0 || a >= 1e-3 && a < 1e3 || a < 1e7 && v == math.Trunc(v)
}

// plainLabel writes v without a power of ten: whole numbers in full, others to three
// digits.
func plainLabel(v float64) string {
	if v == math.Trunc(v) {
		return group(minus(strconv.FormatFloat(v, 'f', 0, 64)))
	}
	return minus(strconv.FormatFloat(v, 'g', 3, 64))
}
