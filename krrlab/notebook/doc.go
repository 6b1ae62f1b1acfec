// Package notebook is the Jupyter kernel of krrlab. It runs Go cells that can use the laboratory, gonum, gonum/plot and
// gota.
//
// ServeKernel serves one front end, as the command `krrlab kernel FILE` does. InstallKernel and UninstallKernel
// register the kernel with Jupyter and remove it. Run runs a notebook from top to bottom without Jupyter. The cells are
// written as in gophernotes; package golang lists additions and workarounds. Package jupyter implements the protocol,
// package bindings contains the packages that cells can import, and package display determines how values are shown.
package notebook
