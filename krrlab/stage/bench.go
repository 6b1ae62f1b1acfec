package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Bench provides a stage with its problem, its method and the matrices of both. Each matrix is made once and shared
// with later stages. krrlab.Lab.Run passes a Bench to a stage, and never runs two stages at the same time. With several
// ranks, all ranks call each method together.
type Bench interface {
	// Problem returns the problem, which the stage must not change.
	Problem() *Problem
	// K returns K+λI with the stored kernel matrix K̃. The stage will need extraBytes of memory in addition to K and to
	// the memory that Problem.Memory counts as used. K returns an error if no storage of K fits into the rest of the
	// budget.
	K(ctx context.Context, extraBytes int64) (*Gram, error)
	// Dense returns K in float64, n×n, and a bound of its error in the 2-norm. The stage needs bytesPerEntry·n² bytes
	// in all, including the 8n² of K; if they exceed the memory budget, Dense returns an *accel.MemoryError. With
	// bytesPerEntry = 0 it does not check.
	Dense(ctx context.Context, bytesPerEntry int64) (k *mat.Dense, errorBound float64, err error)
	// Z returns the matrix Z that the approximation specifies, and draws it unless an earlier call did.
	Z(ctx context.Context, approximation Approximation) (*FeatureMatrix, error)
	// M returns the configured preconditioner, or nil for M = I.
	M(ctx context.Context) (pcg.Preconditioner, error)
	// Cached returns the preconditioner M that an earlier call with an equal key built for the same seed and the same
	// K. Otherwise it builds M and caches it, replacing the previous one. A Preconditioner that is expensive to build
	// calls Cached with itself as the key.
	Cached(key any, build func() (pcg.Preconditioner, error)) (pcg.Preconditioner, error)
	// Entry returns the entry with its Value set. It returns an error if the text of the entry is invalid.
	Entry(e Entry) (Entry, error)
	// Make builds the preconditioner of an entry that has a Value. The result is not shared. draw = 0, 1, … selects
	// independent random numbers; 0 gives the preconditioner of the configuration.
	Make(ctx context.Context, e Entry, draw int) (*BuiltPreconditioner, error)
	// Notify reports progress to the monitor of the user. It ends ctx if the monitor returns an error.
	Notify(ctx context.Context, e Event)
}

// Refitter is a Bench that can fit other rows.
type Refitter interface {
	Bench
	// DecisionValues fits train with k and λ by the method of the bench, and returns the decision values of the m rows
	// of test, m×t. It returns an error if the fit does not converge.
	DecisionValues(ctx context.Context, train *datasets.Dataset, k kernel.Kernel, lambda float64,
		test *datasets.Dataset) (*mat.Dense, error)
}

// Problem describes the problem and the method of a bench. The values it points to must not be changed.
type Problem struct {
	Header                    // names, n, d, t, λ, τ and the seed, the first fields of every result
	Kernel  kernel.Kernel     // k(x, z)
	X       points.Points     // n×d; points.Weighted with weights
	Y       *mat.Dense        // the coded targets, n×t
	Coding  datasets.Coding   // coding of the targets
	Train   *datasets.Dataset // training rows, with their points and targets before they are coded
	Comm    comm.Comm         // the ranks; a single process is a group of one
	Memory  accel.Budget      // memory budget, of which X, Y and the vectors of a solve are in use
	MaxIter int               // largest number of iterations of a solve
	Precond string            // name of the configured preconditioner, as in JSON and flags
	Entry   Entry             // configured preconditioner, with its defaults
	// FixedRulePrecond states that Entry is the default for the kernel, because the configuration leaves M to a plan.
	FixedRulePrecond bool
	S                int            // default number of features
	Z                *Approximation // Z of the configured preconditioner; nil: it has none
	// ProcessTimeout is the largest time that another process may take to start, and to answer.
	ProcessTimeout time.Duration
}

// smallSeries is the number of modes of a Fourier series that AffordableSeries accepts for any number of points: its
// factor takes about a second. With a larger value, stages use the series for fewer points.
const smallSeries = 2000

