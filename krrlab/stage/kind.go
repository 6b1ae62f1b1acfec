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

// Preconditioner says how a preconditioner M ≈ K+λI is made, with which conjugate gradients solve
// M⁻¹(K+λI)C = M⁻¹Y. It is a value, such as recipe.Nystrom{S: 500}; any type with these methods is one.
//
// Optional methods tell more: Settler has defaults, FromK and LowRank say what M is made of, and package cost has those
// that a plan asks for. What Make returns may have methods too: NormalTo (lanczos.Metric), which gives both ends of the
// spectrum of M⁻¹(K+λI); Bytes() int64, Rank() int, What() string and Flops() (build, apply float64), for reports.
type Preconditioner interface {
	// String describes M in a few words, for reports.
	String() string
	// Make makes M, n×n, for the problem of the bench, with all its randomness from the seed; nil is M = I. On ranks all
	// of them call it together.
	Make(ctx context.Context, b Bench) (pcg.Preconditioner, error)
}

// Settler is a Preconditioner with defaults.
type Settler interface {
	// Settled returns the preconditioner with its defaults in place of zeros, and an error for what cannot be.
	Settled(d Defaults) (Preconditioner, error)
}

// Defaults are what a Settler takes where nothing is asked for.
type Defaults struct {
	Kernel  kernel.Kernel
	N       int     // points
	Lambda  float64 // λ
	S       int     // number of features, or rank
	LambdaP float64 // λ_p
}

// FromK is a Preconditioner that takes K from the bench, which therefore is formed first.
type FromK interface {
	// Beside returns how many bytes M takes for n points, at most.
	MaxBytes(n int) int64
}

// SparseInverse is what reports tell of an M⁻¹ on the neighbors of each point.
type SparseInverse interface {
	Neighbors() int
	Damping() float64
}

// Kind is all there is to know of a kind of preconditioner that has a name.
type Kind struct {
	Name string // on command lines and in files; one that ends in a colon, as "process:", takes the rest of the text
	// Zero is a Preconditioner, of which each kind has a type of its own. Its options are the fields with tags
	// (package schema), named by their flags: in "nystrom features=500" features is that of S.
	Zero  Preconditioner
	Title string // in reports, such as "randomly pivoted Cholesky"; default: Name
	Label string // in pictures, such as "RPCholesky"; default: Name
	// Order ranks the kinds of which the first that suits the kernel is taken where none is named; 0: never.
	Order int
	// Variants are options that comparisons try, such as "" and "spectral=true"; nil: the kind is not compared unless it
	// is named.
	Variants []string
	// What to try where the iterations were not enough, and where M is not positive definite. Broken is said of both
	// where M is not ours to change.
	Slow, Indefinite, Broken string
}

var kinds struct {
	sync.RWMutex
	all []Kind // in the order of their names
}

// RegisterPreconditioner gives a kind its name. The name of a user-defined one has a dot, as in "mylab.jacobi", which
// no name of ours has. It returns an error for a name or a type that is taken.
func RegisterPreconditioner(k Kind) error {
	if !strings.Contains(k.Name, ".") {
		return fmt.Errorf("the name %q of a preconditioner has no dot: want one such as mylab.%s", k.Name, k.Name)
	}
	return register(k)
}

// BuiltIn registers the kinds of package recipe.
func BuiltIn(k Kind) {
	if err := register(k); err != nil {
		panic(err)
	}
}

