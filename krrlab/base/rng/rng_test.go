package rng_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

var update = flag.Bool("update", false,
	"rewrite testdata/streams.golden: every seeded result of the project changes with it")

// TestKnownAnswers compares the generator with the vectors published with Random123 (kat_vectors, philox4x32 10).
func TestKnownAnswers(t *testing.T) {
	for _, test := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		testkit.Equal(t, rng.Philox4x32(test.ctr, test.key), test.want, test.ctr, test.key)
	}
	// The root stream of a seed is the generator with the seed as key.
	words := rng.Philox4x32([4]uint32{7, 1}, [2]uint32{0x89abcdef, 0x01234567})
	stream := rng.New(0x0123456789abcdef)
	if got, want := stream.Uint64(2<<32+14), uint64(words[1])<<32|uint64(words[0]); got != want {
		t.Errorf("even word %016x, want %016x", got, want)
	}
	if got, want := stream.Uint64(2<<32+15), uint64(words[3])<<32|uint64(words[2]); got != want {
		t.Errorf("odd word %016x, want %016x", got, want)
	}
}

// TestRecordedStreams compares the streams with recorded values: words exactly, and numbers that depend on math.Log and
// math.Sincos to 12 digits.
func TestRecordedStreams(t *testing.T) {
	var text bytes.Buffer
	for _, test := range []struct {
		name   string
		stream rng.Stream
	}{
		{"New(0)", rng.New(0)},
		{"New(1)", rng.New(1)},
		{"New(1).Sub(features)", rng.New(1).Sub("features")},
		{"New(1).Sub(features, 0)", rng.New(1).Sub("features", 0)},
		{"New(1).Sub(features, 0, 2).Sub(phase)", rng.New(1).Sub("features", 0, 2).Sub("phase")},
		{"New(2^64-1).Sub(a name of more than sixteen bytes, 2^64-1)",
			rng.New(1<<64-1).Sub("a name of more than sixteen bytes", 1<<64-1)},
	} {
		fmt.Fprintf(&text, "%s\n", test.name)
		for _, i := range []uint64{0, 1, 2, 1 << 40, 1<<64 - 1} {
			fmt.Fprintf(&text, "  %d: word %016x uniform %v int %d normal %.12g chi-square(5) %.12g gamma(0.3) %.12g\n",
				i, test.stream.Uint64(i), test.stream.Float64(i), test.stream.IntN(i, 1000), test.stream.Normal(i),
				test.stream.ChiSquare(i, 5),
				test.stream.Gamma(i, 0.3))
		}
		fmt.Fprintf(&text, "  perm %v\n", test.stream.Perm(12))
	}
	const file = "testdata/streams.golden"
	if *update {
		testkit.OK(t, os.MkdirAll("testdata", 0o777))
		testkit.OK(t, os.WriteFile(file, text.Bytes(), 0o666))
	}
	want := testkit.Must(os.ReadFile(file))
	got := bytes.Split(text.Bytes(), []byte("\n"))
	for i, line := range bytes.Split(want, []byte("\n")) {
		if i >= len(got) || !bytes.Equal(got[i], line) {
			t.Fatalf("%s:%d: recorded\n%s\nnow\n%s", file, i+1, line, got[min(i, len(got)-1)])
		}
	}
}

// TestSlicesOfNumbers compares slices with single calls for every parity of start and length.
func TestSlicesOfNumbers(t *testing.T) {
	s := rng.New(5).Sub("fills")
	for _, first := range []uint64{0, 1, 6, 7, 1<<64 - 3} {
		for n := range 7 {
			x, u := make([]float64, n), make([]float64, n)
			s.Normals(x, first)
			s.Float64s(u, first)
			for k := range n {
				if i := first + uint64(k); x[k] != s.Normal(i) || u[k] != s.Float64(i) {
					t.Fatalf("first %d, length %d, element %d: %v, %v, want %v, %v", first, n, k, x[k], u[k],
						s.Normal(i), s.Float64(i))
				}
			}
		}
	}
}