// AffordableSeries returns the result of Series for a stage that has other methods too. Unlike Series, it returns nil
// if the series has more than smallSeries modes and more modes than there are points, because the factorization takes
// about as many multiply-adds as the cube of the number of modes.
func (p *Problem) AffordableSeries() (series *fourier.Series, errorBound float64) {
	if series, errorBound = p.Series(); series != nil && series.Modes() > max(p.N, smallSeries) {
		return nil, 0
	}
	return series, errorBound
}

// Series returns a Fourier series of K by SeriesOf, with a bound of ‖K̃−K‖₂, or nil if there is none.
func (p *Problem) Series() (series *fourier.Series, errorBound float64) {
	x, weights := points.SplitWeights(p.X)
	series, err := p.SeriesOf(p.Kernel, x)
	if err != nil {
		return nil, 0
	}
	return series, SeriesError(series, p.N, weights)
}

// SeriesOf returns the Fourier series (NewSeries) of the kernel k and the points x, without their weights. It returns
// an error if there is no series, if there are several ranks, or if its matrices do not fit into the memory budget.
func (p *Problem) SeriesOf(k kernel.Kernel, x points.Points) (*fourier.Series, error) {
	series, err := NewSeries(k, x)
	if err != nil {
		return nil, err
	}
	if p.Comm.Size() > 1 {
		return nil, errors.New("a Fourier series takes one process, without ranks")
	}
	return series, CheckSeriesMemory(series, p.N, p.T, p.Lambda, p.Memory)
}

// Defaults returns the defaults for the options of a preconditioner of this problem.
func (p *Problem) Defaults() Defaults {
	return Defaults{Kernel: p.Kernel, N: p.N, Lambda: p.Lambda, S: p.S, LambdaP: p.Lambda}
}

// LowRank is a Preconditioner of the form M = ZZᵀ+λ_pI.
type LowRank interface {
	Preconditioner
	Defaulter
	// Approximation returns Z and λ_p of a preconditioner whose defaults are set, for a kernel.
	Approximation(k kernel.Kernel) *Approximation
}

// Approximation specifies Z, n×s, of ZZᵀ ≈ K and the preconditioner ZZᵀ+λ_pI.
type Approximation struct {
	FeatureSource              // method that makes Z
	S             int          // number s of columns of Z
	LambdaP       float64      // ridge λ_p
	Form          precond.Form // form of the inverse
	Spectral      bool         // use the ridge LambdaP + FeatureMatrix.ExtraLambdaP (spectral rule)
}

// FeatureSource is a method that makes Z, n×s.
type FeatureSource interface {
	String() string // description for reports
	// Draw makes Z for the problem of the bench. All ranks call Draw together, and each gets the rows that it owns.
	Draw(ctx context.Context, bench Bench, s int) (*FeatureMatrix, error)
}

// ExtensibleSource is a FeatureSource that can add rows to an existing Z.
type ExtensibleSource interface {
	FeatureSource
	// Extend returns Z for the problem of the bench, whose first rows are those of z. There must be a single process.
	// Extend returns an error with the reason if all of Z must be made again.
	Extend(ctx context.Context, bench Bench, z *FeatureMatrix) (*FeatureMatrix, error)
}

// String describes the method that makes Z, for reports.
func (a *Approximation) String() string {
	if a.Spectral {
		return a.FeatureSource.String() + ", spectral λ_p"
	}
	return a.FeatureSource.String()
}

// Map returns the distribution of the random features in Z, or nil if Z is based on landmarks.
func (a *Approximation) Map() feature.Dist {
	if a == nil {
		return nil
	}
	f, _ := a.FeatureSource.(RandomFeatures)
	return f.Dist
}

// Inverse returns M⁻¹ for M = ZZᵀ+λ_pI. It builds M, unless a previous stage did, and caches it for later stages.
func (a *Approximation) Inverse(ctx context.Context, bench Bench) (*precond.Woodbury, error) {
	m, err := bench.Cached(*a, func() (pcg.Preconditioner, error) {
		z, err := bench.Z(ctx, *a)
		if err != nil {
			return nil, err
		}
		bench.Notify(ctx, Event{Stage: Factor})
		problem := bench.Problem()
		return precond.New(ctx, z.Z, a.LambdaP+z.ExtraLambdaP, &precond.Options{Form: a.Form, RHS: problem.T,
			Fast: true, Comm: problem.Comm})
	})
	woodbury, _ := m.(*precond.Woodbury)
	return woodbury, err
}

