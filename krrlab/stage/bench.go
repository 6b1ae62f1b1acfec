package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Bench is what a stage works with: a problem and a method as plain numbers, and the matrices of both, each of them
// made once and held for the stages that follow. krrlab.Lab.Run gives one to a stage, and no two stages one at a time.
// On ranks all of them call each method together.
type Bench interface {
	Problem() *Problem
	// K returns K+λI as it is stored, where the stage holds beside bytes in addition to it and to what Problem.Held
	// counts. It fails where no storage fits into the memory.
	K(ctx context.Context, beside int64) (*Gram, error)
	// Dense returns K in float64, n×n, and a bound of its error in the 2-norm. It fails by a *TooLarge where
	// bytes for each entry, those of K among them, exceed the memory; 0 leaves that to the caller.
	Dense(ctx context.Context, bytes int64) (k *mat.Dense, off float64, err error)
	// Z draws the Z that a specifies, or returns it where it was drawn before.
	Z(ctx context.Context, a Approximation) (*Drawn, error)
	// M returns the configured preconditioner, nil for M = I.
	M(ctx context.Context) (pcg.Preconditioner, error)
	// Hold returns the M that an earlier call with an equal key made, as it is for this seed and this K, or makes it and
	// holds it, in place of the one before. A Preconditioner that is expensive to make calls it, with itself as the key.
	Cached(key any, made func() (pcg.Preconditioner, error)) (pcg.Preconditioner, error)
	// Entry gives an entry that is a text its value, or says what is wrong with the text.
	Entry(e Entry) (Entry, error)
	// Make makes the preconditioner of an entry with a value, for the caller alone, of draw 0, 1, …; 0 is what the
	// configuration would make.
	Make(ctx context.Context, e Entry, draw int) (*Made, error)
	// Tell reports progress, and ends ctx where the receiver wants the stage to end.
	Tell(ctx context.Context, e Event)
}

// Problem is the problem of a bench and its method. What it points to is not to be changed.
type Problem struct {
	Header                    // names, n, d, t, λ, τ and the seed, as the result of a stage begins
	Kernel    kernel.Kernel   // k(x, z)
	X         points.Points   // n×d; points.Weighted with weights
	Y         *mat.Dense      // the coded targets, n×t
	Coding    datasets.Coding // of them
	Train     *datasets.Dataset
	Comm      comm.Comm      // the ranks; one alone is a group too
	Memory    int64          // bytes that the stage may take in all, 0: no limit
	HeldBytes int64          // bytes of X, Y and the vectors of a solve
	MaxIter   int            // of a solve
	Precond   string         // the configured preconditioner, as JSON and flags name it
	Entry     Entry          // it, with its defaults in place
	Planned   bool           // it is the fixed rule's, and Solve takes what Plan chooses
	S         int            // the number of features where none is asked for
	Z         *Approximation // of the configured preconditioner; nil: it has no Z
	// ProcessTimeout is how long another process may take to be ready, and to answer.
	ProcessTimeout time.Duration
}

// Defaults returns those of a preconditioner.
func (p *Problem) Defaults() Defaults {
	return Defaults{Kernel: p.Kernel, N: p.N, Lambda: p.Lambda, S: p.S, LambdaP: p.Lambda}
}

// LowRank is a Preconditioner M = ZZᵀ+λ_pI.
type LowRank interface {
	Preconditioner
	Settler
	// Approximation returns what a settled one comes down to, for a kernel.
	Approximation(k kernel.Kernel) *Approximation
}

// Approximation says how Z, n×s, of ZZᵀ ≈ K is made, and what the preconditioner ZZᵀ+λ_pI is.
type Approximation struct {
	Source   // makes Z
	S        int
	LambdaP  float64
	Form     precond.Form
	Spectral bool // λ_p is Drawn.More and LambdaP
}

// Source makes Z, n×s.
type Source interface {
	String() string // what makes it, for reports
	Draw(ctx context.Context, b Bench, s int) (*Drawn, error)
}

// String says for reports what makes Z.
func (a *Approximation) String() string {
	if a.Spectral {
		return a.Source.String() + ", spectral λ_p"
	}
	return a.Source.String()
}

// Map returns the distribution of the random features that Z consists of; nil: it is of landmarks.
func (a *Approximation) Map() feature.Dist {
	if a == nil {
		return nil
	}
	f, _ := a.Source.(RandomFeatures)
	return f.Dist
}

// Inverse returns M⁻¹, held for the stages that follow.
func (a *Approximation) Inverse(ctx context.Context, b Bench) (*precond.Woodbury, error) {
	m, err := b.Cached(*a, func() (pcg.Preconditioner, error) {
		z, err := b.Z(ctx, *a)
		if err != nil {
			return nil, err
		}
		b.Tell(ctx, Event{Stage: Factor})
		p := b.Problem()
		return precond.New(ctx, z.Z, a.LambdaP+z.ExtraLambdaP, &precond.Options{Form: a.Form, RHS: p.T, Fast: true,
			Comm: p.Comm})
	})
	w, _ := m.(*precond.Woodbury)
	return w, err
}

// RandomFeatures is the Source of a Z whose rows are φ(x_i)ᵀ.
type RandomFeatures struct{ feature.Dist }

func (f RandomFeatures) String() string { return f.Dist.String() }

