package race_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/race"
)

// TestForecast compares forecasts with what geometric sequences do, and with the formula.
func TestForecast(t *testing.T) {
	for _, c := range []struct {
		rate float64
		k    int
	}{{0.5, 4}, {0.5, 9}, {0.9, 20}, {0.99, 300}} {
		var r []float64
		for j := range c.k + 1 {
			r = append(r, math.Pow(c.rate, float64(j)))
		}
		tol := math.Pow(c.rate, float64(c.k)+17)
		low, mid, high := race.Forecast(r, tol)
		f := 1 + 8/float64(c.k)
		if math.Abs(mid-17) > 1e-9*17 || math.Abs(low*f-17) > 1e-6 || math.Abs(high/f-17) > 1e-6 {
			t.Errorf("rate %g after %d: %g iterations left in [%g, %g], want 17, by %g", c.rate, c.k, mid, low, high, f)
		}
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		r    []float64
		want [3]float64
	}{
		"none":       {[]float64{1}, [3]float64{0, inf, inf}},
		"few":        {[]float64{1, 0.1}, [3]float64{0, 2, inf}},
		"flat":       {[]float64{1, 1, 1, 1, 1}, [3]float64{inf, inf, inf}},
		"rising":     {[]float64{1, 2, 3, 4, 5}, [3]float64{inf, inf, inf}},
		"done":       {[]float64{1, 1e-1, 1e-3}, [3]float64{0, 0, 0}},
		"there once": {[]float64{1, 1e-4, 1e-1, 1, 1, 1}, [3]float64{0, 0, 0}},
		"least":      {[]float64{1, 0.1, 0.5, 0.01, 0.02}, [3]float64{1 / 3.0, 1, 3}}, // from r_2, of which 0.1 is the least so far, to 0.01
	} {
		low, mid, high := race.Forecast(c.r, 1e-3)
		if name == "least" { // ln 10 in 2 iterations, ln 10 to go
			c.want = [3]float64{2.0 / 3, 2, 6}
		}
		for i, v := range []float64{low, mid, high} {
			if v != c.want[i] && !(math.Abs(v-c.want[i]) < 1e-9) {
				t.Errorf("%s: %v, want %v", name, []float64{low, mid, high}, c.want)
				break
			}
		}
	}
}

func ran(name string, k int, rate, build, solve float64) race.Standing {
	s := race.Standing{Name: name, Phase: race.Running, Iterations: k, Build: build, Solve: solve, Residuals: []float64{1}, Spent: solve * float64(k)}
	for j := range k {
		s.Residuals = append(s.Residuals, math.Pow(rate, float64(j+1)))
	}
	return s
}

func waiting(build, solve, expected float64) race.Standing {
	return race.Standing{Name: "waiting", Build: build, Solve: solve, Expected: expected, Times: 1}
}

