package text

import (
	"fmt"
	"math"
	"testing"
)

// TestRuns checks which characters are raised and lowered. The wanted texts list the runs with their levels: 1 for a
// superscript, −1 for a subscript.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		text, want string
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
		if got := fmt.Sprint(Runs(c.text)); got != c.want {
			t.Errorf("Runs(%q) = %s, want %s", c.text, got, c.want)
		}
	}
}

// TestScripts checks subscripts and superscripts in Unicode characters and in HTML.
func TestScripts(t *testing.T) {
	for _, c := range []struct{ text, flat, markup string }{
		{"λ_p, λ_max(M_k⁻¹A)", "λₚ, λₘₐₓ(Mₖ⁻¹A)", "λ<sub>p</sub>, λ<sub>max</sub>(M<sub>k</sub>⁻¹A)"},
		{"‖Z_kZ_kᵀ−K‖₂", "‖ZₖZₖᵀ−K‖₂", "‖Z<sub>k</sub>Z<sub>k</sub>ᵀ−K‖₂"},
		{"‖e‖_A < x^{k-1}", "‖e‖_A < x^{k−1}", "‖e‖<sub>A</sub> &lt; x<sup>k−1</sup>"},
		{"cal_housing_2 & s_λ", "cal_housing_2 & s_λ", "cal_housing_2 &amp; s<sub>λ</sub>"},
	} {
		if got := Flat(c.text); got != c.flat {
			t.Errorf("Flat(%q) = %q, want %q", c.text, got, c.flat)
		}
		if got := Markup(c.text); got != c.markup {
			t.Errorf("Markup(%q) = %q, want %q", c.text, got, c.markup)
		}
	}
}

// TestCompact checks which numbers have a power of ten.
func TestCompact(t *testing.T) {
	for v, want := range map[float64]string{1e-3: "10⁻³", 2.5e-4: "2.5×10⁻⁴", 0.1: "0.1", 20: "20", -1e5: "−10⁵",
		0: "0", 1e10: "10¹⁰", 1: "1", 1234.5: "1234", 9999.9: "10⁴", math.Inf(-1): "−∞", math.Copysign(0, -1): "0"} {
		if got := Compact(v); got != want {
			t.Errorf("Compact(%g) = %q, want %q", v, got, want)
		}
	}
}

// TestPlain checks that numbers are written without a power of ten, with three significant digits or all digits
// before the point.
func TestPlain(t *testing.T) {
	for v, want := range map[float64]string{1234.5: "1234", 0.00001234: "0.0000123", -0.00002: "−0.00002", 999.7: "1000",
		12345.6: "12,346", 1e15: "1,000,000,000,000,000", 100: "100", 99.96: "100", 0.25: "0.25", -2.5: "−2.5",
		3e-3: "0.003", math.Inf(1): "∞", math.NaN(): "NaN"} {
		if got := Plain(v); got != want {
			t.Errorf("Plain(%g) = %q, want %q", v, got, want)
		}
	}
	if got := PlainWithin(1e-5, -6, 3); got != "0.00001" {
		t.Errorf("PlainWithin(1e-5) = %q, want 0.00001", got)
	}
}
