// Package notebooks holds the Jupyter notebooks of the laboratory, with their outputs.
//
// Each notebook explains one part of the method and runs on krrlab's own kernel (package krrlab/notebook). The package
// has no code. Its tests compile the cells of every notebook and run notebooks from top to bottom, by krrlab itself and
// by Debian's nbclient on the installed kernel. The default tests run some of them, with few points, as the metadata of
// each notebook define; a long suite runs all of them, and with KRRLAB_LONG=1 with all points.
package notebooks
