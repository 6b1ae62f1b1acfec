// Package notebook is the Jupyter kernel of krrlab: Go cells with the laboratory, gonum,
// gonum/plot and gota linked in.
//
// Kernel serves one front end, as the command `krrlab kernel FILE` does; Install and
// Uninstall register it with Jupyter and remove it; Run runs a notebook from top to bottom without Jupyter.
// The language of the cells is that of gophernotes (package golang lists additions
// and workarounds), the protocol is in package jupyter, what cells may import in
// package bindings, how values show themselves in package display.
package notebook
