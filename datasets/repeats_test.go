package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// answerKind says whether the answers of a randomTable are the values of a function or their signs.
type answerKind bool

const (
	asNumbers answerKind = false
	asClasses answerKind = true
)

// randomTable returns n rows. columns draw the features, and answer is a function of the features of a row.
func randomTable(n int, answer func(x []float64) float64, kind answerKind, columns ...func() float64) *Dataset {
	x := points.NewDense(n, len(columns), nil)
	d := &Dataset{Name: "table", X: x}
	for i := range n {
		for j, draw := range columns {
			x.Row(i)[j] = draw()
		}
		d.Target = append(d.Target, answer(x.Row(i)))
	}
	if kind == asClasses {
		d.Task, d.Labels = Classification, []string{"no", "yes"}
		for _, y := range d.Target {
			class := 0
			if y > 0 {
				class = 1
			}
			d.Class = append(d.Class, class)
		}
		d.Target = nil
	}
	return d
}

// TestCopies checks that the rule auto distinguishes copies of a record from independent rows with equal features, in
// ten draws of each kind of table.
func TestCopies(t *testing.T) {
	var random *rand.Rand
	normal := func() float64 { return random.NormFloat64() }
	category := func(k int) func() float64 { return func() float64 { return float64(random.IntN(k)) } }
	rounded := func() float64 { return math.Round(50 * random.NormFloat64()) }
	zeros := func() float64 { return max(0, math.Round(3*random.NormFloat64()-2)) }
	zipf := func() float64 { return math.Floor(math.Pow(1-random.Float64(), -3)) }
	rain := func() float64 { return max(0, random.NormFloat64()-0.3) }
	noiselessAnswer := func(x []float64) (s float64) {
		for j, v := range x {
			s += math.Sin(3*v + float64(j))
		}
		return s
	}
	noisyAnswer := func(x []float64) float64 { return noiselessAnswer(x) + random.NormFloat64() }
	countAnswer := func(x []float64) float64 { return max(0, math.Round(noisyAnswer(x))) }
	withCopies := func(d *Dataset, share float64) *Dataset { // appends copies of the given share of the rows
		n := d.Len()
		rows := random.Perm(n)
		return d.Subset(append(rows, rows[:int(share*float64(n))]...))
	}
	resample := func(d *Dataset) *Dataset { // draws as many rows with replacement
		rows := make([]int, d.Len())
		for i := range rows {
			rows[i] = random.IntN(len(rows))
		}
		return d.Subset(rows)
	}
	oversample := func(d *Dataset) *Dataset { // draws from the last tenth of the rows until it has half of all rows
		rows := random.Perm(450)
		for range 450 {
			rows = append(rows, 450+random.IntN(50))
		}
		return d.Subset(rows)
	}
	// pairs has two rows with the features of each row of d. Labels change with the probability 1−agree.
	withPairs := func(d *Dataset, agree float64) *Dataset {
		n := d.Len()
		d = d.Subset(append(random.Perm(n), random.Perm(n)...))
		for i := range n {
			if random.Float64() > agree {
				d.Class[i] = 1 - d.Class[i]
			}
		}
		return d
	}
	withNames := func(d *Dataset) *Dataset { // adds the hashes of a dropped column of unique names
		d.unusedHashes = [][]uint64{make([]uint64, d.Len())}
		for i := range d.unusedHashes[0] {
			d.unusedHashes[0][i] = random.Uint64()
		}
		return d
	}
	// identifiedTwice is someTwice for rows with names, which are copied too.
	withNamesAndCopies := func(d *Dataset, share float64) *Dataset {
		names := d.unusedHashes[0]
		out := withCopies(&Dataset{Task: d.Task, X: d.X, Class: d.Class, Labels: d.Labels, Target: d.Target,
			bestErrors: rowNumbers(d.Len())}, share)
		out.unusedHashes = [][]uint64{make([]uint64, out.Len())}
		for i, row := range out.bestErrors {
			out.unusedHashes[0][i] = names[int(row)]
		}
		return out
	}
	for _, c := range []struct {
		name   string
		copies int // number of rows that are copies of an earlier one, or −1 if this number is random
		make   func() *Dataset
	}{
		{"categories, noisy answers", 0, func() *Dataset {
			return randomTable(500, noisyAnswer, asNumbers, category(5), category(5))
		}},
		{"categories, noisy classes", 0, func() *Dataset {
			return randomTable(500, noisyAnswer, asClasses, category(5), category(5))
		}},
		{"categories, classes without noise", 0, func() *Dataset {
			return randomTable(600, noiselessAnswer, asClasses, category(12), category(12))
		}},
		{"categories, answers without noise", 0, func() *Dataset {
			return randomTable(600, noiselessAnswer, asNumbers, category(12), category(12))
		}},
		{"doses without noise", 0, func() *Dataset {
			return randomTable(300, noiselessAnswer, asClasses, category(20))
		}},
		{"sex and class", 0, func() *Dataset {
			return randomTable(891, noisyAnswer, asClasses, category(2), category(3))
		}},
		{"ratings", 0, func() *Dataset {
			return randomTable(500, countAnswer, asNumbers, category(5), category(5), category(5), category(5))
		}},
		{"Zipf column, noisy", 0, func() *Dataset { return randomTable(500, noisyAnswer, asClasses, zipf) }},
		{"Zipf column without noise", 0, func() *Dataset {
			return randomTable(500, noiselessAnswer, asClasses, zipf, category(4))
		}},
		{"counts with many zeros", 0, func() *Dataset {
			return randomTable(500, countAnswer, asNumbers, zeros, zeros, zeros)
		}},
		{"rain at three places", 0, func() *Dataset {
			return randomTable(500, rainAnswer, asNumbers, rain, rain, rain)
		}},
		{"pairs, 82 % agree", 0, func() *Dataset {
			return withPairs(randomTable(150, noiselessAnswer, asClasses, normal, normal), 0.82)
		}},
		{"pairs, one feature", 0, func() *Dataset {
			return withPairs(randomTable(150, noiselessAnswer, asClasses, normal), 0.82)
		}},
		{"pairs, noisy answers", 0, func() *Dataset {
			d := withCopies(randomTable(150, noisyAnswer, asNumbers, normal, normal), 1)
			for i := range d.Target {
				d.Target[i] += normal()
			}
			return d
		}},
		{"names left out", 0, func() *Dataset {
			return withNames(randomTable(400, noisyAnswer, asClasses, category(3), category(4)))
		}},
		{"numbers, 10 % twice", 50, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asNumbers, normal, normal), 0.1)
		}},
		{"numbers, 30 % twice", 150, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asClasses, normal, normal), 0.3)
		}},
		{"one number, 30 % twice", 150, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asClasses, normal), 0.3)
		}},
		{"numbers, all twice", 500, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asClasses, normal, normal), 1)
		}},
		{"numbers, drawn again", -1, func() *Dataset {
			return resample(randomTable(500, noisyAnswer, asClasses, normal, normal, normal))
		}},
		{"minority drawn again", -1, func() *Dataset {
			return oversample(randomTable(500, noisyAnswer, asClasses, normal, normal))
		}},
		{"rounded numbers, 20 % twice", 100, func() *Dataset {
			return withCopies(randomTable(500, countAnswer, asNumbers, rounded, rounded, rounded, rounded), 0.2)
		}},
		{"categories, all twice", 500, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asClasses, category(3), category(4)), 1)
		}},
		{"categories and numbers as answers, 20 % twice", 100, func() *Dataset {
			return withCopies(randomTable(500, noisyAnswer, asNumbers, category(5), category(5)), 0.2)
		}},
		{"names left out, 20 % twice", 80, func() *Dataset {
			return withNamesAndCopies(withNames(randomTable(400, noisyAnswer, asClasses, category(3), category(4))),
				0.2)
		}},
	} {
		for seed := range uint64(10) {
			random = rand.New(rand.NewPCG(seed, 1))
			d := c.make()
			r := d.Grouping(nil)
			if c.copies >= 0 && r.Grouped != c.copies || c.copies < 0 && r.Grouped != r.Repeated ||
				r.RowKind != RowKindNew {
				t.Errorf("%s, draw %d: %d of %d rows are grouped, want %d: %v", c.name, seed, r.Grouped, r.Repeated,
					c.copies, &r.Repeats)
			}
		}
	}
}

