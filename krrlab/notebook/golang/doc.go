// Package golang runs the cells of a notebook. Cells are written in Go, which package engine interprets; they can
// import compiled packages (package bindings) and others.
//
// A Session is one interpreter. Run executes a cell and sends its output to an Output; Complete, Inspect and IsComplete
// serve an editor. All of them can be called from any goroutine and wait for each other. A value from the channel
// Output.Interrupts ends the running cell.
//
// In addition to plain Go, cells can use:
//
//	ctx                       the cell's context, which an interrupt cancels; context.Background() is the same
//	Display(v)                show a value
//	DisplayID(id, v)          show it with a name
//	Update(id, v)             replace the value with that name
//	Clear()                   empty the cell's output
//	Input(prompt)             ask the reader for a line; Password(prompt) does not echo it
//	DataDirs                  folders to look for data in
//	Progress()                a krrlab.Config.Monitor that shows one line; krrlab.New uses it if none is set
//	!cmd, %cd, %time, %doc and other commands: %help lists them
//	%%go                      compile the functions of the cell (package native)
//
// The value of the last expression is displayed, unless a semicolon follows. If the expression is a call, or has
// several values, and its last value is an error, then the cell fails with this error; a nil error is not displayed.
//
// Cells can contain any Go code. Packages of the standard library need no import. Packages that the go command finds
// are interpreted from their source (package modules). Errors of go/types are reported with the line numbers of the
// cell, before any of it runs.
//
// A name that is declared again with another type is a new variable; functions declared earlier continue to use the
// old one. After an error or an interrupt, the names declared by the failing statement and by later ones have the same
// meaning as before the cell. Adjacent declarations count as one statement, and their functions remain declared.
//
// A cell that an interrupt cannot stop, because it waits for a channel or a lock, is abandoned. The next cell runs
// concurrently with it, with all variables and a new context. Infinite recursion is stopped before it ends the
// process. runtime.Goexit ends only the cell. A panic, including one in a goroutine of the cell, becomes an error that
// names the line. Output arrives in the order of printing (for os.Stdout and os.Stderr, each in its own order), in
// whole characters, and is cut after 4 MiB per cell.
//
// A process has at most one Session, because the session redirects os.Stdout and os.Stderr.
package golang
