// Package display converts Go values to the form in which a notebook shows them: a set of representations by MIME type,
// which always includes text/plain.
//
// A value determines its representations by methods, which need no import: HTML, SVG, Markdown, Latex (string), PNG
// ([]byte) and Render (Data), each optionally with an error as the second result. An image.Image is shown as PNG. These
// are conventions of gophernotes. Render applies them. It also supports types of other projects without such methods:
// matrices of gonum, plots of gonum/plot, data frames and series of gota. If a method panics or fails, only its own
// representation is missing, and the text reports the failure.
//
// The other functions wrap data of a known type: HTML, Markdown, PNG and so on, as in gophernotes' package display. In
// cells, the package has the name display.
package display
