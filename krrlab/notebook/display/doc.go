// Package display turns Go values into what a notebook shows: a bundle of
// representations by MIME type, of which text/plain is always one.
//
// A value says itself how it looks, by methods that need no import: HTML, SVG, Markdown,
// Latex (string), PNG ([]byte), Render (Data), each with or without a second result error; an
// image.Image shows as PNG. These are conventions of gophernotes. Render applies
// them, and knows besides what types of other projects look like that have no such
// methods: gonum's matrices, gonum/plot's plots, gota's data frames and series. A method
// that panics or fails costs its own representation only, and the text says so.
//
// The other functions wrap data whose type is known to the caller: HTML, Markdown, PNG
// and so on, as in gophernotes' package display. Cells have the package under the name display.
package display
