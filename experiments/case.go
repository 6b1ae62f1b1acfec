package experiments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel"
)

// ResultVersion is a part of the key of every case. It is raised when the same case would
// give other numbers, so that results kept from before are not taken for new ones.
const ResultVersion = 1

// Method is the way a case is solved.
type Method string

const (
	PCG            Method = "pcg"             // Algorithm 1 of the paper: random features of width S, ridge LambdaP
	BlockPCG       Method = "block-pcg"       // the same, all right-hand sides in one Krylov space
	CG             Method = "cg"              // conjugate gradients without a preconditioner
	Direct         Method = "direct"          // dense Cholesky factorisation of K+λI
	RandomFeatures Method = "random-features" // ridge regression on S random features, exact normal equations
	ADMM           Method = "admm"            // block ADMM on S random features, Loss
	Falkon         Method = "falkon"          // Nyström restricted regression with S centres by preconditioned CG
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
	S       int         `json:"s,omitempty"`        // features or centres
	LambdaP float64     `json:"lambda_p,omitempty"` // λ_p; default: λ
	Tol     float64     `json:"tol,omitempty"`      // τ
	MaxIter int         `json:"max_iter,omitempty"` // default: 1000
	Storage string      `json:"storage,omitempty"`  // of K, as gram.ParseStorage; default: auto
	Form    string      `json:"form,omitempty"`     // of (ZZᵀ+λ_pI)⁻¹, as precond.ParseForm; default: the cheapest
	Loss    string      `json:"loss,omitempty"`     // of ADMM: square, hinge or logistic
	T       int         `json:"t,omitempty"`        // of PrecondForm: right-hand sides
	Repeat  int         `json:"repeat,omitempty"`   // independent preconditioners, the median answer kept; default: 1
	Seed    uint64      `json:"seed"`               // all random numbers are a function of it
	// CountOnly leaves out the test: for further seeds, of which only iterations and
	// seconds are wanted.
	CountOnly bool `json:"count_only,omitempty"`
}

// Key names the case: the data set, the method, and the first 64 bits of the SHA-256 of its
// JSON and ResultVersion, in hexadecimal.
func (c Case) Key() string {
	js, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("experiments: a case that is no JSON: %v", err)) // a NaN in it
	}
	sum := sha256.Sum256(fmt.Appendf(js, "\nversion %d", ResultVersion))
	name := c.Data
	if name == "" {
		name = "none"
	}
	return fmt.Sprintf("%s-%s-%s", name, c.Method, hex.EncodeToString(sum[:8]))
}

// String describes the case in one line.
func (c Case) String() string {
	var b strings.Builder
	add := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, args...)
	}
	if c.Data != "" {
		add("%s", c.Data)
	}
	if c.N > 0 {
		add("n = %d", c.N)
	}
	add("%s", c.Method)
	if c.Loss != "" {
		add("%s loss", c.Loss)
	}
	if c.S > 0 {
		add("s = %d", c.S)
	}
	if c.LambdaP > 0 {
		add("λ_p = %g", c.LambdaP)
	}
	if c.Form != "" {
		add("form %s", c.Form)
	}
	if c.T > 0 {
		add("t = %d", c.T)
	}
	if c.Tol > 0 {
		add("τ = %g", c.Tol)
	}
	add("seed %d", c.Seed)
	return b.String()
}
