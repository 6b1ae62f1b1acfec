package precond

import (
	"fmt"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestNotDefinite checks that the error for a singular matrix of order 3 names the pivot, the trace and a sufficient
// λ_p, and that a definite matrix of order 2 has the right factor.
func TestNotDefinite(t *testing.T) {
	w := &Woodbury{s: 3, lambdaP: 1e-30, factor: []float64{4, 0, 0, 4, 4, 0, 2, 2, 9}}
	err := w.factorize(t.Context(), w.localGram())
	want := fmt.Sprintf("pivot 2 of 3, 0, is not positive, at λ_p = 1e-30 and tr ZᵀZ = 17; take λ_p above s·2⁻⁵²·tr "+
		"ZᵀZ = %.3g,", 3*17*0x1p-52)
	testkit.Fails(t, err, want)
	w = &Woodbury{s: 2, lambdaP: 5, factor: []float64{4, 7, 6, 8}} // ZᵀZ+λ_pI = [9 6; 6 13] has L = [3 0; 2 3]
	if err := w.factorize(t.Context(), w.localGram()); err != nil || w.factor[0] != 3 || w.factor[1] != 0 ||
		w.factor[2] != 2 || w.factor[3] != 3 {
		t.Errorf("L = %v, %v", w.factor, err)
	}
}
