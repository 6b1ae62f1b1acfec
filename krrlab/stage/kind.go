package stage

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// Preconditioner specifies a preconditioner M ≈ K+λI, with which conjugate gradients solve M⁻¹(K+λI)C = M⁻¹Y. It is a
// value such as recipe.Nystrom{S: 500}; any type with these methods can be one.
//
// Optional methods provide more: Defaulter sets defaults, KernelPreconditioner, FactorPreconditioner and LowRank
// describe how M is built, and package cost has the methods that plans need. The result of Make may have methods, too:
// NormalTo (lanczos.Metric) gives both ends of the spectrum of M⁻¹(K+λI); Bytes() int64, Rank() int, Description()
// string (default: that of String) and Flops() (build, apply float64) are shown in reports.
type Preconditioner interface {
	// String describes M in a few words, for reports.
	String() string
	// Make builds M, n×n, for the problem of the bench, or returns nil for M = I. All its random numbers must depend on
	// the seed alone. If several ranks share the work, all of them call Make together.
	Make(ctx context.Context, bench Bench) (pcg.Preconditioner, error)
}

// Defaulter is a Preconditioner with defaults.
type Defaulter interface {
	// WithDefaults returns the preconditioner with zero options replaced by their defaults, or an error for invalid
	// options.
	WithDefaults(d Defaults) (Preconditioner, error)
}

// ExtensiblePreconditioner is implemented by a Preconditioner whose M can be extended to more points.
type ExtensiblePreconditioner interface {
	// Extend returns M for the problem of the bench, whose first points are those of m. There must be a single process.
	// Extend returns an error with the reason if M must be built again.
	Extend(ctx context.Context, bench Bench, m pcg.Preconditioner) (pcg.Preconditioner, error)
}

// FactorPreconditioner is a Preconditioner that is built from a Z (Bench.Z) and is not LowRank.
type FactorPreconditioner interface {
	Preconditioner
	// Factor returns the Z, or nil if the options need none.
	Factor() *Approximation
}

// Defaults are the values that a Defaulter uses for options that are not set.
type Defaults struct {
	Kernel  kernel.Kernel
	N       int     // number of points
	Lambda  float64 // ridge λ of the problem
	S       int     // number of features, or rank
	LambdaP float64 // ridge λ_p of the preconditioner
}

// CheckSize returns an error if a number of the problem (targets, λ, λ_p, or y/λ, the size of coefficients) is outside
// of 1e-100 to 1e100. Within this range, squares and their sums are normal float64 numbers, so that no other code
// checks for overflow.
func CheckSize(name string, value float64) error {
	if !(value >= 1e-100 && value <= 1e100) {
		return fmt.Errorf("%s = %g: want a positive number from 1e-100 to 1e100", name, value)
	}
	return nil
}

// KernelPreconditioner is implemented by a Preconditioner whose M is built from K, which must therefore be formed
// first.
type KernelPreconditioner interface {
	// MaxBytes returns the largest memory that M needs for n points, in bytes.
	MaxBytes(n int) int64
}

// SparseInverse is implemented by a sparse M⁻¹ that couples each point with its neighbors. Reports show the results of
// both methods.
type SparseInverse interface {
	Neighbors() int   // number k of neighbors per point
	Damping() float64 // damping ω
}

// Kind describes a type of preconditioner that has a name.
type Kind struct {
	// Name is the name on command lines and in files. A name that ends in a colon, as "process:", takes the rest of the
	// text as its argument.
	Name string
	// Zero is a zero value of the type of this kind, which no other kind has. Its options are the fields with tags
	// (package schema), named by their flags: in "nystrom features=500", features is the field S.
	Zero  Preconditioner
	Title string // name in reports, such as "randomly pivoted Cholesky"; default: Name
	Label string // name in figures, such as "RPCholesky"; default: Name
	// Order ranks the kinds that may serve as the default. The default is the kind with the smallest positive
	// Order among the kinds that support the kernel.
	Order int
	// Variants are option texts that the testbed tries, such as "" and "spectral=true". If Variants is not nil, the
	// stage compare tries the kind with its default options, unless the user names preconditioners. If Variants is nil,
	// neither the testbed nor compare tries the kind.
	Variants []string
	// AdviceIfSlow is the advice to the user if the iterations were not enough, and AdviceIfIndefinite the advice if M
	// is not positive definite. AdviceIfBroken replaces both if M is not built by this program. A user-defined kind
	// with none of them gets an AdviceIfBroken that names krrlab compare.
	AdviceIfSlow, AdviceIfIndefinite, AdviceIfBroken string
}

