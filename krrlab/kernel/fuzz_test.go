package kernel

import "testing"

// FuzzParse: no text makes Parse panic, and what it takes is a kernel that String writes back.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"gaussian(sigma=8.5)", "polynomial(gamma=0.01, coef0=1, degree=3)", " matern32( sigma = 1e-3 )", "laplacian(sigma=0x1p-3)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(k.String())
		if err != nil || again != k {
			t.Errorf("%q: %v, then %v, %v", s, k, again, err)
		}
		if err := Validate(k); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}
