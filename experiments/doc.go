// Package experiments holds the paper's tables and, as they come, the programs that
// repeat them with our numbers beside the published ones.
//
// The paper is Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression Using
// Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI
// 10.1137/16M1105396), section 6. Published returns one of its five tables:
//
//	table1  time, iterations and error of the method on EC2
//	table2  the same with another ridge λ_p in the preconditioner
//	table3  against a random features solver by block ADMM
//	table4  against conjugate gradients without preconditioner
//	table5  tolerances of 1e-2 and 1e-3
//
// The transcription keeps what is printed, its contradictions included (see
// theory/ERRATA.md, point 13). Percentages are written as fractions, 1.33 % as 0.0133;
// times are in seconds on the machines named; a cell that is blank in the paper is
// blank here, and FAIL stays a word. For regression an error is ‖ŷ−y‖₂/‖y‖₂.
//
// The folder peers holds programs that other software is compared with. They are
// scripts for what Debian installs, and no Go code depends on them.
package experiments