// rainAnswer is an answer that is 0 if all features are 0.
func rainAnswer(x []float64) float64 { return 2*x[0] + x[1] + x[2]*x[0] }

// rowNumbers returns the numbers 0, …, n−1.
func rowNumbers(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}

// TestReadRepeats checks that a column of groups is not a feature, that a dropped column distinguishes rows unless it
// only counts them, and that parts of the data and packed data keep the groups.
func TestReadRepeats(t *testing.T) {
	var text, twice strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "%d,p%d,w%d,%d\n", i, i%7, i%20, i%2)
	}
	for i := range 80 { // 40 records, which no feature tells apart
		fmt.Fprintf(&twice, "%d,q%d,%d,%d\n", i, i%40, i%4, i%2)
	}
	read := func(text string, options ReadOptions) *Dataset {
		options.Header, options.Task, options.Target = "no", "classification", "3"
		return must(Read(strings.NewReader(text), "t.csv", &options))
	}
	d := read(text.String(), ReadOptions{Drop: []string{"2"}, Groups: "1"})
	train, test, err := d.Holdout(0.3, 1)
	if err != nil || d.Dim() != 1 || d.Repeats.Grouped != 33 || test.Overlap(train) != test.Len()-3 {
		t.Errorf("%v: %+v, %d of %d", err, d.Repeats, test.Overlap(train), test.Len())
	}
	if got := d.Repeats.String(); !strings.HasPrefix(got, "33 rows are in the group of an earlier one") {
		t.Errorf("no two rows have equal features, and 33 are in the group of an earlier one: %s", got)
	}
	different := (&Dataset{X: points.NewDense(2, 1, nil), Target: []float64{1, 2}}).GroupBy([]int{0, 1})
	if got := different.Repeats.String(); !strings.HasSuffix(got, ": they are of different groups") {
		t.Errorf("equal rows of two groups: %s", got)
	}
	if p := must(unpackFolder(packedFolder(t, d), 0)).Train; p.Fingerprint() != d.Fingerprint() || *p.Repeats != *d.Repeats {
		t.Errorf("packed: %+v", p.Repeats)
	}
	for want, options := range map[int]ReadOptions{40: {Drop: []string{"0", "1"}}, 76: {Drop: []string{"0", "1"},
		Repeats: "together"},
		0: {Drop: []string{"0", "1"}, Repeats: "apart"}} {
		if d := read(twice.String(), options); d.Repeats.Grouped != want {
			t.Errorf("rule %q: %+v, want %d rows in groups", options.Repeats, d.Repeats, want)
		}
	}
	// The rows of a test file may lack weights that those of the fit have.
	weighted := &Dataset{X: points.NewDense(4, 1, []float64{1, 2, 3, 1}), Target: []float64{1, 2, 3, 1}, Weights: []float64{1, 2, 3, 1}}
	unweighted := &Dataset{X: points.NewDense(2, 1, []float64{1, 2}), Target: []float64{1, 2}}
	if got := unweighted.Overlap(weighted); got != 2 {
		t.Errorf("%d rows without weights are copies of rows with weights, want 2", got)
	}
	unweighted.Weights = []float64{1, 5}
	if got := unweighted.Overlap(weighted); got != 1 {
		t.Errorf("%d rows of equal weight are copies, want 1", got)
	}
	// A test file has its own groups, or none. A row without a group is a group of its own.
	for file, grouped := range map[string]int{"g,x,y\nu,1,1\nu,2,0\nv,3,1\n": 1, "g,x,y\nu,1,1\nu,2,0\n,3,1\n,4,1\n": 1, "x,y\n1,1\n2,0\n3,1\n": 0} {
		options := ReadOptions{Groups: "g", Columns: []string{"x"}, Dim: 1, Target: "y", Task: "regression",
			TestPart: true}
		if d, err := Read(strings.NewReader(file), "t.csv", &options); err != nil || d.Repeats.Grouped != grouped ||
			(d.Repeats.Rule == "groups") != (grouped > 0) {
			t.Errorf("%q: %+v, %v, want %d rows in groups", file, d, err, grouped)
		}
		if options.Groups = "0"; grouped == 0 { // the column of a feature is not that of the groups
			if d := must(Read(strings.NewReader(file), "t.csv", &options)); d.Repeats.Rule != "auto" {
				t.Errorf("%q: %+v, want the rule auto", file, d.Repeats)
			}
		}
		if options.Groups, options.TestPart = "g", false; grouped == 0 {
			_, err := Read(strings.NewReader(file), "t.csv", &options)
			wantError(t, err, "groups: no column")
		}
	}
	if _, err := Read(strings.NewReader(text.String()), "t.csv", &ReadOptions{Groups: "1", Repeats: "apart"}); err == nil {
		t.Error("groups and a rule")
	}
}