// RandomFeatures is the FeatureSource of a Z whose rows are the random features φ(x_i)ᵀ.
type RandomFeatures struct{ feature.Dist }

func (f RandomFeatures) String() string { return f.Dist.String() }

// Draw implements FeatureSource. If the rows are distributed over ranks, each rank computes the rows that it owns.
func (f RandomFeatures) Draw(ctx context.Context, bench Bench, s int) (*FeatureMatrix, error) {
	problem := bench.Problem()
	lo, hi := comm.RowRange(problem.N, precond.RankRows, problem.Comm.Rank(), problem.Comm.Size())
	return f.rows(ctx, bench, s, lo, hi)
}

// Extend implements ExtensibleSource.
func (f RandomFeatures) Extend(ctx context.Context, bench Bench, z *FeatureMatrix) (*FeatureMatrix, error) {
	drawn, err := f.rows(ctx, bench, z.Z.D, z.Z.N, bench.Problem().N)
	if err == nil {
		drawn.Z = points.Concat(z.Z, drawn.Z).(*points.Dense32)
	}
	return drawn, err
}

// rows returns rows lo to hi-1 of Z, n×s.
func (f RandomFeatures) rows(ctx context.Context, bench Bench, s, lo, hi int) (*FeatureMatrix, error) {
	problem := bench.Problem()
	zBytes := 4 * int64(hi-lo) * int64(s)
	if err := problem.Memory.Check(zBytes, fmt.Sprintf("krrlab: Z of n = %d by s = %d", problem.N, s),
		"take fewer features, or allow more by --memory"); err != nil {
		return nil, err
	}
	featureMap, err := feature.SampleWithin(problem.Memory.Reserve(zBytes), f.Dist, problem.D, s,
		rng.New(problem.Seed).Sub("features", 0))
	if err != nil {
		return nil, err
	}
	if dim, features := featureMap.Dims(); dim != problem.D || features != s {
		return nil, fmt.Errorf("krrlab: %v has a map of R^%d to R^%d: want R^%d to R^%d", f.Dist, dim, features,
			problem.D, s)
	}
	z, err := feature.Matrix(ctx, featureMap, problem.X.Slice(lo, hi), Progress(ctx, bench.Notify, Features))
	return &FeatureMatrix{Z: z}, err
}

// FeatureMatrix is a matrix Z that was drawn.
type FeatureMatrix struct {
	Z            *points.Dense32 // Z; on ranks, the rows of this rank
	Factor       *lowrank.Factor // factor with certain bounds if Z is based on landmarks; nil otherwise
	ExtraLambdaP float64         // amount that the spectral rule adds to LambdaP; 0 without that rule
	Seconds      float64         // time for drawing Z
	Text         string          // description of the method, for reports
}

