package kernel

import (
	"fmt"
	"strings"
)

// Prose names the kernel in words, for the title of a picture: "Gaussian kernel, σ = 0.3", to four significant digits.
func (s Spec) Prose() string {
	names := map[string]string{"gaussian": "Gaussian", "laplacian": "Laplacian", "matern32": "Matérn 3/2",
		"matern52": "Matérn 5/2"}
	switch name, ok := names[s.Name]; {
	case ok:
		return fmt.Sprintf("%s kernel, σ = %.4g", name, s.Sigma)
	case s.Name == "polynomial":
		return fmt.Sprintf("polynomial kernel of degree %d, γ = %.4g, c = %.4g", s.Degree, s.Gamma, s.Coef0)
	case s.Name == "precomputed":
		return "precomputed kernel"
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