func register(k Kind) error {
	kinds.Lock()
	defer kinds.Unlock()
	if k.Zero == nil || strings.ContainsAny(k.Name, " =") {
		return fmt.Errorf("the kind of preconditioner %q has no Zero, or its name has a blank or =", k.Name)
	}
	at, taken := slices.BinarySearchFunc(kinds.all, k, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	same := func(o Kind) bool { return reflect.TypeOf(o.Zero) == reflect.TypeOf(k.Zero) }
	if taken || slices.ContainsFunc(kinds.all, same) {
		return fmt.Errorf("the preconditioner %s, or its type %T, is registered already", k.Name, k.Zero)
	}
	kinds.all = slices.Insert(kinds.all, at, k)
	return nil
}

// Kinds returns the kinds of preconditioners that have names, in the order of these.
func Kinds() []Kind {
	kinds.RLock()
	defer kinds.RUnlock()
	return slices.Clone(kinds.all)
}

// KindNamed returns the kind of that name, or a Kind of that name alone, without a Zero, where there is none.
func KindNamed(name string) Kind {
	for _, k := range Kinds() {
		if k.Name == name || strings.HasSuffix(k.Name, ":") && strings.HasPrefix(name, k.Name) {
			return k
		}
	}
	return Kind{Name: name}
}

// KindOf returns the kind of a preconditioner, and whether it has one.
func KindOf(p Preconditioner) (k Kind, ok bool) {
	for _, k := range Kinds() {
		if reflect.TypeOf(k.Zero) == reflect.TypeOf(p) {
			return k, true
		}
	}
	return Kind{}, false
}

// NameOf names a preconditioner as JSON and flags do, a user-defined one by its String.
func NameOf(p Preconditioner) string {
	if k, ok := KindOf(p); ok && !strings.HasSuffix(k.Name, ":") {
		return k.Name
	}
	return p.String()
}

// Names returns the names of the kinds, as a command line takes them.
func Names() (names []string) {
	for _, k := range Kinds() {
		name := k.Name
		if strings.HasSuffix(name, ":") {
			name += "COMMAND"
		}
		names = append(names, name)
	}
	return names
}

// DefaultKind returns the first kind that suits a kernel, of those that are taken where none is named.
func DefaultKind(k kernel.Kernel) (first Kind) {
	for _, of := range Kinds() {
		if of.Order > 0 && of.Suits(k) == nil && (first.Order == 0 || of.Order < first.Order) {
			first = of
		}
	}
	return first
}

// Suits returns why there is no M of the kind for a kernel; nil where there is one. A Zero that is not for all kernels
// says so by a method of this name.
func (k Kind) Suits(of kernel.Kernel) error {
	if z, ok := k.Zero.(interface{ Suits(kernel.Kernel) error }); ok && of != nil {
		return z.Suits(of)
	}
	return nil
}

// ParsePreconditioner reads a preconditioner from its name and its options, such as "nystrom features=500 lambda-p=0.1".
func ParsePreconditioner(text string) (Preconditioner, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, fmt.Errorf("no name: want one of %s", strings.Join(Names(), ", "))
	}
	k := KindNamed(words[0])
	if k.Zero == nil {
		return nil, fmt.Errorf("--precond %q: want one of %s", words[0], strings.Join(Names(), ", "))
	}
	p := reflect.New(reflect.TypeOf(k.Zero))
	if rest, ok := strings.CutPrefix(text, k.Name); ok && strings.HasSuffix(k.Name, ":") {
		p.Elem().Field(0).SetString(rest)
		return p.Elem().Interface().(Preconditioner), nil
	}
	options, given := schema.Of(p.Interface()), map[string]bool{}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if f := options.Lookup(name); f == nil {
			return nil, fmt.Errorf("%q: the preconditioner %s has no such option: %s", word, k.Name, want(options))
		} else if !ok || given[name] {
			return nil, fmt.Errorf("%q: want an option and its value, such as %s=500, each once", word, name)
		} else if err := f.Set(value); err != nil {
			return nil, err
		}
		given[name] = true
	}
	if err := options.Settle(); err != nil {
		return nil, err
	}
	return p.Elem().Interface().(Preconditioner), nil
}

// want names the options that there are.
func want(s *schema.Schema) string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	if names == nil {
		return "it has none"
	}
	return "want one of " + strings.Join(names, ", ")
}

// PreconditionerText is the inverse of ParsePreconditioner, for a kernel. It returns an error for a preconditioner that
// is not all text: of no registered kind, or with a part such as a user-defined feature map.
func PreconditionerText(p Preconditioner, of kernel.Kernel) (text string, err error) {
	k, ok := KindOf(p)
	if !ok {
		return "", fmt.Errorf("the preconditioner %v is user-defined", p)
	}
	if d, ok := p.(interface {
		Data(kernel.Kernel) (Preconditioner, error)
	}); ok {
		if p, err = d.Data(of); err != nil {
			return "", err
		}
	}
	v := reflect.New(reflect.TypeOf(p)).Elem()
	v.Set(reflect.ValueOf(p))
	if strings.HasSuffix(k.Name, ":") {
		return k.Name + v.Field(0).String(), nil
	}
	text = k.Name
	for _, f := range schema.Of(v.Addr().Interface()).Fields {
		if !f.IsZero() {
			text += " " + f.Name + "=" + f.String()
		}
	}
	return text, nil
}

// Label returns what pictures call the preconditioner that reports call so, such as "Nyström, s = 500" for "nystrom
// features=500".
func Label(name string) string {
	method, _, _ := strings.Cut(name, " ")
	if k := KindNamed(method); k.Name == method && k.Label != "" {
		return k.Label + strings.TrimPrefix(Symbols(name), method)
	}
	return name
}

// Symbols writes the options of a preconditioner as formulas do: "nystrom, s = 500" for "nystrom features=500".
func Symbols(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return text
	}
	k := KindNamed(words[0])
	if k.Name != words[0] || k.Zero == nil {
		return text
	}
	options := schema.Of(reflect.New(reflect.TypeOf(k.Zero)).Interface())
	for i, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if f := options.Lookup(name); f != nil {
			name = f.Symbol()
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil && v != math.Trunc(v) {
			value = fmt.Sprintf("%.4g", v)
		}
		if words[i+1] = name + " = " + value; value == "true" {
			words[i+1] = name
		}
	}
	return strings.Join(words, ", ")
}
