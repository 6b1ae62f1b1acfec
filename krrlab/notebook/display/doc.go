// Package display turns Go values into what a notebook shows: a bundle of
// representations by MIME type, of which text/plain is always one.
//
// A value says itself how it looks, by methods that need no import: HTML, SVG, Markdown,
// Latex, JavaScript (string), PNG, JPEG, PDF ([]byte), JSON and SimpleRender
// (map[string]any), Render (Data), each with or without a second result error; an
// image.Image shows as PNG. These are the conventions of gophernotes. Render applies
// them, and knows besides what types of other projects look like that have no such
// methods: gonum's matrices, gonum/plot's plots, gota's data frames and series. A method
// that panics or fails costs its own representation only, and the text says so.
//
// The other functions wrap data whose type is known to the caller: HTML, Markdown, PNG
// and so on; their names and types are those of gophernotes' package display, so that a
// notebook runs on either kernel. Cells have the package under the name display.
package display
