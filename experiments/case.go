package experiments

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel"
)

// resultVersion is a part of the key of every case. It is raised when the same case would
// give other numbers, so that results kept from before are not taken for new ones.
const resultVersion = 1

// Method is the way a case is solved.
type Method string

const (
	PCG            Method = "pcg"             // Algorithm 1 of the paper: random features of width S, ridge LambdaP
	BlockPCG       Method = "block-pcg"       // the same, all right-hand sides in one Krylov space
	CG             Method = "cg"              // conjugate gradients without a preconditioner
	Direct         Method = "direct"          // dense Cholesky factorization of K+λI
	RandomFeatures Method = "random-features" // ridge regression on S random features, exact normal equations
	ADMM           Method = "admm"            // block ADMM on S random features, Loss
	PrecondForm    Method = "precond-form"    // set up and apply (ZZᵀ+λ_pI)⁻¹ in the form Form
)

// Case is one thing to measure, as data. Cases that are equal are run once, whichever
// experiments ask for them. Zero values mean the defaults named.
type Case struct {
	Data    string      `json:"data"`               // name in package datasets; empty for PrecondForm
	N       int         `json:"n,omitempty"`        // the first n training rows; default: all
	TestN   int         `json:"test_n,omitempty"`   // the first test rows; default: all
	Kernel  kernel.Spec `json:"kernel"`             // k(x, z)
	Lambda  float64     `json:"lambda,omitempty"`   // λ
	Method  Method      `json:"method"`             //
	S       int         `json:"s,omitempty"`        // features or centers
	LambdaP float64     `json:"lambda_p,omitempty"` // λ_p; default: λ
	Tol     float64     `json:"tol,omitempty"`      // τ
	MaxIter int         `json:"max_iter,omitempty"` // default: 1000
	Storage string      `json:"storage,omitempty"`  // of K, as gram.ParseStorage; default: auto
	Form    string      `json:"form,omitempty"`     // of (ZZᵀ+λ_p·I)⁻¹, as precond.ParseForm; default: the cheapest
	Loss    string      `json:"loss,omitempty"`     // of ADMM: square, hinge or logistic
	Rhos    RhoGrid     `json:"rhos,omitzero"`      // that ADMM's ρ is chosen from; default: rhoGrid
	Trial   int         `json:"trial,omitempty"`    // iterations each of Rhos is given; default: rhoTrial
	T       int         `json:"t,omitempty"`        // of PrecondForm: right-hand sides
	Repeat  int         `json:"repeat,omitempty"`   // independent preconditioners, the median answer kept; default: 1
	Seed    uint64      `json:"seed"`               // all random numbers are a function of it
	// CountOnly leaves out the test: for further seeds, of which only iterations and
	// seconds are wanted.
	CountOnly bool `json:"count_only,omitempty"`
	// Nested, for RandomFeatures, solves the case together with those that differ in S only,
	// as leading columns of one draw: errors for little more than the largest S takes, and
	// no seconds of its own. TensorSketches are stacked of those of the smaller S, so that what a
	// case gives depends on the cases it is solved with.
	Nested bool `json:"nested,omitempty"`
}

// RhoGrid are the values that ADMM's ρ is chosen from.
type RhoGrid [5]float64

// Key names the case: the data set, the method, and the first 64 bits of the SHA-256 of its
// JSON and resultVersion, in hexadecimal.
func (c Case) Key() string {
	js, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("experiments: a case is not JSON: %v", err)) // a NaN in it
	}
	sum := sha256.Sum256(fmt.Appendf(js, "\nversion %d", resultVersion))
	name := cmp.Or(c.Data, "none")
	return fmt.Sprintf("%s-%s-%s", name, c.Method, hex.EncodeToString(sum[:8]))
}

// String describes the case in one line.
func (c Case) String() string {
	var b strings.Builder
	if c.Data != "" {
		b.WriteString(c.Data + ", ")
	}
	if c.N > 0 {
		fmt.Fprintf(&b, "n = %d, ", c.N)
	}
	return b.String() + c.settings()
}

// settings describes what is done with the data, in one line.
func (c Case) settings() string {
	parts := []string{string(c.Method)}
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.Loss != "", "%s loss", c.Loss)
	add(c.S > 0, "s = %d", c.S)
	add(c.LambdaP > 0, "λ_p = %g", c.LambdaP)
	add(c.Form != "", "form %s", c.Form)
	add(c.T > 0, "t = %d", c.T)
	add(c.Tol > 0, "τ = %g", c.Tol)
	add(c.Repeat > 1, "%d preconditioners", c.Repeat)
	add(c.Nested, "nested")
	add(true, "seed %d", c.Seed)
	return strings.Join(parts, ", ")
}
