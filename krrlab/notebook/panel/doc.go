// Package panel makes a panel of controls for a struct of options: the exploration of a stage of the laboratory, or of
// a function of a notebook.
//
// Every option that package schema knows becomes a control: a slider if the option is a number with a range, a dropdown
// list if the option has a list of values, a check box for a bool, and otherwise a text field. The subject runs in the
// background when a control moves. A newer setting cancels the run of an older one; the panel shows the progress of the
// run, and then the result and the Go code of its setting.
//
// A slider's range is the interval of the option's check. An open end is replaced: whole numbers go up to four times
// the current value, positive numbers from a thousandth to a thousand times the current value on a logarithmic scale.
package panel
