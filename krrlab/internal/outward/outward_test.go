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

// TestDownAndUp checks, for special and random numbers and 1 to 6 digits, that Down and Up print a lower and an upper
// bound of the number, and that the two bounds differ by at most one unit of the last digit. UpE must print the same
// number as Up.
func TestDownAndUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	values := []float64{0, 1, -1, 1500, 9.9996, 9.9994, 99999.6, -9.9996, 0.1, 1e-300, math.MaxFloat64 / 2, math.Inf(1),
		math.Inf(-1)}
	for range 10000 {
		values = append(values, rnd.NormFloat64()*math.Pow(10, float64(rnd.IntN(40)-20)))
	}
	// The computed logarithm of numbers next to these powers is an integer.
	for _, power := range []float64{1e-25, 1e23, 1e46} {
		for v, k := math.Nextafter(power, 0), 0; k < 8; v, k = math.Nextafter(v, math.Inf(1)), k+1 {
			values = append(values, v, -v)
		}
	}
	for _, v := range values {
		for digits := 1; digits <= 6; digits++ {
			lo, loErr := strconv.ParseFloat(Down(v, digits), 64)
			hi, hiErr := strconv.ParseFloat(Up(v, digits), 64)
			// lo and hi are rounded to float64, which the last term allows for.
			unit := math.Abs(v) * (math.Pow(10, 1-float64(digits))*(1+1e-12) + 0x1p-51)
			if up, err := strconv.ParseFloat(UpE(v, digits), 64); err != nil || up != hi {
				t.Fatalf("%v in %d digits: %s, %s", v, digits, UpE(v, digits), Up(v, digits))
			}
			if loErr != nil || hiErr != nil || lo > v || hi < v || hi-lo > unit {
				t.Errorf("%v in %d digits: [%s, %s]", v, digits, Down(v, digits), Up(v, digits))
			}
		}
	}
}

// TestNearMaxFloat64 checks bounds of numbers that would round to more than the largest float64 number.
func TestNearMaxFloat64(t *testing.T) {
	testkit.Equal(t, Down(1.797e308, 2)+" "+Down(math.MaxFloat64, 1)+" "+Up(-1.797e308, 2), "1.7e+308 1e+308 -1.7e+308")
	testkit.Equal(t, Up(1.797e308, 2)+" "+Down(-1.797e308, 2), "1.8e+308 -1.8e+308")
}

// TestThousandsSeparators checks numbers, spans and lists that are printed with separators of thousands. Very small and
// very large numbers have exponents, and a list that contains such separators is itself separated by semicolons.
func TestThousandsSeparators(t *testing.T) {
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

// TestPercent checks that no percentage has an exponent, not even one of 100 % or more.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{1: "100 %", 0.99709: "100 %", 12.34: "1200 %", 0.0354: "3.5 %",
		0: "0 %"} {
		testkit.Equal(t, Percent(share, 2), want, share)
	}
}
