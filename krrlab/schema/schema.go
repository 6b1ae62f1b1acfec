package schema

import (
	"fmt"
	"reflect"
	"strings"
)

// Schema are the options of a struct.
type Schema struct {
	Fields []*Field
	flags  bool // errors name flags; else the fields of a Go caller
}

// Of returns the options of the struct that options points to, for the flags of a command. Defaults are put in place of
// zeros; what is not zero is the default itself. Tags that cannot be read are a programmer's misuse and panic.
func Of(options any) *Schema {
	s := read(options)
	s.flags = true
	for _, f := range s.Fields {
		f.flags = true
		if f.settle(); !f.value.IsZero() || f.tag("default") != "" {
			f.Default = f.String()
		}
	}
	return s
}

// Settle puts the defaults of the options, in the struct that options points to, in place of zeros, and says what is
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
	s.add(v.Elem())
	return s
}

// add adds the options of a struct, and of those that it embeds.
func (s *Schema) add(v reflect.Value) {
	var long map[string]string
	if h, ok := reflect.New(v.Type()).Interface().(interface{ Help() map[string]string }); ok {
		long = h.Help()
	}
	for i := range v.NumField() {
		of := v.Type().Field(i)
		if of.Anonymous && of.Type.Kind() == reflect.Struct && of.Tag == "" {
			s.add(v.Field(i))
			continue
		}
		f := &Field{Name: of.Tag.Get("flag"), Help: of.Tag.Get("help"), of: of, value: v.Field(i)}
		if f.Name == "" && f.tag("default") == "" && f.tag("check") == "" {
			continue
		}
		if text, ok := long[f.Name]; ok {
			f.Help = text
		}
		if f.Name != "" && s.Lookup(f.Name) != nil {
			panic("schema: two options are --" + f.Name)
		}
		f.check = parseCheck(f.tag("check"))
		s.Fields = append(s.Fields, f)
	}
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

// Settle puts defaults in place of zeros, and says what is wrong: options that exclude each other, that go with another
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
	for _, name := range f.list("not") {
		if o := s.Lookup(name); o != nil && o.given {
			return fmt.Errorf("%s and %s exclude each other", f.title(), o.title())
		}
	}
	need, known := f.list("with"), false
	for _, one := range need {
		name, value, valued := strings.Cut(one, "=")
		o := s.Lookup(name)
		if known = known || o != nil; o != nil && (valued && o.String() == value || !valued && o.given) {
			return nil
		}
	}
	if !known {
		return nil
	}
	name, value, valued := strings.Cut(need[0], "=")
	if valued {
		return fmt.Errorf("%s goes with %s %s only", f.title(), s.Lookup(name).title(), value)
	}
	return fmt.Errorf("%s goes with %s", f.title(), s.Lookup(name).title())
}
