package plots

import (
	"strconv"

	"github.com/krrlab/lab/plots/internal/text"
)

// Count writes a whole number as tables and figures do: with commas from five digits on.
func Count(n int) string { return text.Group(strconv.Itoa(n)) }
