package schema

import (
	"cmp"
	"encoding"
	"encoding/csv"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// Field is one option. It is a Value of package flag and of pflag.
type Field struct {
	Name    string // of its flag, "" where it has none
	Help    string // of the flag
	Default string // as help shows it, "" for none
	File    string // "read" or "write" where the value names a file
	Hidden  bool   // help does not show it

	of    reflect.StructField
	value reflect.Value
	check check
	flags bool // errors name the flag
	given bool
}

// setter is a type that reads its own text, as values of package flag do.
type setter interface{ Set(text string) error }

// named is a type whose values have names.
type named interface{ Names() []string }

func (f *Field) tag(key string) string { return f.of.Tag.Get(key) }

func (f *Field) list(key string) []string {
	return strings.FieldsFunc(f.tag(key), func(r rune) bool { return r == '|' })
}

// title names the option for its caller.
func (f *Field) title() string {
	if f.flags {
		return "--" + f.Name
	}
	return f.of.Name
}

// settle replaces zero by the default.
func (f *Field) settle() {
	if text := f.tag("default"); text != "" && f.value.IsZero() && !f.given {
		if err := f.read(text); err != nil {
			panic(fmt.Sprintf("schema: default of %s: %v", f.of.Name, err))
		}
	}
}

// Given reports whether the option was set: by its flag, or by a Go caller to anything but zero.
func (f *Field) Given() bool { return f.given }

// IsZero reports whether the value is the zero of its type, that of an option which is not set.
func (f *Field) IsZero() bool { return f.value.IsZero() }

// Symbol is what pictures call the option: its tag symbol, or its flag.
func (f *Field) Symbol() string { return cmp.Or(f.tag("symbol"), f.Name) }

// Flag returns the option as a shell takes it on a command line, after a blank.
func (f *Field) Flag() string {
	switch text := f.String(); {
	case !f.IsBoolFlag():
		return " --" + f.Name + " " + safe.Shell(text)
	case text != "true":
		return " --" + f.Name + "=" + text
	}
	return " --" + f.Name
}

// Set reads the value from a command line, and checks it. Values of a list add to those of the flags before.
func (f *Field) Set(text string) error {
	if f.value.Kind() == reflect.Slice && !f.given {
		f.value.SetZero() // the default
	}
	if err := f.read(text); err != nil {
		return err
	}
	f.given = true
	if zero := f.tag("zero"); zero != "" && f.value.IsZero() {
		return f.read(zero)
	}
	return f.verify()
}

// read reads a value; its errors say what is wanted.
func (f *Field) read(text string) error {
	v := f.value
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if f.tag("unit") == "bytes" {
		n, err := parseBytes(text)
		v.SetInt(n)
		return f.wrong(text, err)
	}
	at := v.Addr().Interface()
	if n, ok := at.(named); ok && text != "" && !slices.Contains(n.Names(), text) {
		return f.notOneOf(text, n.Names())
	}
	switch at := at.(type) {
	case setter:
		return f.wrong(text, at.Set(text))
	case encoding.TextUnmarshaler:
		return f.wrong(text, at.UnmarshalText([]byte(text)))
	}
	if v.Kind() != reflect.Slice {
		return f.scan(v, text)
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%s %s: %w", f.title(), text, err)
		}
		text = strings.Join(strings.Fields(strings.ReplaceAll(string(data), ",", " ")), ",")
	}
	words := strings.Split(strings.ReplaceAll(text, " ", ""), ",")
	if v.Type().Elem().Kind() == reflect.String {
		var err error
		if words, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil && text != "" {
			const want = "words separated by commas, those with one in quotes"
			return fmt.Errorf("%s %q: want %s", f.title(), text, want)
		}
	}
	for _, word := range words {
		one := reflect.New(v.Type().Elem()).Elem()
		if err := f.scan(one, word); err != nil {
			list := strings.TrimPrefix(kinds[one.Kind()], "a ") + "s separated by commas"
			return fmt.Errorf("%s %q: want %s", f.title(), text, list)
		}
		v.Set(reflect.Append(v, one))
	}
	return nil
}

