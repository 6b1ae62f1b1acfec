// Package stage is what the stages of the laboratory have in common: their names, the events by which they
// report progress, and the shape of what they return.
//
// A Stage is numbers that can be looked at: as aligned lines (String), as a table, as a picture, as HTML for
// a notebook, and as JSON, which Write puts into a file. A new one embeds a Header, writes its String with
// Lines, and takes HTML from the function of that name; package results has the built-in ones.
//
// A stage that calls a monitor runs within Watch: an error of the monitor then ends its context, and pcg.ErrStop
// ends it with what it has.
package stage
