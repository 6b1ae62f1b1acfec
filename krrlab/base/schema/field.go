package schema

import (
	"cmp"
	"encoding"
	"encoding/csv"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// Field is one option. It implements the interfaces flag.Value and pflag.Value.
type Field struct {
	Name    string // name of the flag, "" if there is none
	Help    string // help text of the flag
	Default string // text of the default in the help, "" if there is none
	File    string // "read", "write" or "picture" if the value names a file, else ""

	schema      *Schema // the options that this one was read with
	structField reflect.StructField
	value       reflect.Value // the field in the caller's struct
	check       check
	namesFlag   bool // errors have the name of the flag and not of the field
	isSet       bool // the option was set by its flag, or is not zero in the struct of a Go caller
}

// setter is a type that parses its own text, as values of package flag do.
type setter interface{ Set(text string) error }

// enumeration is a type whose values have names, and which has no other values.
type enumeration interface{ Names() []string }

// tag returns the text of a tag of the field.
func (f *Field) tag(key string) string { return f.structField.Tag.Get(key) }

// alternatives returns the alternatives in a tag, which are separated by |.
func (f *Field) alternatives(key string) []string {
	return strings.FieldsFunc(f.tag(key), func(r rune) bool { return r == '|' })
}

// errorName returns the name of the option in errors: its flag on a command line, else its field.
func (f *Field) errorName() string {
	if !f.namesFlag {
		return f.structField.Name
	}
	if owner, key := f.Owner(); owner != nil {
		return "--" + owner.Name + " " + key
	}
	return "--" + f.Name
}

// Owner returns the option in whose flag this one is written, and the word for it there: for the title in --plot
// "fit.svg title=Prices" the option plot and "title". The owner is nil if there is none.
func (f *Field) Owner() (owner *Field, key string) {
	name, key, _ := strings.Cut(f.tag("in"), " ")
	if name == "" {
		return nil, ""
	}
	return f.schema.Lookup(name), cmp.Or(key, f.Name)
}

// member is an option that is written in the flag of another option, with the text of its value: for title in --plot
// "fit.svg title=Prices", the text is Prices.
type member struct {
	field *Field
	text  string
}

// splitMembers divides the text of a flag into the value of the option, which comes first, and the words "key=value" of
// the options that are written in it. A value ends at the next key, so that it may contain blanks. Blanks around values
// are removed, but a text without such words is the value as it is.
func (f *Field) splitMembers(text string) (value string, members []member) {
	end := len(text)
	for i := len(text); i >= 0; i-- {
		if i > 0 && text[i-1] != ' ' {
			continue
		}
		key, memberText, ok := strings.Cut(text[i:end], "=")
		if option := f.memberByKey(key); ok && option != nil {
			members = append(members, member{option, strings.Trim(memberText, " ")})
			end = i
		}
	}
	if members == nil {
		return text, nil
	}
	slices.Reverse(members)
	return strings.Trim(text[:end], " "), members
}

// memberByKey returns the option that is written in the flag of f with this key, or nil.
func (f *Field) memberByKey(key string) *Field {
	for _, option := range f.schema.Fields {
		if owner, optionKey := option.Owner(); owner == f && optionKey == key {
			return option
		}
	}
	return nil
}

// applyDefault sets the value to the default if it is zero and was not set. An invalid default panics, because it is a
// programming error.
func (f *Field) applyDefault() {
	if text := f.tag("default"); text != "" && f.value.IsZero() && !f.isSet {
		if err := f.parse(text); err != nil {
			panic(fmt.Sprintf("schema: default of %s: %v", f.structField.Name, err))
		}
		if f.checkValue() != nil {
			panic(fmt.Sprintf("schema: the default %s of %s fails its check: want %s", text, f.structField.Name,
				cmp.Or(f.check.text, "one of "+strings.Join(f.Choices(), ", "))))
		}
	}
}

// IsZero reports whether the value is the zero of its type, which means that the option is not set.
func (f *Field) IsZero() bool { return f.value.IsZero() }

// Symbol returns the name of the option in plots: its tag symbol, or else the name of its flag or field.
func (f *Field) Symbol() string { return cmp.Or(f.tag("symbol"), f.Name, f.structField.Name) }

// ShellWords returns the option and its value as shell words, with a leading blank, to be appended to a command line.
// It returns "" if neither the option nor one that is written in its flag is set.
func (f *Field) ShellWords() string {
	if owner, _ := f.Owner(); owner != nil {
		return ""
	}
	members := ""
	for _, option := range f.schema.Fields {
		if owner, key := option.Owner(); owner == f && option.isSet {
			members += " " + key + "=" + option.String()
		}
	}
	text := ""
	if f.isSet && !f.IsBoolFlag() {
		text = f.String()
	}
	switch {
	case members != "" && text == "":
		return " --" + f.Name + "=" + safe.Shell(members[1:])
	case !f.isSet:
		return ""
	case !f.IsBoolFlag():
		return " --" + f.Name + " " + safe.Shell(text+members)
	case f.String() != "true":
		return " --" + f.Name + "=" + f.String()
	}
	return " --" + f.Name
}

// Set parses and checks a value from a command line, and the values of the options that are written in it. If a list
// option is set several times, the elements are appended. An option that is written in the flag of another must not be
// set to two different values.
func (f *Field) Set(text string) error {
	if want := f.tag("empty"); text == "" && want != "" {
		return fmt.Errorf("%s \"\": want %s", f.errorName(), want)
	}
	text, members := f.splitMembers(text)
	if err := f.checkUnknownMember(text); err != nil {
		return err
	}
	for _, m := range members {
		if err := m.field.Set(m.text); err != nil {
			return err
		}
	}
	if members != nil && text == "" {
		if !f.IsBoolFlag() {
			return nil
		}
		text = "true"
	}
	owner, _ := f.Owner()
	wasSet, previous := f.isSet && owner != nil && f.value.Kind() != reflect.Slice, f.String()
	if f.value.Kind() == reflect.Slice && !f.isSet {
		f.value.SetZero() // remove the default
	}
	if err := f.parse(text); err != nil {
		return err
	}
	f.isSet = true
	if wasSet && f.String() != previous {
		return fmt.Errorf("%s: both %q and %q are given: want one value", f.errorName(), previous, f.String())
	}
	if zero := f.tag("zero"); zero != "" && f.value.IsZero() {
		return f.parse(zero)
	}
	return f.checkValue()
}

// readList returns the list that text stands for: if text is @FILE, the words of the file, separated by commas, and
// otherwise text itself.
func readList(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(data), ",", " ")), ","), nil
}

