// Package golang runs the cells of a notebook: Go, interpreted by gomacro, with compiled
// packages at hand (package bindings).
//
// A Session is one interpreter. Run executes a cell and sends what it shows to an Output;
// Complete, Inspect and IsComplete answer an editor's questions. All of them are safe to
// call from any goroutine and wait for each other; Interrupt does not wait.
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
//
// The value of the last expression is shown, unless a semicolon follows. If it is a call, or has
// several values, and the last of its values is an error, the cell fails with it; a nil error is not shown.
//
// # What is made good here
//
// gomacro takes a number where a string is wanted, and 1 + "a": a cell that does so is refused
// before it runs. So are generics, which it cannot read, and packages that are not linked in,
// which it would compile for minutes; range over a number is rewritten, and so
// are loops whose variables a function keeps. Packages of the standard library are imported where they are used. A name declared again
// with another type is another variable: functions of before keep the old one, where the
// interpreter would let them take its bits for those of the old type. After an error or an
// interrupt, the names that the statement which ended and those behind it declare are as
// before the cell; declarations that stand together count as one statement, of which functions
// stay. A cell that an interrupt cannot stop, since it waits for a channel or a lock, is left
// behind, and the next cell runs beside it with all variables and a context of its own.
// Recursion without end is ended before it takes the process with it; runtime.Goexit ends the
// cell alone. A panic becomes an error that names the line, in goroutines of the cell too.
// What is printed comes in order, whole characters only, and at most Options.MaxOutput bytes
// of it a cell.
//
// A process has one Session at a time: it owns os.Stdout and os.Stderr.
package golang