// TestDistinctStreams checks that different paths give different streams, also paths that a careless encoding would
// confuse.
func TestDistinctStreams(t *testing.T) {
	root := rng.New(1)
	paths := []rng.Stream{
		root, rng.New(2), root.Sub(""), root.Sub("", 0), root.Sub("", 0, 0), root.Sub("").Sub(""), root.Sub("a"),
		root.Sub("a", 0),
		root.Sub("a", 1), root.Sub("b"),
		root.Sub("a").Sub("b"), root.Sub("b").Sub("a"), root.Sub("ab"), root.Sub("a\x00"), root.Sub("a\x00\x00"),
		root.Sub("\x00a"),
		root.Sub("a", 1, 2), root.Sub("a", 2, 1),
		root.Sub("a", 1).Sub("", 2), root.Sub("abcdefgh"), root.Sub("abcdefgh", 0), root.Sub("abcdefghi"),
		root.Sub("a", 'b'),
		root.Sub("a", 'b', 0), rng.New(2).Sub("a"),
	}
	for i := range uint64(20000) {
		paths = append(paths, root.Sub("a", 200+i), root.Sub("a", 0, i), rng.New(3+i), rng.New(3+i).Sub("a"))
	}
	seen := make(map[rng.Stream]int)
	for i, s := range paths {
		if j, ok := seen[s]; ok {
			t.Errorf("paths %d and %d are the same stream", j, i)
		}
		seen[s] = i
	}
	testkit.Equal(t, root.Sub("a", 1, 2), rng.New(1).Sub("a", 1, 2))
}

// TestIntNUniform checks that IntN is uniform where a modulus without rejection would be biased, and that invalid
// arguments of IntN, Perm and Gamma panic.
func TestIntNUniform(t *testing.T) {
	s := rng.New(4)
	// For n = 3·2⁶¹, 2⁶⁴/n = 8/3: without rejection a number would come from three words or from two, depending on
	// its residue mod 3. For 30,000 draws σ is 82, and the threshold of 5σ is exceeded with probability 6e-7 for each
	// of the six counts.
	n := 3 << (strconv.IntSize - 3)
	const draws = 30000
	var third, residue [3]int
	for i := range uint64(draws) {
		v := s.IntN(i, n)
		third[v/(n/3)]++
		residue[v%3]++
	}
	for k := range 3 {
		for name, v := range map[string]int{"third": third[k], "residue": residue[k]} {
			testkit.Near(t, float64(v), draws/3, 5*math.Sqrt(draws*2/9.), name, k, n, v, draws)
		}
	}
	for i := range uint64(100) {
		if s.IntN(i, 1) != 0 {
			t.Fatal("IntN(i, 1) is not 0")
		}
	}
	testkit.Panics(t, map[string]func(){
		"IntN(0)": func() { s.IntN(0, 0) }, "Perm(-1)": func() { s.Perm(-1) }, "Gamma(0)": func() { s.Gamma(0, 0) },
		"Gamma(NaN)": func() { s.Gamma(0, math.NaN()) }, "Gamma(Inf)": func() { s.Gamma(0, math.Inf(1)) },
	})
}

// TestNoAllocation checks that streams and their numbers allocate nothing.
func TestNoAllocation(t *testing.T) {
	s := rng.New(7)
	buf := make([]float64, 33)
	testkit.Equal(t, testing.AllocsPerRun(100, func() {
		g := s.Sub("a", 1, 2)
		g.Normals(buf, 1)
		g.Float64s(buf, 3)
		sink += g.Gamma(3, 0.5) + g.ChiSquare(2, 4) + g.Float64(9) + g.Normal(2) + float64(g.Uint64(3)) +
			float64(g.IntN(3, 3<<(strconv.IntSize-3)))
	}), 0)
}

// sink takes results, so that the compiler does not remove their computation.
var sink float64

func Example() {
	g := rng.New(42).Sub("features")
	w := make([]float64, 4)
	g.Sub("frequencies").Normals(w, 0)
	// Any element alone, in any order, is the same number.
	fmt.Println(g.Sub("frequencies").Normal(3) == w[3])
	// Output: true
}
