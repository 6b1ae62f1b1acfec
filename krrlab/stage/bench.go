package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
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
	Header                  // names, n, d, t, λ, τ and the seed, as the result of a stage begins
	Kernel  kernel.Kernel   // k(x, z)
	X       points.Points   // n×d; points.Weighted with weights
	Y       *mat.Dense      // the coded targets, n×t
	Coding  datasets.Coding // of them
	Train   *datasets.Dataset
	Comm    comm.Comm      // the ranks; one alone is a group too
	Memory  int64          // bytes that the stage may take in all, 0: no limit
	Held    int64          // bytes of X, Y and the vectors of a solve
	MaxIter int            // of a solve
	Precond string         // the configured preconditioner, as JSON and flags name it
	Entry   Entry          // it
	Planned bool           // it is the fixed rule's, and Solve takes what Plan chooses
	S       int            // the number of features where none is asked for
	Z       *Approximation // of the configured preconditioner; nil: it has no Z
}

// Approximation says how Z, n×s, of ZZᵀ ≈ K is made, and what the preconditioner ZZᵀ+λ_pI is.
type Approximation struct {
	Method    string // features, nystrom or rpcholesky
	S         int
	LambdaP   float64
	Form      precond.Form
	Features  feature.Dist // of random features; nil: landmarks
	Landmarks []int        // rows of the training points that nystrom takes, the first S of them; nil: drawn
	Spectral  bool         // λ_p is Drawn.More and LambdaP
}

// String says for reports what makes Z.
func (a *Approximation) String() string {
	text := "randomly pivoted Cholesky"
	switch {
	case a.Features != nil:
		return a.Features.String()
	case a.Method == "features": // of a kernel that is not known yet
		return "random features"
	case len(a.Landmarks) > 0:
		text = "given landmarks"
	case a.Method == "nystrom":
		text = "Nyström landmarks"
	}
	if a.Spectral {
		text += ", spectral λ_p"
	}
	return text
}

// Drawn is a Z.
type Drawn struct {
	Z       *points.Dense32 // on ranks the rows of this one
	Low     *lowrank.Factor // of landmarks: what is certain of it; nil otherwise
	More    float64         // what λ_p has more than LambdaP, where it is spectral
	Seconds float64         // that it took
	Text    string          // what made it, for reports
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

// Left returns the bytes that are left to a stage beside K, 0 for no limit.
func (p *Problem) Left(k *Gram) int64 {
	if p.Memory == 0 {
		return 0
	}
	return max(1, p.Memory-p.Held-k.Bytes())
}

// Bytes returns what a stage holds of Z, n×s: that in float32, ZᵀZ, its factor, and room to form it.
func (p *Problem) Bytes(s int) int64 { return 4*int64(p.N)*int64(s) + 24*int64(s)*int64(s) }

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

// ProcessPrefix begins the name of a preconditioner that is another process; its command follows.
const ProcessPrefix = "process:"

// Entry names a preconditioner of the laboratory.
type Entry struct {
	// Text is its name and its options, as flags have them: "nystrom features=500 lambda-p=0.1". "name=NAME " before them
	// is the name for reports.
	Text  string
	Value any // the krrlab.Preconditioner; nil: what Text says
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
	command, ok := strings.CutPrefix(spec, ProcessPrefix)
	switch {
	case name != "":
		return name
	case ok:
		words := strings.Fields(command)
		for i, w := range words {
			words[i] = w[strings.LastIndex(w, "/")+1:]
		}
		short := []rune(strings.Join(words, " "))
		if len(short) > maxCommand {
			short = append(short[:maxCommand-1], '…')
		}
		return ProcessPrefix + string(short)
	case spec == "":
		return fmt.Sprint(e.Value)
	}
	return spec
}

// optionLabels writes the options of preconditioners as pictures do.
var optionLabels = strings.NewReplacer(" features=", ", s = ", " lambda-p=", ", λ_p = ", " neighbors=", ", k = ",
	" damping=", ", ω = ", " spectral=true", ", spectral")

// Label returns what pictures call the preconditioner that reports call so, such as "Nyström, s = 500" for "nystrom
// features=500".
func Label(name string) string {
	method, _, _ := strings.Cut(name, " ")
	label, ok := map[string]string{"features": "random features", "nystrom": "Nyström", "rpcholesky": "RPCholesky",
		"vecchia": "sparse inverse"}[method]
	if !ok {
		return name
	}
	return label + optionLabels.Replace(name[len(method):])
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

// Comparer is the options of a stage that iterates with preconditioners side by side, each product with K serving all:
// first with none, then with each of the entries, to a relative residual, Problem.MaxIter iterations at most.
type Comparer interface {
	Compare(ctx context.Context, b Bench, with Entries, to float64) ([]Compared, error)
}

// Compared is what a Comparer tells of a preconditioner.
type Compared struct {
	Name      string
	S         int
	LambdaP   float64
	Build     float64   // seconds of making it
	Each      float64   // seconds of an iteration for all right-hand sides
	Residuals []float64 // relative, after 0, 1, … iterations
	Why       string    // it failed
}

// Made is a preconditioner that was made.
type Made struct {
	M         pcg.Preconditioner // nil: M = I
	Text      string             // what made it, for reports; "" for its name
	S         int                // rank
	LambdaP   float64            // 0: it has none
	LambdaMin float64            // a lower bound of λ_min(M⁻¹A), 0 if none is known
	Certain   float64            // an upper bound of κ(M⁻¹A), likewise
	Bytes     int64              // that it holds, as far as it says so
	Seconds   float64            // that it took, without K
	// flops of making it and of M⁻¹ times a vector, to the first order; 0 where they are not known
	BuildFlops, ApplyFlops float64
}
