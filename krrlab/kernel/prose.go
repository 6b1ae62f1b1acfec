package kernel

import (
	"fmt"
	"strings"
)

// Title returns the name of a kernel for titles and legends, given its name in files. A kernel sets it by a method
// Title() string, which returns for example "Gaussian". Without the method Title returns the name itself.
func Title(name string) string {
	if k := find(hasName(name)); k != nil {
		if t, ok := k.prototypes[0].(interface{ Title() string }); ok {
			return t.Title()
		}
	}
	return name
}

// Prose describes the kernel in words for the title of a figure, such as "Gaussian kernel, σ = 0.3", with four
// significant digits.
func (s Spec) Prose() string {
	k, err := FromSpec(s)
	p, hasProse := k.(interface{ prose() string })
	switch {
	case s.Name == precomputedName:
		return "precomputed kernel"
	case err == nil && hasProse:
		return p.prose()
	case err == nil && s.Sigma > 0:
		return fmt.Sprintf("%s kernel, σ = %.4g", Title(s.Name), s.Sigma)
	case err == nil && Title(s.Name) != s.Name:
		text := Title(s.Name) + " kernel"
		for f, value := range parameters(k) {
			name := strings.ToLower(f.Name)
			if isScale(k, f) && name == "sigma" {
				name = "σ"
			}
			if value.CanFloat() {
				text += fmt.Sprintf(", %s = %.4g", name, value.Float())
			} else {
				text += fmt.Sprintf(", %s = %v", name, value)
			}
		}
		return text
	}
	return "kernel " + s.Short()
}

// InProse returns text with every occurrence of the kernel's String replaced by Prose. The text describes, for example,
// a feature map.
func (s Spec) InProse(text string) string {
	if k, err := FromSpec(s); err == nil {
		text = strings.ReplaceAll(text, "of "+k.String(), "of the "+s.Prose())
		text = strings.ReplaceAll(text, k.String(), s.Prose())
	}
	return text
}