// TestDecide: decisions by costs given, without a clock.
func TestDecide(t *testing.T) {
	resting := ran("b", 20, 0.5, 1, 0.1)
	resting.Phase = race.Resting
	back := ran("b", 10, 0.88, 1, 0.4)
	back.Phase, back.Spent = race.Resting, 1
	out := ran("b", 3, 0.9, 1, 0.1)
	out.Phase = race.Out
	plateau, beyond := ran("b", 20, 0.99, 1, 0), ran("b", 61, 0.99, 1, 0) // some 670 iterations left, as forecast
	plateau.Expected, beyond.Expected = 40, 40
	still := ran("b", 4, 1, 1, 0)
	still.Expected = 40
	for name, c := range map[string]struct {
		field []race.Standing
		want  race.Choice
		lost  bool
	}{
		"nothing is known":                           {[]race.Standing{ran("none", 1, 0.9, 0, 0), waiting(1, 0.1, 5)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"building pays":                              {[]race.Standing{ran("none", 8, 0.99, 0, 0), waiting(1, 0.1, 20)}, race.Choice{Leader: 0, Run: []int{0}, Build: 1}, false},
		"the sooner is built":                        {[]race.Standing{ran("none", 8, 0.99, 0, 0), waiting(9, 0.1, 20), waiting(1, 0.1, 25)}, race.Choice{Leader: 0, Run: []int{0}, Build: 2}, false},
		"building does not pay":                      {[]race.Standing{ran("none", 40, 0.8, 0, 0), waiting(10, 0.1, 1)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1, Over: true}, false},
		"not before it has run for a share of that":  {[]race.Standing{ran("none", 8, 0.9999, 0, 0), waiting(1000, 0.1, 1)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"the slow one rests":                         {[]race.Standing{ran("none", 40, 0.99, 0, 0), ran("b", 10, 0.5, 1, 0.1)}, race.Choice{Leader: 1, Run: []int{1}, Build: -1, Over: true}, false},
		"a new one gets its chance":                  {[]race.Standing{ran("none", 40, 0.9, 0, 0), ran("b", 3, 0.99, 1, 0.1)}, race.Choice{Leader: 0, Run: []int{0, 1}, Build: -1}, false},
		"its M is dear":                              {[]race.Standing{ran("none", 40, 0.95, 0, 0), ran("b", 10, 0.9, 1, 50)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1, Over: true}, false},
		"one that stalls is not waited for":          {[]race.Standing{ran("none", 40, 1, 0, 0), resting}, race.Choice{Leader: 1, Run: []int{1}, Build: -1, Over: true}, false},
		"one that rested is as good":                 {[]race.Standing{ran("none", 20, 0.9, 0, 0), back}, race.Choice{Leader: 0, Run: []int{0, 1}, Build: -1}, false},
		"it has had its share":                       {[]race.Standing{ran("none", 20, 0.9, 0, 0), ran("b", 10, 0.88, 1, 0.4)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1, Over: true}, false},
		"a share of the iterations is everyone's":    {[]race.Standing{ran("none", 200, 0.99, 0, 0), ran("b", 5, 1, 1, 0.4)}, race.Choice{Leader: 0, Run: []int{0, 1}, Build: -1}, false},
		"going on is free":                           {[]race.Standing{ran("none", 10, 0.9, 0, 0), waiting(50, 0.1, 1)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"going on is lost":                           {[]race.Standing{ran("none", 10, 0.9, 0, 0), waiting(50, 0.1, 1)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1, Over: true}, true},
		"it may well be faster":                      {[]race.Standing{ran("none", 8, 0.9, 0, 0), waiting(50, 0.1, 1)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"it may do as it is expected to":             {[]race.Standing{plateau, waiting(41, 0, 20)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"it did not do as it was expected to":        {[]race.Standing{beyond, waiting(41, 0, 20)}, race.Choice{Leader: 0, Run: []int{0}, Build: 1}, false},
		"neither do the others":                      {[]race.Standing{plateau, waiting(5, 0, 33)}, race.Choice{Leader: 0, Run: []int{0}, Build: -1}, false},
		"what stands still may do as it is expected": {[]race.Standing{ran("none", 8, 0.99, 0, 0), still, waiting(5, 0, 45)}, race.Choice{Leader: 0, Run: []int{0, 1}, Build: -1}, false},
		"one at a time":                              {[]race.Standing{ran("none", 20, 1, 0, 0), ran("b", 2, 0.9, 1, 0.1), waiting(1, 0.1, 1)}, race.Choice{Leader: 1, Run: []int{0, 1}, Build: -1}, false},
		"both stall":                                 {[]race.Standing{ran("none", 40, 1, 0, 0), ran("b", 10, 1, 1, 0.1)}, race.Choice{Leader: 0, Run: []int{0, 1}, Build: -1}, false},
		"one is out":                                 {[]race.Standing{ran("none", 40, 0.9, 0, 0), out}, race.Choice{Leader: 0, Run: []int{0}, Build: -1, Over: true}, false},
		"all that ran are out":                       {[]race.Standing{out, waiting(5, 1, 0), waiting(1, 1, 0)}, race.Choice{Leader: -1, Build: 2}, false},
		"all are out":                                {[]race.Standing{out, out}, race.Choice{Leader: -1, Build: -1}, false},
	} {
		got := race.Decide(race.Terms{Tol: 1e-3, Product: 1, Kept: !c.lost}, c.field)
		if got.Leader != c.want.Leader || got.Build != c.want.Build || got.Over != c.want.Over || !slices.Equal(got.Run, c.want.Run) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestExpected: without a pilot, twice the root of what M = I is predicted.
func TestExpected(t *testing.T) {
	rate := math.Pow(1e-3, 1.0/100)
	field := []race.Standing{ran("none", 50, rate, 0, 0), waiting(1, 0.5, 0)}
	race.Decide(race.Terms{Tol: 1e-3, Product: 2}, field)
	if got := field[1]; math.Abs(got.Left-20) > 1e-9 || math.Abs(got.Seconds-51) > 1e-8 {
		t.Errorf("%g iterations, %g s; want 20, 51", got.Left, got.Seconds)
	}
	if got := field[0]; math.Abs(got.Left-50) > 1e-9 || math.Abs(got.Seconds-100) > 1e-8 {
		t.Errorf("M = I: %g iterations, %g s; want 50, 100", got.Left, got.Seconds)
	}
}

// TestExpectedOfMany: where M = I stands still, by 1,000 iterations of it, and once one is built at least half of
// its; Times as many where that is said.
func TestExpectedOfMany(t *testing.T) {
	field := []race.Standing{ran("none", 8, 1, 0, 0), waiting(1, 0.5, 0), waiting(1, 0.5, 0)}
	field[2].Times = 2
	root := 2 * math.Sqrt(1000)
	for i, built := range []race.Standing{{Phase: race.Out}, ran("b", 50, math.Pow(1e-3, 1.0/200), 1, 1)} {
		field := append(slices.Clone(field), built)
		race.Decide(race.Terms{Tol: 1e-3, Product: 2}, field)
		if want := []float64{root, 100}[i]; math.Abs(field[1].Left-want) > 1e-9 || math.Abs(field[2].Left-2*want) > 1e-9 {
			t.Errorf("%d: %g and %g iterations, want %g and twice that", i, field[1].Left, field[2].Left, want)
		}
	}
}

// TestNeverLost runs random races by Decide alone, in each of which one runner converges and the others halt
// above τ, rise, hardly move or fail: that one is done in the end, whatever the others looked like before.
func TestNeverLost(t *testing.T) {
	const tol, most = 1e-6, 400 // iterations
	for seed := range uint64(200) {
		g := rand.New(rand.NewPCG(seed, 1))
		count := 2 + g.IntN(4)
		good := g.IntN(count)
		field, next := make([]race.Standing, count), make([]func(k int) float64, count)
		product := math.Exp(g.NormFloat64())
		for i := range field {
			field[i] = waiting(10*g.Float64(), g.Float64(), float64(g.IntN(3))*20*g.Float64())
			rate, floor, end := 1-math.Exp(-1-2*g.Float64()), math.Exp(-10*g.Float64()), 1+g.IntN(60)
			switch kind := g.IntN(4); {
			case i == good:
				bump := g.Float64()
				next[i] = func(k int) float64 { return math.Pow(rate, float64(k)) * (1 + bump*math.Sin(float64(k))) }
			case kind == 0: // fast, and then no more
				next[i] = func(k int) float64 { return floor + math.Pow(rate/2, float64(k)) }
			case kind == 1:
				next[i] = func(k int) float64 { return 1 + float64(k) }
			case kind == 2: // ever slower
				next[i] = func(k int) float64 { return 1/(1+math.Log1p(float64(k))) + tol }
			default: // fast, and it fails
				next[i] = func(k int) float64 {
					if k == end {
						return math.NaN()
					}
					return max(2*tol, math.Pow(rate/2, float64(k)))
				}
			}
		}
		enter := func(s *race.Standing) { s.Phase, s.Residuals = race.Running, []float64{1} }
		field[0].Build = 0
		enter(&field[0])
		for steps := 0; field[good].Phase != race.Done; steps++ {
			c := race.Decide(race.Terms{Tol: tol, Product: product, Kept: seed%2 == 0}, field)
			if c.Build >= 0 {
				enter(&field[c.Build])
				continue
			}
			if lead := c.Leader; c.Over && math.IsInf(field[lead].Seconds, 1) {
				t.Fatalf("seed %d: over, and number %d, which leads, stands still", seed, lead)
			}
			if len(c.Run) == 0 || steps > count*most {
				t.Fatalf("seed %d: nothing runs (%+v), and number %d is %v after %d iterations", seed, c, good, field[good].Phase, field[good].Iterations)
			}
			for _, i := range c.Run {
				s := &field[i]
				s.Iterations++
				r := next[i](s.Iterations)
				s.Residuals, s.Spent = append(s.Residuals, r), s.Spent+s.Solve
				switch {
				case r <= tol:
					s.Phase = race.Done
				case math.IsNaN(r) || s.Iterations == most:
					s.Phase = race.Out
				}
			}
		}
	}
}

func TestPhaseText(t *testing.T) {
	for p := race.Waiting; p <= race.Out; p++ {
		text, err := json.Marshal(p)
		var back race.Phase
		if err != nil || json.Unmarshal(text, &back) != nil || back != p {
			t.Errorf("%v: %s, back %v, %v", p, text, back, err)
		}
	}
	var p race.Phase
	if err := p.UnmarshalText([]byte("flying")); err == nil {
		t.Error("flying is a phase")
	}
	if s := race.Phase(9).String(); s != "unknown (9)" {
		t.Error(s)
	}
}
