// Package golang runs the cells of a notebook: Go, interpreted by package engine, with compiled
// packages at hand (package bindings).
//
// A Session is one interpreter. Run executes a cell and sends what it shows to an Output;
// Complete, Inspect and IsComplete answer an editor's questions. All of them are safe to
// call from any goroutine and wait for each other; Output.Interrupts ends the cell that runs.
//
// What a cell may do beside plain Go:
//
//	ctx                       the cell's context, which an interrupt cancels; context.Background() is the same
//	Display(v)                show a value
//	DisplayID(id, v)          show it with a name
//	Update(id, v)             show another in the place of that name
//	Clear()                   empty the cell's output
//	Input(prompt)             ask the reader for a line; Password(prompt) does not echo it
//	DataDirs                  folders to look for data in
//	Progress()                a krrlab.Config.Monitor that shows one line; New takes it where none is set
//	!cmd, %cd, %time, %doc, %reset, %who, %help
//	%%go                      compile the functions of the cell (package native)
//
// The value of the last expression is shown, unless a semicolon follows. If it is a call, or has
// several values, and the last of its values is an error, the cell fails with it; a nil error is not shown.
//
// Cells are all of Go; packages of the standard library need no import, and others that the go command finds are
// interpreted from their source (package modules). What is wrong in a cell is reported in the words of go/types, on
// the reader's own lines, before any of it runs.
//
// A name declared again with another type is another variable: functions declared before keep the
// old one. After an error or an interrupt, names declared by the failing statement and those after it are as before the
// cell; adjacent declarations count as one statement, whose functions stay.
//
// A cell that an interrupt cannot stop, because it waits for a channel or a lock, is left behind,
// and the next cell runs beside it with all variables and another context. Infinite recursion is
// stopped before it ends the process; runtime.Goexit ends the cell alone. A panic becomes an error
// that names the line, in goroutines of the cell too. Output arrives in order (that to os.Stdout and os.Stderr in the
// order of each), in whole characters, and is cut after 4 MiB per cell.
//
// A process has one Session at a time: it owns os.Stdout and os.Stderr.
package golang
