// Package stage is what the stages of the laboratory have in common: their names, the events by which they
// report progress, and the shape of what they return.
//
// What a stage returns, a Stage, is numbers that can be looked at: as aligned lines (String), as a table, as a
// picture, as HTML for a notebook, and as JSON, which WriteJSON puts into a file. It embeds a Header, writes its
// String with Lines, and takes HTML from the function of that name.
//
// A stage itself is a Runner: its options, which run on a Bench, the problem and its matrices. krrlab.Lab.Run runs
// ours and those of others alike. A Definition makes one known by name, to the command line and to ranks.
//
// A stage that calls a monitor runs within Watch: an error of the monitor then ends its context, and pcg.ErrStop
// ends it with what it has.
package stage
