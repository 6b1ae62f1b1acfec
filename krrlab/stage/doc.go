// Package stage defines the common parts of the stages of the laboratory: their names, the events by which they report
// progress, the preconditioners, and the form of their results.
//
// The result of a stage is a Stage: numbers that can be shown as aligned lines (String), as a table, as a figure and as
// HTML in a notebook, and saved as JSON by WriteJSON. It embeds a Header, writes its String with Lines, and implements
// its method HTML with the function HTML.
//
// A stage itself is a Runner: a struct of options that runs on a Bench, which provides the problem and its matrices.
// krrlab.Lab.Run runs built-in and user-defined stages alike. A Definition makes a stage available by name, on the
// command line and to ranks.
//
// A stage that calls a monitor runs within Watch. An error of the monitor then ends the context of the stage; if the
// error is pcg.ErrStop, the stage returns its partial result.
package stage