// Operator is A = K+λI for n points. *Gram and *gram.Matrix implement it.
type Operator interface {
	pcg.Operator     // products (K+λI)·src of n×t matrices
	Lambda() float64 // λ
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Gram is K+λI with the stored kernel matrix K̃.
type Gram struct {
	*gram.Matrix
	Seconds float64 // time for forming K
	// Error is a predicted bound of ‖K̃−K'‖₂ for a positive semi-definite K'. K' is K itself, except for a precomputed
	// K, which may be slightly indefinite.
	Error float64
}

// TolFraction is the share of the tolerance τ at which conjugate gradients end. The rest allows for the difference
// between the recursive and the true residual, which would otherwise cause a restart. A smaller value costs iterations.
const TolFraction = 0.97

// MemoryWith returns the memory budget that remains for a stage in addition to K, on the rank with the
// least free memory.
func (p *Problem) MemoryWith(ctx context.Context, k *Gram) (accel.Budget, error) {
	return comm.SmallestBudget(ctx, p.Comm, p.Memory.Reserve(k.Bytes()))
}

// LowRankBytes returns the memory in bytes that a stage needs for Z, n×s: Z in float32, and three s×s matrices in
// float64, which are ZᵀZ, its factor, and the space to form it.
func (p *Problem) LowRankBytes(s int) int64 { return 4*int64(p.N)*int64(s) + 24*int64(s)*int64(s) }

// Progress returns a function that reports the progress of the named part of a stage, and the estimated time left, by
// calling notify. The part starts with the call of Progress.
func Progress(ctx context.Context, notify func(context.Context, Event), name Name) func(completed, total int) {
	start := time.Now()
	return func(completed, total int) {
		event := Event{Stage: name, Done: completed, Total: total, Remaining: -1}
		if completed > 0 {
			event.Remaining = time.Duration(float64(time.Since(start)) * float64(total-completed) / float64(completed))
		}
		notify(ctx, event)
	}
}

// Entry is a preconditioner given by text or by value.
type Entry struct {
	// Text is the name of the preconditioner with its options, as in flags: "nystrom features=500 lambda-p=0.1". A
	// prefix "name=NAME " sets the name for reports.
	Text  string
	Value Preconditioner // nil: the preconditioner that Text describes
}

// maxCommandLength is the largest number of characters that reports show of the command of a process.
const maxCommandLength = 30

// Split returns the name for reports, "" if Text has none, and the rest of Text: the preconditioner's own name with its
// options.
func (e Entry) Split() (name, spec string) {
	if text, ok := strings.CutPrefix(e.Text, "name="); ok {
		name, spec, _ = strings.Cut(text, " ")
		return name, spec
	}
	return "", e.Text
}

// String returns the name for reports: the name that Text sets, or else the name of the preconditioner with its
// options. The command of a process is shortened and has no folders, and only the first two and the last element of a
// long list are shown.
func (e Entry) String() string {
	name, spec := e.Split()
	method, command, hasArgument := strings.Cut(spec, ":")
	switch {
	case name != "":
		return name
	case hasArgument && !strings.Contains(method, " "):
		words := strings.Fields(command)
		for i, word := range words {
			words[i] = word[strings.LastIndex(word, "/")+1:]
		}
		short := []rune(strings.Join(words, " "))
		if len(short) > maxCommandLength {
			short = append(short[:maxCommandLength-1], '…')
		}
		return method + ":" + string(short)
	case spec == "":
		return fmt.Sprint(e.Value)
	}
	words := strings.Fields(spec)
	for i, word := range words {
		if list := strings.Split(word, ","); len(list) > 4 {
			words[i] = fmt.Sprintf("%s,%s,…,%s", list[0], list[1], list[len(list)-1])
		}
	}
	return strings.Join(words, " ")
}

// MarshalText implements encoding.TextMarshaler. It replaces names of files by their contents, because the
// text may be read on another machine. It returns an error for a user-defined preconditioner without text.
func (e Entry) MarshalText() ([]byte, error) {
	if e.Text == "" {
		return nil, fmt.Errorf("the preconditioner %v is a value of Go, which cannot be sent to ranks: name it by text",
			e)
	}
	text, err := schema.ReadLists(e.Text)
	return []byte(text), err
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Entry) UnmarshalText(text []byte) error {
	*e = Entry{Text: string(text)}
	return nil
}

// Entries is a list of entries, each from one occurrence of a flag.
type Entries []Entry

// Set implements flag.Value.
func (e *Entries) Set(text string) error {
	*e = append(*e, Entry{Text: text})
	return nil
}

// String returns the full texts of all entries, the value of a flag for package flag.
func (e Entries) String() string {
	texts := make([]string, len(e))
	for i, entry := range e {
		texts[i] = cmp.Or(entry.Text, entry.String())
	}
	return fmt.Sprint(texts)
}

// BuiltPreconditioner is a preconditioner that was built, with its properties.
type BuiltPreconditioner struct {
	M         pcg.Preconditioner // nil: M = I
	Text      string             // description for reports; "": use the name
	S         int                // rank s: number of features or pivots; 0: none
	LambdaP   float64            // ridge λ_p; 0: M has none
	LambdaMin float64            // lower bound of λ_min(M⁻¹A); 0: unknown
	CondBound float64            // upper bound of κ(M⁻¹A); 0: unknown
	Bytes     int64              // memory of M; 0: unknown
	Seconds   float64            // time for building M, without K
	// BuildFlops and ApplyFlops are the flops for building M and for M⁻¹ times a vector, to first order; 0: unknown.
	BuildFlops, ApplyFlops float64
}
