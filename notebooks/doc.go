// Package notebooks holds the Jupyter notebooks of the laboratory, with their outputs.
// Each walks through one part of the method on krrlab's own kernel (package
// krrlab/notebook). The package has no code; its tests run every notebook from top to
// bottom, by krrlab itself and by Debian's nbclient on the installed kernel, in the smoke
// mode that the variable KRRLAB_SMOKE switches on, and whole where KRRLAB_LONG is set.
package notebooks
