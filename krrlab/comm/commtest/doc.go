// Package commtest is the conformance suite of comm.Comm: what every implementation must
// do, on any number of ranks. A test of an implementation starts its ranks and calls Run
// on all of them at once; Run returns what is wrong as that rank sees it. Failures of
// peers and the end of a context are not among the cases, as they break the group and end
// the processes of some implementations: those tests lie beside the implementations.
package commtest