// kinds has the registered kinds of preconditioners.
var kinds struct {
	sync.RWMutex
	all []Kind // sorted by name
}

// RegisterPreconditioner registers a user-defined kind. Its name must have a dot, as in "mylab.jacobi"; built-in names
// have none. It returns an error if the name or the type is registered already.
func RegisterPreconditioner(kind Kind) error {
	if !strings.Contains(kind.Name, ".") {
		return fmt.Errorf("the name %q of a preconditioner has no dot: want one such as mylab.%s", kind.Name, kind.Name)
	}
	return register(kind)
}

// RegisterBuiltIn registers a kind of package recipe.
func RegisterBuiltIn(kind Kind) {
	if err := register(kind); err != nil {
		panic(err)
	}
}

// register adds a kind to kinds.all. It returns an error if the name is invalid, or the name or the type is registered.
func register(kind Kind) error {
	kinds.Lock()
	defer kinds.Unlock()
	if kind.Zero == nil || strings.ContainsAny(kind.Name, " =") {
		return fmt.Errorf("the kind of preconditioner %q has no Zero, or its name has a blank or =", kind.Name)
	}
	if strings.ContainsAny(kind.Name, ".:") && kind.AdviceIfSlow+kind.AdviceIfIndefinite == "" &&
		kind.AdviceIfBroken == "" {
		kind.AdviceIfBroken = "krrlab compare --with '" + kind.Name + "…' says whether M⁻¹ is symmetric and positive " +
			"definite; if it is, try a larger --max-iter, or --solver direct"
	}
	index, exists := slices.BinarySearchFunc(kinds.all, kind,
		func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	sameType := func(other Kind) bool { return reflect.TypeOf(other.Zero) == reflect.TypeOf(kind.Zero) }
	if exists || slices.ContainsFunc(kinds.all, sameType) {
		return fmt.Errorf("the preconditioner %s, or its type %T, is registered already", kind.Name, kind.Zero)
	}
	kinds.all = slices.Insert(kinds.all, index, kind)
	return nil
}

// Kinds returns the registered kinds of preconditioners, sorted by name.
func Kinds() []Kind {
	kinds.RLock()
	defer kinds.RUnlock()
	return slices.Clone(kinds.all)
}

// KindNamed returns the kind with the given name. If there is none, it returns a Kind that has only this name.
func KindNamed(name string) Kind {
	for _, kind := range Kinds() {
		if kind.Name == name || strings.HasSuffix(kind.Name, ":") && strings.HasPrefix(name, kind.Name) {
			return kind
		}
	}
	return Kind{Name: name}
}

// KindOf returns the kind of a preconditioner, and whether its type is registered.
func KindOf(p Preconditioner) (kind Kind, ok bool) {
	for _, kind := range Kinds() {
		if reflect.TypeOf(kind.Zero) == reflect.TypeOf(p) {
			return kind, true
		}
	}
	return Kind{}, false
}

// CheckOptions returns an error if an option of a preconditioner of a registered kind has an invalid value.
func CheckOptions(p Preconditioner) error {
	kind, ok := KindOf(p)
	if !ok || reflect.TypeOf(p).Kind() != reflect.Struct {
		return nil
	}
	if err := schema.Complete(schema.Copy(p)); err != nil {
		return fmt.Errorf("the preconditioner %s: %w", strings.TrimSuffix(kind.Name, ":"), err)
	}
	return nil
}

// NameOf returns the name of a preconditioner in JSON and flags. For a type that is not registered it is the result of
// String.
func NameOf(p Preconditioner) string {
	if kind, ok := KindOf(p); ok && !strings.HasSuffix(kind.Name, ":") {
		return kind.Name
	}
	return p.String()
}

// KindNames returns the names of the kinds in the form that a command line accepts.
func KindNames() (names []string) {
	for _, kind := range Kinds() {
		name := kind.Name
		if strings.HasSuffix(name, ":") {
			name += "COMMAND"
		}
		names = append(names, name)
	}
	return names
}

// DefaultKind returns the kind of preconditioner that is used for a kernel if none is named.
func DefaultKind(kern kernel.Kernel) (best Kind) {
	for _, kind := range Kinds() {
		if kind.Order > 0 && kind.CheckKernel(kern) == nil && (best.Order == 0 || kind.Order < best.Order) {
			best = kind
		}
	}
	return best
}

// CheckKernel returns an error with the reason if the kind does not support a kernel. The Zero of a kind that does not
// support all kernels has a method of this name.
func (k Kind) CheckKernel(kern kernel.Kernel) error {
	if z, ok := k.Zero.(interface{ CheckKernel(kernel.Kernel) error }); ok && kern != nil {
		return z.CheckKernel(kern)
	}
	return nil
}

// ParsePreconditioner returns the preconditioner that a text describes by its name and options, such as "nystrom
// features=500 lambda-p=0.1".
func ParsePreconditioner(text string) (Preconditioner, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("no name: want one of %s", strings.Join(KindNames(), ", "))
	}
	kind := KindNamed(words[0])
	if kind.Zero == nil {
		return nil, fmt.Errorf("--precond %q: want one of %s", words[0], strings.Join(KindNames(), ", "))
	}
	parsed := reflect.New(reflect.TypeOf(kind.Zero))
	if argument, ok := strings.CutPrefix(text, kind.Name); ok && strings.HasSuffix(kind.Name, ":") {
		if strings.Contains(argument, " process-timeout=") {
			return nil, fmt.Errorf("process-timeout= is an option of --precond: say --process-timeout")
		}
		parsed.Elem().Field(0).SetString(argument)
		return parsed.Elem().Interface().(Preconditioner), nil
	}
	options, alreadySet := schema.Of(parsed.Interface()), map[string]bool{}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if field := options.Lookup(name); field == nil {
			return nil, fmt.Errorf("%q: the preconditioner %s has no such option: %s", word, kind.Name,
				optionList(options))
		} else if !ok || alreadySet[name] {
			return nil, fmt.Errorf("%q: want an option and its value, such as %s=500, each once", word, name)
		} else if err := field.Set(value); err != nil { // The error text begins with the flag.
			return nil, fmt.Errorf("%q: %s", word, strings.TrimPrefix(err.Error(), "--"))
		}
		alreadySet[name] = true
	}
	if err := options.Complete(); err != nil { // The error text contains flags.
		return nil, fmt.Errorf("%q: %s", text, strings.ReplaceAll(err.Error(), "--", ""))
	}
	return parsed.Elem().Interface().(Preconditioner), nil
}

