package plots

import (
	"strconv"

	"github.com/krrlab/lab/plots/internal/text"
)

// Count formats a whole number as in tables and figures, with commas if it has five digits or more.
func Count(n int) string { return text.Group(strconv.Itoa(n)) }