// Draw implements Source. On ranks each maps the rows that are its own.
func (f RandomFeatures) Draw(ctx context.Context, b Bench, s int) (*Drawn, error) {
	p := b.Problem()
	lo, hi := comm.Rows(p.N, precond.RankRows, p.Comm.Rank(), p.Comm.Size())
	if need := 4 * int64(hi-lo) * int64(s); p.Memory > 0 && need > p.Memory {
		return nil, fmt.Errorf("krrlab: Z of n = %d by s = %d needs %s, the limit is %s: take fewer features", p.N, s,
			accel.Bytes(need), accel.Bytes(p.Memory))
	}
	m, err := f.Sample(p.D, s, rng.New(p.Seed).Sub("features", 0))
	if err != nil {
		return nil, err
	}
	if from, to := m.Dims(); from != p.D || to != s {
		return nil, fmt.Errorf("krrlab: %v has a map of R^%d to R^%d: want R^%d to R^%d", f.Dist, from, to, p.D, s)
	}
	z, err := feature.Matrix(ctx, m, p.X.Slice(lo, hi), Progress(ctx, b.Tell, Features))
	return &Drawn{Z: z}, err
}

// Drawn is a Z.
type Drawn struct {
	Z            *points.Dense32 // on ranks the rows of this one
	Factor       *lowrank.Factor // of landmarks: what is certain of it; nil otherwise
	ExtraLambdaP float64         // what λ_p has more than LambdaP, where it is spectral
	Seconds      float64         // that it took
	Text         string          // what made it, for reports
}

// Gram is K+λI as it is stored.
type Gram struct {
	*gram.Matrix
	Seconds float64 // that it took
	// Error bounds ‖K_stored−K'‖₂, as predicted, for a positive semi-definite K': K itself, but where K is given.
	Error float64
}

// TooLarge says that work on K in float64 does not fit the memory.
type TooLarge struct{ Need, Limit int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s, the limit is %s", accel.Bytes(e.Need), accel.Bytes(e.Limit))
}

// Aim is the share of τ that conjugate gradients aim at, so that rounding does not cost a restart.
const Aim = 0.97

// FreeBytes returns the bytes that are left to a stage beside K, 0 for no limit.
func (p *Problem) FreeBytes(k *Gram) int64 {
	if p.Memory == 0 {
		return 0
	}
	return max(1, p.Memory-p.HeldBytes-k.Bytes())
}

// LowRankBytes returns what a stage holds of Z, n×s: that in float32, ZᵀZ, its factor, and room to form it.
func (p *Problem) LowRankBytes(s int) int64 { return 4*int64(p.N)*int64(s) + 24*int64(s)*int64(s) }

// Progress returns a function that tells the share of a part that is done, and the time left.
func Progress(ctx context.Context, tell func(context.Context, Event), part Name) func(done, total int) {
	start := time.Now()
	return func(done, total int) {
		e := Event{Stage: part, Done: done, Total: total, Remaining: -1}
		if done > 0 {
			e.Remaining = time.Duration(float64(time.Since(start)) * float64(total-done) / float64(done))
		}
		tell(ctx, e)
	}
}

// Entry names a preconditioner of the laboratory.
type Entry struct {
	// Text is its name and its options, as flags have them: "nystrom features=500 lambda-p=0.1". "name=NAME " before them
	// is the name for reports.
	Text  string
	Value Preconditioner // nil: what Text says
}

// maxCommand is the largest number of characters of a process's command in reports.
const maxCommand = 30

// Split returns the name for reports, "" if Text has none, and the preconditioner's own name with its options.
func (e Entry) Split() (name, spec string) {
	if rest, ok := strings.CutPrefix(e.Text, "name="); ok {
		name, spec, _ = strings.Cut(rest, " ")
		return name, spec
	}
	return "", e.Text
}

// String returns the name for reports: that of Text, else its options, and of a process the beginning of its command
// without folders.
func (e Entry) String() string {
	name, spec := e.Split()
	method, command, ok := strings.Cut(spec, ":")
	switch {
	case name != "":
		return name
	case ok && !strings.Contains(method, " "):
		words := strings.Fields(command)
		for i, w := range words {
			words[i] = w[strings.LastIndex(w, "/")+1:]
		}
		short := []rune(strings.Join(words, " "))
		if len(short) > maxCommand {
			short = append(short[:maxCommand-1], '…')
		}
		return method + ":" + string(short)
	case spec == "":
		return fmt.Sprint(e.Value)
	}
	return spec
}

// MarshalText implements encoding.TextMarshaler. A user-defined preconditioner has no text.
func (e Entry) MarshalText() ([]byte, error) {
	if e.Text == "" {
		return nil, fmt.Errorf("the preconditioner %v is a value of Go, which cannot be sent to ranks: name it by text",
			e)
	}
	return []byte(e.Text), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Entry) UnmarshalText(text []byte) error {
	*e = Entry{Text: string(text)}
	return nil
}

// Entries are some, each given by a flag of its own.
type Entries []Entry

// Set implements flag.Value.
func (e *Entries) Set(text string) error {
	*e = append(*e, Entry{Text: text})
	return nil
}

func (e Entries) String() string { return fmt.Sprint([]Entry(e)) }

// Made is a preconditioner that was made.
type Made struct {
	M         pcg.Preconditioner // nil: M = I
	Text      string             // what made it, for reports; "" for its name
	S         int                // rank
	LambdaP   float64            // 0: it has none
	LambdaMin float64            // a lower bound of λ_min(M⁻¹A), 0 if none is known
	CondBound float64            // an upper bound of κ(M⁻¹A), likewise
	Bytes     int64              // that it holds, as far as it says so
	Seconds   float64            // that it took, without K
	// flops of making it and of M⁻¹ times a vector, to the first order; 0 where they are not known
	BuildFlops, ApplyFlops float64
}