// wrong names the option in the error of a type that reads itself, and the text where the error only says what it
// wants.
func (f *Field) wrong(text string, err error) error {
	if err == nil {
		return nil
	}
	what, want, ok := strings.Cut(": "+err.Error(), ": want ")
	if ok && (what == "" || strings.Contains(what, strconv.Quote(text))) {
		return fmt.Errorf("%s %q: want %s", f.title(), text, want)
	}
	return fmt.Errorf("%s: %w", f.title(), err)
}

// kinds say what is wanted for a kind of value.
var kinds = map[reflect.Kind]string{
	reflect.Float64: "a number", reflect.Int: "a whole number", reflect.Int64: "a whole number",
	reflect.Uint64: "a whole number, at least 0", reflect.Bool: "true or false",
}

// scan reads one value of a basic type.
func (f *Field) scan(v reflect.Value, text string) error {
	want, ok, at := kinds[v.Kind()], false, v.Addr().Interface()
	switch d, is := at.(*time.Duration); {
	case is:
		var err error
		*d, err = time.ParseDuration(text)
		want, ok = "a time such as 30s or 5m", err == nil
	case v.Kind() == reflect.String:
		v.SetString(text)
		return nil
	case v.Kind() == reflect.Bool: // of which fmt takes any word
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		ok = err == nil
	case want == "":
		panic(fmt.Sprintf("schema: %s is a %v, which is no option", f.of.Name, v.Type()))
	default:
		n, _ := fmt.Sscan(text, at, new(string)) // 2 if there is more
		ok = n == 1
	}
	if !ok {
		return fmt.Errorf("%s %q: want %s", f.title(), text, want)
	}
	return nil
}

// verify checks the value, or each of a list; one that is not given, with no default, passes.
func (f *Field) verify() error {
	v := reflect.Indirect(f.value)
	switch {
	case !v.IsValid(), v.IsZero() && !f.given:
		return nil
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := f.verifyOne(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return f.verifyOne(v)
}

func (f *Field) verifyOne(v reflect.Value) error {
	text, words := format(v), f.check.words
	if n, ok := v.Addr().Interface().(named); ok {
		words = n.Names()
	}
	switch {
	case words != nil && text != "" && !slices.ContainsFunc(words, func(w string) bool {
		return w == text || strings.HasSuffix(w, ":") && len(text) > len(w) && strings.HasPrefix(text, w)
	}):
		return f.notOneOf(text, words)
	case f.check.text != "" && !f.check.right(number(v)):
		return fmt.Errorf("%s %s: want %s", f.title(), text, f.want())
	}
	return nil
}

func (f *Field) notOneOf(text string, words []string) error {
	return fmt.Errorf("%s %q: want one of %s", f.title(), text, strings.Join(words, ", "))
}

// String returns the value as a command line has it.
func (f *Field) String() string {
	if f == nil || !f.value.IsValid() { // of package flag, which asks for that of a zero Field
		return ""
	}
	v := reflect.Indirect(f.value)
	if !v.IsValid() {
		return ""
	}
	if v.Kind() != reflect.Slice {
		return format(v)
	}
	if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
		return s.String()
	}
	words := make([]string, v.Len())
	for i := range words {
		if words[i] = format(v.Index(i)); strings.ContainsAny(words[i], "\",\n") {
			words[i] = `"` + strings.ReplaceAll(words[i], `"`, `""`) + `"`
		}
	}
	return strings.Join(words, ",")
}

// format writes a value, one that has a String by that.
func format(v reflect.Value) string {
	if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprint(v.Interface())
}

// Type names the type of the value in help, as pflag does.
func (f *Field) Type() string {
	t := f.of.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if own, ok := reflect.New(t).Interface().(interface{ Type() string }); ok {
		return own.Type()
	}
	_, read := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	_, set := reflect.New(t).Interface().(setter)
	switch {
	case read || set || f.tag("unit") != "":
		return "string"
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.Slice:
		return t.Elem().Kind().String() + "Slice"
	}
	return t.Kind().String()
}

// IsBoolFlag reports whether the flag alone, without a value, is true.
func (f *Field) IsBoolFlag() bool { return f.Type() == "bool" }
