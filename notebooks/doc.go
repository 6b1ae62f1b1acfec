// Package notebooks holds the Jupyter notebooks of the laboratory, with their outputs.
// Each walks through one part of the method on krrlab's own kernel (package
// krrlab/notebook). The package has no code; its tests run every notebook from top to
// bottom, by krrlab itself and by Debian's nbclient on the installed kernel, with few
// points (the parameters that the notebook's metadata name), and whole where KRRLAB_LONG is set.
package notebooks
