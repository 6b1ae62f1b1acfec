// Package panel makes a panel of controls for a struct of options: the exploration of a stage of the laboratory, or of
// a function of a notebook.
//
// Every option that package schema knows becomes a control: a slider where the option has a number and a range can be
// derived, a choice where its values are a list, a check box, or else a text. The subject runs in the background when a
// control moves. A newer setting cancels the run of an older one; the panel shows progress, and then the result and the
// Go code of the setting that it belongs to.
//
// A slider's range is the interval of the option's check. An open end is replaced: whole numbers go up to four times
// the current value, positive numbers from a thousandth to a thousand times the current value on a logarithmic scale.
package panel
