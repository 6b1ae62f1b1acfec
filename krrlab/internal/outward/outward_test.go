package outward

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

func Example() {
	fmt.Printf("κ in %s\n", Span(135188.7, 150003.9, 4))
	// Output: κ in [1.351e+05, 1.501e+05]
}

// TestOutward: what is printed bounds the number, and is less than one unit of the last digit from it.
func TestOutward(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	values := []float64{0, 1, -1, 1500, 9.9996, 9.9994, 99999.6, -9.9996, 0.1, 1e-300, math.MaxFloat64 / 2, math.Inf(1),
		math.Inf(-1)}
	for range 10000 {
		values = append(values, r.NormFloat64()*math.Pow(10, float64(r.IntN(40)-20)))
	}
	for _, power := range []float64{1e-25, 1e23, 1e46} { // the logarithm of the next numbers is rounded to an integer
		for v, k := math.Nextafter(power, 0), 0; k < 8; v, k = math.Nextafter(v, math.Inf(1)), k+1 {
			values = append(values, v, -v)
		}
	}
	for _, v := range values {
		for digits := 1; digits <= 6; digits++ {
			lo, e1 := strconv.ParseFloat(Down(v, digits), 64)
			hi, e2 := strconv.ParseFloat(Up(v, digits), 64)
			unit := math.Abs(v) * (math.Pow(10, 1-float64(digits))*(1+1e-12) + 0x1p-51) // lo and hi are rounded
			if up, err := strconv.ParseFloat(UpE(v, digits), 64); err != nil || up != hi {
				t.Fatalf("%v in %d digits: %s, %s", v, digits, UpE(v, digits), Up(v, digits))
			}
			if e1 != nil || e2 != nil || lo > v || hi < v || hi-lo > unit {
				t.Errorf("%v in %d digits: [%s, %s]", v, digits, Down(v, digits), Up(v, digits))
			}
		}
	}
}

// TestLargest: numbers that round to more than the largest float64 are bounded, too.
func TestLargest(t *testing.T) {
	testkit.Equal(t, Down(1.797e308, 2)+" "+Down(math.MaxFloat64, 1)+" "+Up(-1.797e308, 2), "1.7e+308 1e+308 -1.7e+308")
	testkit.Equal(t, Up(1.797e308, 2)+" "+Down(-1.797e308, 2), "1.8e+308 -1.8e+308")
}

func TestPlain(t *testing.T) {
	for v, want := range map[float64]string{
		63312.4: "63,310", 0.10061: "0.1006", 1234: "1234", 12345.6: "12,350", 0: "0", -98765.4: "-98,770",
		1.5e-7: "1.5e-07", 123456789: "123,500,000",
		2.5e9: "2.5e+09", 0.00012345: "0.0001234", 9999.9: "10,000", math.Inf(1): "+Inf",
	} {
		testkit.Equal(t, Plain(v, 4), want, v)
	}
	testkit.Equal(t, PlainSpan(45761.2, 47436.1, 4), "[45,760, 47,440]")
	testkit.Equal(t, PlainList([]float64{63312, 0.5}, 4)+" "+PlainList([]float64{6, 0.5}, 4), "63,310; 0.5 6, 0.5")
}

// TestPercent: no share of 100 % or more has an exponent.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100 %", 0.99709: "100 %", 12.34: "1200 %", 0.0354: "3.5 %", 0: "0 %"} {
		testkit.Equal(t, Percent(share, 2), want, share)
	}
}