// ReadLists returns text with the contents of the file in place of each @FILE in a word name=@FILE, such as "nystrom
// landmarks=3,14,15" for "nystrom landmarks=@marks". The text then has the same meaning on every machine. The command
// line of a process, such as "process:python3 m.py --in=@x", does not change.
func ReadLists(text string) (string, error) {
	words, changed := strings.Fields(text), false
	for i, word := range words {
		name, value, isOption := strings.Cut(word, "=")
		if !isOption && strings.Contains(word, ":") {
			break // the words of a command follow
		}
		if !strings.HasPrefix(value, "@") {
			continue
		}
		list, err := readList(value)
		if err != nil {
			return "", fmt.Errorf("%s=%w", name, err)
		}
		words[i], changed = name+"="+list, true
	}
	if !changed {
		return text, nil
	}
	return strings.Join(words, " "), nil
}

// unknownMember matches a text whose last word looks like an option that is written in the flag of another.
var unknownMember = regexp.MustCompile(`(?:^| )([a-z-]+)=[^ ]*$`)

// checkUnknownMember returns an error if the last word of a value looks like an option, as in --plot "a.svg titel=x",
// and the flag has options. A text that begins with ./ is accepted, because it is the name of a file. Types that parse
// their own text, and options with the tag options, are not checked here.
func (f *Field) checkUnknownMember(text string) error {
	match := unknownMember.FindStringSubmatch(text)
	kind := f.structField.Type
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if match == nil || strings.HasPrefix(text, "./") || kind != reflect.TypeFor[string]() || f.tag("options") != "" {
		return nil
	}
	var keys []string
	for _, option := range f.schema.Fields {
		if owner, key := option.Owner(); owner == f {
			keys = append(keys, key+"=")
		}
	}
	if keys == nil {
		return nil
	}
	advice := ""
	if kind == f.structField.Type { // a file or folder
		advice = "; a file of this name is ./" + text
	}
	return fmt.Errorf("%s %q: there is no option %s=: want %s%s", f.errorName(), text, match[1],
		strings.Join(keys, " or "), advice)
}

