package schema

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema are the options of a struct.
type Schema struct {
	Fields []*Field
}

// Of returns the options of the struct that options points to, for the flags of a command. Defaults replace zeros;
// what is not zero is the default itself. Tags that cannot be read are a programmer's misuse and panic.
func Of(options any) *Schema {
	s := read(options)
	for _, f := range s.Fields {
		f.flags = true
		if f.settle(); !f.value.IsZero() || f.tag("default") != "" {
			f.Default = f.String()
		}
	}
	return s
}

// Settle replaces zeros by the defaults of the options, in the struct that options points to, and reports what is
// wrong with the others.
func Settle(options any) error {
	s := read(options)
	for _, f := range s.Fields {
		f.given = !f.value.IsZero()
	}
	return s.Settle()
}

func read(options any) *Schema {
	v := reflect.ValueOf(options)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("schema: options in a %T: want a pointer to a struct", options))
	}
	s := &Schema{}
	s.add(v.Elem(), map[string]string{})
	return s
}

// helper is a struct of options that has texts for their flags, by name.
type helper interface{ Help() map[string]string }

// add adds the options of a struct, and of those that it embeds; help has the texts that those around it have for them.
func (s *Schema) add(v reflect.Value, help map[string]string) {
	if h, ok := reflect.New(v.Type()).Interface().(helper); ok {
		inner := h.Help()
		maps.Copy(inner, help)
		help = inner
	}
	for i := range v.NumField() {
		of := v.Type().Field(i)
		if of.Anonymous && of.Type.Kind() == reflect.Struct && of.Tag == "" {
			s.add(v.Field(i), help)
			continue
		}
		tag := of.Tag.Get
		f := &Field{Name: tag("flag"), Help: tag("help"), File: tag("file"), Hidden: tag("hidden") != "", of: of, value: v.Field(i)}
		if f.Name == "" && f.tag("default") == "" && f.tag("check") == "" {
			continue
		}
		f.Help = cmp.Or(help[f.Name], f.Help)
		if f.Name != "" && s.Lookup(f.Name) != nil {
			panic("schema: two options are --" + f.Name)
		}
		f.check = parseCheck(f.tag("check"))
		s.Fields = append(s.Fields, f)
	}
}

// Without leaves out the options with these flags, which a command does not have.
func (s *Schema) Without(flags ...string) *Schema {
	s.Fields = slices.DeleteFunc(s.Fields, func(f *Field) bool { return slices.Contains(flags, f.Name) })
	return s
}

// Describe gives the options with these flags other texts; other flags are ignored.
func (s *Schema) Describe(texts map[string]string) *Schema {
	for _, f := range s.Fields {
		f.Help = cmp.Or(texts[f.Name], f.Help)
	}
	return s
}

// Given reports whether any of the options with these flags was set.
func (s *Schema) Given(flags ...string) bool {
	return slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.given && slices.Contains(flags, f.Name) })
}

// Lookup returns the option with a flag, nil if there is none.
func (s *Schema) Lookup(flag string) *Field {
	for _, f := range s.Fields {
		if f.Name == flag {
			return f
		}
	}
	return nil
}

// Settle replaces zeros by defaults, and reports what is wrong: options that exclude each other, that go with another
// which is not given, and values that fail their check.
func (s *Schema) Settle() error {
	for _, f := range s.Fields {
		if f.given {
			if err := s.fits(f); err != nil {
				return err
			}
		}
	}
	for _, f := range s.Fields {
		f.settle()
		if err := f.verify(); err != nil {
			return err
		}
	}
	return nil
}

// fits says which other option a given one excludes, or lacks. Options of other structs are not known and ignored.
func (s *Schema) fits(f *Field) error {
	for _, one := range f.list("not") {
		if o, value, holds := s.holds(one); o != nil && holds {
			return fmt.Errorf("%s and %s exclude each other", f.title(), o.title()+value)
		}
	}
	text, only := "", ""
	for _, one := range f.list("with") {
		o, value, holds := s.holds(one)
		switch {
		case holds:
			return nil
		case o != nil && text == "":
			if text = o.title() + value; value != "" {
				only = " only"
			}
		case len(value) > 1: // another of the same option
			text += " or" + value
		}
	}
	if text != "" {
		return fmt.Errorf("%s goes with %s%s", f.title(), text, only)
	}
	return nil
}

// holds reports whether an option was given, written "name", or has a value, written "name=value".
func (s *Schema) holds(one string) (o *Field, value string, holds bool) {
	name, value, valued := strings.Cut(one, "=")
	if o = s.Lookup(name); o == nil {
		return nil, "", false
	}
	if !valued {
		return o, "", o.given
	}
	return o, " " + value, o.String() == value
}
