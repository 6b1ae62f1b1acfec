package kernel

import (
	"fmt"
	"strings"
)

// Title returns what a kernel with a given name in files is called in titles and legends: by its method Title() string,
// such as "Gaussian", or else by that name.
func Title(name string) string {
	if k := find(named(name)); k != nil {
		if t, ok := k.prototypes[0].(interface{ Title() string }); ok {
			return t.Title()
		}
	}
	return name
}

// Prose names the kernel in words, for the title of a picture: "Gaussian kernel, σ = 0.3", to four significant digits.
func (s Spec) Prose() string {
	k, err := FromSpec(s)
	p, own := k.(interface{ prose() string })
	switch {
	case s.Name == precomputedName:
		return "precomputed kernel"
	case err == nil && own:
		return p.prose()
	case err == nil && s.Sigma > 0:
		return fmt.Sprintf("%s kernel, σ = %.4g", Title(s.Name), s.Sigma)
	}
	return "kernel " + s.Short()
}

// InProse returns a text that names the kernel, such as that of a feature map, with Prose for it.
func (s Spec) InProse(text string) string {
	if k, err := FromSpec(s); err == nil {
		text = strings.ReplaceAll(text, "of "+k.String(), "of the "+s.Prose())
		text = strings.ReplaceAll(text, k.String(), s.Prose())
	}
	return text
}