// parse parses a text and sets the value to it; the elements of a list are appended. It does not check the value. Its
// errors describe the valid texts.
func (f *Field) parse(text string) error {
	v := f.value
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if f.tag("unit") == "bytes" {
		bytes, err := parseBytes(text)
		v.SetInt(bytes)
		return f.wrapError(text, err)
	}
	if f.tag("options") == "own" {
		var err error
		if text, err = ReadLists(text); err != nil {
			return fmt.Errorf("%s %w", f.errorName(), err)
		}
	}
	pointer := v.Addr().Interface()
	if named, ok := pointer.(enumeration); ok && text != "" && !slices.Contains(named.Names(), text) {
		return f.notOneOf(text, named.Names())
	}
	switch pointer := pointer.(type) {
	case setter:
		return f.wrapError(text, pointer.Set(text))
	case encoding.TextUnmarshaler:
		return f.wrapError(text, pointer.UnmarshalText([]byte(text)))
	}
	if v.Kind() != reflect.Slice {
		return f.parseScalar(v, text)
	}
	text, err := readList(text)
	if err != nil {
		return fmt.Errorf("%s %w", f.errorName(), err)
	}
	words := strings.Split(strings.ReplaceAll(text, " ", ""), ",")
	if v.Type().Elem().Kind() == reflect.String {
		if words, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil && text != "" {
			const want = "words separated by commas, those with one in quotes"
			return fmt.Errorf("%s %q: want %s", f.errorName(), text, want)
		}
	}
	for _, word := range words {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := f.parseScalar(element, word); err != nil {
			list := strings.TrimPrefix(validTexts[element.Kind()], "a ") + "s separated by commas"
			return fmt.Errorf("%s %q: want %s", f.errorName(), text, list)
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

// wrapError adds the name of the option to the error of a type that parses its own text. It also adds the text if the
// error only describes the valid texts.
func (f *Field) wrapError(text string, err error) error {
	if err == nil {
		return nil
	}
	problem, want, ok := strings.Cut(": "+err.Error(), ": want ")
	if ok && (problem == "" || strings.Contains(problem, strconv.Quote(text))) {
		return fmt.Errorf("%s %q: want %s", f.errorName(), text, want)
	}
	return fmt.Errorf("%s: %w", f.errorName(), err)
}

// validTexts describes, in errors, the texts that parseScalar accepts for each kind of value.
var validTexts = map[reflect.Kind]string{
	reflect.Float64: "a number", reflect.Int: "a whole number", reflect.Int64: "a whole number",
	reflect.Uint64: "a whole number, at least 0", reflect.Bool: "true or false",
}

// parseScalar parses a single value of a basic type.
func (f *Field) parseScalar(v reflect.Value, text string) error {
	want, ok := validTexts[v.Kind()], false
	number, base := strings.TrimSpace(text), 10 // 010 is ten
	if strings.Contains(number, "0x") {
		base = 0 // ParseInt takes the base from the prefix
	}
	switch duration, isDuration := v.Addr().Interface().(*time.Duration); {
	case isDuration:
		var err error
		*duration, err = time.ParseDuration(text)
		want, ok = "a time such as 30s or 5m", err == nil
	case v.Kind() == reflect.String:
		v.SetString(text)
		return nil
	case v.Kind() == reflect.Bool:
		truth, err := strconv.ParseBool(text)
		v.SetBool(truth)
		ok = err == nil
	case v.CanInt():
		integer, err := strconv.ParseInt(number, base, v.Type().Bits())
		v.SetInt(integer)
		ok = err == nil
	case v.CanUint():
		unsigned, err := strconv.ParseUint(number, base, v.Type().Bits())
		v.SetUint(unsigned)
		ok = err == nil
	case v.CanFloat():
		float, err := strconv.ParseFloat(number, v.Type().Bits())
		v.SetFloat(float)
		ok = err == nil
	default:
		panic(fmt.Sprintf("schema: %s has the type %v, which add does not accept", f.structField.Name, v.Type()))
	}
	if !ok {
		return fmt.Errorf("%s %q: want %s", f.errorName(), text, want)
	}
	return nil
}

// isSupported reports whether an option can have the type t.
func isSupported(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch reflect.New(t).Interface().(type) {
	case setter, encoding.TextUnmarshaler:
		return true
	}
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	zero := reflect.Zero(t)
	return zero.CanInt() || zero.CanUint() || zero.CanFloat() || zero.Kind() == reflect.Bool ||
		zero.Kind() == reflect.String
}

// checkValue checks the value, or each element of a list. A zero that is not set is valid.
func (f *Field) checkValue() error {
	v := reflect.Indirect(f.value)
	switch {
	case !v.IsValid(), v.IsZero() && !f.isSet:
		return nil
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := f.checkElement(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return f.checkElement(v)
}

// checkElement checks a single value.
func (f *Field) checkElement(v reflect.Value) error {
	text, words := textOf(v), f.check.words
	if named, ok := v.Addr().Interface().(enumeration); ok {
		words = named.Names()
	}
	switch {
	case words != nil && text != "" && !slices.ContainsFunc(words, func(word string) bool {
		return word == text || strings.HasSuffix(word, ":") && len(text) > len(word) && strings.HasPrefix(text, word)
	}):
		return f.notOneOf(text, words)
	case f.check.text != "" && !f.check.contains(toFloat64(v)):
		return fmt.Errorf("%s %s: want %s", f.errorName(), text, f.validNumbers())
	}
	if parser, ok := reflect.New(v.Type()).Interface().(encoding.TextUnmarshaler); ok {
		return f.wrapError(text, parser.UnmarshalText([]byte(text)))
	}
	return nil
}

// notOneOf returns the error for a text that is none of the valid words.
func (f *Field) notOneOf(text string, words []string) error {
	return fmt.Errorf("%s %q: want one of %s", f.errorName(), text, strings.Join(words, ", "))
}

// String returns the value in the form that Set parses.
func (f *Field) String() string {
	if f == nil || !f.value.IsValid() { // package flag calls String of a zero Field
		return ""
	}
	v := reflect.Indirect(f.value)
	if !v.IsValid() {
		return ""
	}
	if v.Kind() != reflect.Slice {
		return textOf(v)
	}
	if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
		return s.String()
	}
	words := make([]string, v.Len())
	for i := range words {
		if words[i] = textOf(v.Index(i)); strings.ContainsAny(words[i], "\",\n") {
			words[i] = `"` + strings.ReplaceAll(words[i], `"`, `""`) + `"`
		}
	}
	return strings.Join(words, ",")
}

// textOf returns the text of a value, from its method String if it has one.
func textOf(v reflect.Value) string {
	if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprint(v.Interface())
}

// Type returns the name of the type of the value for help texts, in the form of pflag.Value.
func (f *Field) Type() string {
	t := f.structField.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if typed, ok := reflect.New(t).Interface().(interface{ Type() string }); ok {
		return typed.Type()
	}
	_, isUnmarshaler := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	_, isSetter := reflect.New(t).Interface().(setter)
	switch {
	case isUnmarshaler || isSetter || f.tag("unit") != "":
		return "string"
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.Slice:
		return t.Elem().Kind().String() + "Slice"
	}
	return t.Kind().String()
}

// IsBoolFlag reports whether the flag without a value means true.
func (f *Field) IsBoolFlag() bool { return f.Type() == "bool" }