// optionList lists the options of a schema, for an error message.
func optionList(options *schema.Schema) string {
	var names []string
	for _, field := range options.Fields {
		names = append(names, field.Name)
	}
	if names == nil {
		return "it has none"
	}
	return "want one of " + strings.Join(names, ", ")
}

// PreconditionerText is the inverse of ParsePreconditioner, for a preconditioner of a problem with the kernel kern. It
// returns an error for a preconditioner that text cannot describe, namely for one of an unregistered type, or with a
// part such as a feature map that does not follow from kern and the options.
func PreconditionerText(p Preconditioner, kern kernel.Kernel) (text string, err error) {
	kind, ok := KindOf(p)
	if !ok {
		return "", fmt.Errorf("the preconditioner %v is user-defined", p)
	}
	// A method Data returns an equivalent preconditioner without parts that text cannot describe.
	if dataForm, ok := p.(interface {
		Data(kernel.Kernel) (Preconditioner, error)
	}); ok {
		if p, err = dataForm.Data(kern); err != nil {
			return "", err
		}
	}
	if strings.HasSuffix(kind.Name, ":") {
		return kind.Name + reflect.ValueOf(p).Field(0).String(), nil
	}
	text = kind.Name
	for _, field := range schema.Of(schema.Copy(p)).Fields {
		if !field.IsZero() {
			text += " " + field.Name + "=" + field.String()
		}
	}
	return text, nil
}

// FigureLabel returns the name in figures of a preconditioner with the given name in reports, such as "Nyström, s =
// 500" for "nystrom features=500".
func FigureLabel(name string) string {
	method, _, _ := strings.Cut(name, " ")
	if kind := KindNamed(method); kind.Name == method && kind.Label != "" {
		return kind.Label + strings.TrimPrefix(FormulaText(name), method)
	}
	return name
}

// FormulaText returns the name of a preconditioner with its options written as in formulas: "nystrom, s = 500" for
// "nystrom features=500".
func FormulaText(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return text
	}
	kind := KindNamed(words[0])
	if kind.Name != words[0] || kind.Zero == nil {
		return text
	}
	options := schema.Of(schema.Copy(kind.Zero))
	for i, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if field := options.Lookup(name); field != nil {
			name = field.Symbol()
		}
		if number, err := strconv.ParseFloat(value, 64); err == nil && number != math.Trunc(number) {
			value = fmt.Sprintf("%.4g", number)
		}
		if words[i+1] = name + " = " + value; value == "true" {
			words[i+1] = name
		}
	}
	return strings.Join(words, ", ")
}
