package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/plots"
)

// plotFlags are the file of a picture and how it looks.
type plotFlags struct {
	plot          string
	title         *pflag.Flag
	width, height float64 // in inches, 0: the picture's own
}

// sizeValue is --size, such as 5x3.
type sizeValue struct{ f *plotFlags }

func (v *sizeValue) String() string {
	if v.f == nil || v.f.width == 0 {
		return ""
	}
	return fmt.Sprintf("%gx%g", v.f.width, v.f.height)
}

func (v *sizeValue) Type() string { return "WxH" }

func (v *sizeValue) Set(text string) error {
	var rest string
	n, _ := fmt.Sscanf(text+" ", "%fx%f%s", &v.f.width, &v.f.height, &rest)
	if n != 2 || !(v.f.width >= 1 && v.f.width <= 40 && v.f.height >= 1 && v.f.height <= 40) {
		return usagef("--size %q: want width and height in inches, from 1 to 40, such as 5x3", text)
	}
	return nil
}

// add adds the flags; what says what is drawn.
func (f *plotFlags) add(p *pflag.FlagSet, what string) {
	p.StringVar(&f.plot, "plot", "", "draw "+what+" to this file (.svg, .png, .pdf, or .html with values on hover and zoom)")
	p.String("title", "", `title of the picture in place of its own; "" for none`)
	p.Var(&sizeValue{f}, "size", "width and height of the picture in inches, such as 5x3 (default: its own, mostly 6.5x4)")
	f.title = p.Lookup("title")
}

// check refuses a format that there is not, and a look without a picture.
func (f *plotFlags) check() error {
	if f.plot == "" && (f.title.Changed || f.width > 0) {
		return usagef("--title and --size go with --plot FILE")
	}
	return checkPlot(f.plot)
}

// save writes the picture.
func (f *plotFlags) save(figure *plots.Figure) error {
	if f.title.Changed {
		figure.Title = f.title.Value.String()
	}
	if f.width > 0 {
		figure.Width, figure.Height = f.width, f.height
	}
	return figure.Save(f.plot)
}
