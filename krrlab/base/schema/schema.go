package schema

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema is the list of the options of a struct.
type Schema struct {
	Fields []*Field
}

// Of returns the options of the struct that options points to, for the flags of a command. Zeros are replaced by
// defaults; a value in the struct that is not zero serves as the default itself. Invalid tags panic, because they are
// programming errors.
func Of(options any) *Schema {
	s := WithoutDefaults(options)
	for _, f := range s.Fields {
		if f.applyDefault(); !f.value.IsZero() || f.tag("default") != "" {
			f.Default = f.String()
		}
	}
	return s
}

// WithoutDefaults is like Of, but zeros remain in the struct until Schema.Complete replaces them by defaults.
func WithoutDefaults(options any) *Schema {
	s := fieldsOf(options)
	for _, f := range s.Fields {
		f.namesFlag = true
	}
	return s
}

// Copy returns a pointer to a copy of options, which is a struct. Of and Complete need such a pointer.
func Copy(options any) any {
	pointer := reflect.New(reflect.TypeOf(options))
	pointer.Elem().Set(reflect.ValueOf(options))
	return pointer.Interface()
}

// Complete replaces zeros by defaults in the struct that options points to, and checks all values. It returns an error
// for the first invalid value.
func Complete(options any) error {
	s := fieldsOf(options)
	for _, f := range s.Fields {
		f.isSet = !f.value.IsZero()
	}
	return s.Complete()
}

// fieldsOf returns the options of the struct that options points to. It panics if options is not a pointer to a struct.
func fieldsOf(options any) *Schema {
	v := reflect.ValueOf(options)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("schema: options in a %T: want a pointer to a struct", options))
	}
	s := &Schema{}
	s.add(v.Elem(), map[string]string{})
	return s
}

// helpProvider is a struct of options that returns help texts by the name of the flag.
type helpProvider interface{ Help() map[string]string }

// add appends the options of a struct and of the structs that it embeds. help has the texts of the enclosing structs,
// which take precedence.
func (s *Schema) add(structValue reflect.Value, help map[string]string) {
	if provider, ok := reflect.New(structValue.Type()).Interface().(helpProvider); ok {
		texts := provider.Help()
		maps.Copy(texts, help)
		help = texts
	}
	for i := range structValue.NumField() {
		structField := structValue.Type().Field(i)
		if structField.Anonymous && structField.Type.Kind() == reflect.Struct && structField.Tag == "" {
			s.add(structValue.Field(i), help)
			continue
		}
		tag := structField.Tag.Get
		f := &Field{Name: tag("flag"), Help: tag("help"), File: tag("file"),
			schema: s, structField: structField, value: structValue.Field(i)}
		if f.Name == "" && f.tag("default") == "" && f.tag("check") == "" {
			continue
		}
		if !structField.IsExported() {
			panic(fmt.Sprintf("schema: the option %s must be exported, as %s", structField.Name,
				strings.ToUpper(structField.Name[:1])+structField.Name[1:]))
		}
		if !isSupported(structField.Type) {
			panic(fmt.Sprintf("schema: the option %s is a %v: want a number, a string, a bool, a time.Duration, or a list",
				structField.Name, structField.Type))
		}
		f.Help = cmp.Or(help[f.Name], f.Help)
		if f.Name != "" && s.Lookup(f.Name) != nil {
			panic("schema: two options are --" + f.Name)
		}
		f.check = parseCheck(f.tag("check"))
		s.Fields = append(s.Fields, f)
	}
}

// Remove removes the options with these flags, which a command does not have.
func (s *Schema) Remove(flags ...string) *Schema {
	s.Fields = slices.DeleteFunc(s.Fields, func(f *Field) bool { return slices.Contains(flags, f.Name) })
	return s
}

// SetHelp replaces the help texts of the options with these flags. Flags that s does not have are ignored.
func (s *Schema) SetHelp(texts map[string]string) *Schema {
	for _, f := range s.Fields {
		f.Help = cmp.Or(texts[f.Name], f.Help)
	}
	return s
}

// IsSet reports whether any of the options with these flags was set.
func (s *Schema) IsSet(flags ...string) bool {
	return slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.isSet && slices.Contains(flags, f.Name) })
}

// Lookup returns the option with the flag, or nil.
func (s *Schema) Lookup(flag string) *Field {
	for _, f := range s.Fields {
		if f.Name == flag {
			return f
		}
	}
	return nil
}

// Complete replaces zeros by defaults. It returns an error if options exclude each other, if an option requires another
// one that is not set, or if a value fails its check.
func (s *Schema) Complete() error {
	for _, f := range s.Fields {
		if f.isSet {
			if err := s.checkRelations(f); err != nil {
				return err
			}
		}
	}
	for _, f := range s.Fields {
		f.applyDefault()
		if err := f.checkValue(); err != nil {
			return err
		}
	}
	return nil
}

// checkRelations returns an error if f, which is set, excludes another option that is set or lacks one that it
// requires. Options that s does not have are ignored.
func (s *Schema) checkRelations(f *Field) error {
	for _, condition := range f.alternatives("not") {
		if option, value, holds := s.evaluate(condition); option != nil && holds {
			return fmt.Errorf("%s and %s exclude each other", f.errorName(), option.errorName()+value)
		}
	}
	text, suffix := "", ""
	for _, condition := range f.alternatives("with") {
		option, value, holds := s.evaluate(condition)
		switch {
		case holds:
			return nil
		case option != nil && text == "":
			if text = option.errorName() + value; value != "" {
				suffix = " only"
			}
		case len(value) > 1: // another value of the same option
			text += " or" + value
		}
	}
	if text != "" {
		return fmt.Errorf("%s goes with %s%s", f.errorName(), text, suffix)
	}
	return nil
}

// evaluate evaluates a condition on an option of s. "name" holds if the option is set, and "name=value" if it has this
// value. For an option with the tag options:"own", only the first word of its value is compared. evaluate returns the
// option, or nil if s does not have it, and the value in the condition, with a leading blank.
func (s *Schema) evaluate(condition string) (option *Field, value string, holds bool) {
	name, value, hasValue := strings.Cut(condition, "=")
	if option = s.Lookup(name); option == nil {
		return nil, "", false
	}
	if !hasValue {
		return option, "", option.isSet
	}
	text := option.String()
	if option.tag("options") == "own" {
		text, _, _ = strings.Cut(text, " ")
	}
	return option, " " + value, text == value
}
