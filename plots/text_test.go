package plots

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		in, want string
	}{
		{"10⁻³", "[{10 0} {−3 1}]"},
		{"ZZᵀ+λₚI", "[{ZZ 0} {T 1} {+λ 0} {p -1} {I 0}]"},
		{"s_λ(K)", "[{s 0} {λ -1} {(K) 0}]"},
		{"x_test a_bc", "[{x_test a_bc 0}]"},
		{"λ_{max}^{k-1}", "[{λ 0} {max -1} {k−1 1}]"},
		{"ZZᵀ+λ_pI", "[{ZZ 0} {T 1} {+λ 0} {p -1} {I 0}]"},
		{"s_{λ_p}(Z)", "[{s 0} {λp -1} {(Z) 0}]"},
		{"β_values λ_p_1 Größe_x a_bC X_train", "[{β_values λ_p_1 Größe_x a_bC X_train 0}]"},
		{"_a b^ c_{", "[{_a b^ c_{ 0}]"},
		{"", "[]"},
	} {
		if got := fmt.Sprint(runs(c.in)); got != c.want {
			t.Errorf("runs(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

// TestScripts: subscripts in HTML are elements, and in names the characters of Unicode where it has them.
func TestScripts(t *testing.T) {
	for _, c := range []struct{ in, flat, markup string }{
		{"λ_p, λ_max(M_k⁻¹A)", "λₚ, λₘₐₓ(Mₖ⁻¹A)", "λ<sub>p</sub>, λ<sub>max</sub>(M<sub>k</sub>⁻¹A)"},
		{"‖Z_kZ_kᵀ−K‖₂", "‖ZₖZₖᵀ−K‖₂", "‖Z<sub>k</sub>Z<sub>k</sub>ᵀ−K‖₂"},
		{"‖e‖_A < x^{k-1}", "‖e‖_A < x^{k−1}", "‖e‖<sub>A</sub> &lt; x<sup>k−1</sup>"},
		{"cal_housing_2 & s_λ", "cal_housing_2 & s_λ", "cal_housing_2 &amp; s<sub>λ</sub>"},
	} {
		if got := flat(c.in); got != c.flat {
			t.Errorf("flat(%q) = %q, want %q", c.in, got, c.flat)
		}
		if got := markup(c.in); got != c.markup {
			t.Errorf("markup(%q) = %q, want %q", c.in, got, c.markup)
		}
	}
	if got := PreHTML("λ_max  4\n x_y  λ_p\n"); got != `<pre style="white-space:pre;overflow-x:auto">`+
		"λₘₐₓ   4\n x<sub>y</sub>  λ<sub>p</sub>\n</pre>\n" {
		t.Error(got)
	}
}

func TestScientific(t *testing.T) {
	for v, want := range map[float64]string{1e-3: "10⁻³", 2.5e-4: "2.5×10⁻⁴", 0.1: "0.1", 20: "20", -1e5: "−10⁵",
		0: "0", 1e10: "10¹⁰", 1: "1"} {
		if got := scientific(v); got != want {
			t.Errorf("scientific(%g) = %q, want %q", v, got, want)
		}
	}
}

func labels(ts []plot.Tick) (out []string) {
	for _, t := range ts {
		if t.Label != "" {
			out = append(out, t.Label)
		}
	}
	return out
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		log    bool
		want   string
	}{
		{0, 60, 6, false, "0 10 20 30 40 50 60"},
		{-0.31, 0.31, 5, false, "−0.2 0 0.2"},
		{0, 60000, 4, false, "0 20,000 40,000 60,000"},
		{0, 4.1e7, 2, false, "0 2×10⁷ 4×10⁷"},
		{0, 1e-5, 2, false, "0 0.5×10⁻⁵ 1.0×10⁻⁵"},
		{8e-4, 1.2, 7, true, "10⁻³ 10⁻² 10⁻¹ 10⁰"},
		{1e-9, 1, 4, true, "10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 10⁰"},
		{4, 45, 6, true, "5 10 20"},
		{1.2e-6, 6e-6, 6, true, "2×10⁻⁶ 3×10⁻⁶ 4×10⁻⁶ 5×10⁻⁶ 6×10⁻⁶"},
		{1, 1.05, 5, true, "1.00 1.01 1.02 1.03 1.04 1.05"},
	} {
		ts := linearTicks(c.lo, c.hi, c.n)
		if c.log {
			ts = logTicks(c.lo, c.hi, c.n)
		}
		if got := strings.Join(labels(ts), " "); got != c.want {
			t.Errorf("ticks of [%g, %g]: %v, want %v", c.lo, c.hi, got, c.want)
		}
		for _, k := range ts {
			if k.Value < c.lo-1e-9*math.Abs(c.lo) || k.Value > c.hi+1e-9*math.Abs(c.hi) {
				t.Errorf("tick %g outside [%g, %g]", k.Value, c.lo, c.hi)
			}
		}
	}
}
