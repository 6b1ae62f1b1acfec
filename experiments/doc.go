// Package experiments repeats the experiments of the paper. It contains their cases as data, a runner that measures
// them, and reports that compare our numbers with the published ones in tables and figures.
//
// The paper is Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression Using
// Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI
// 10.1137/16M1105396), section 6.
//
//	Experiment ── Plan(scale) ──► Entries: cases with their row and role
//	                                 │ Run: runs each case once and saves its result
//	                                 ▼
//	Report: entries with results ──► Table, Plot, Verdicts, Provenance, NotRun
//
// # Cases
//
// A Case contains everything that its result depends on: the data set, n, the kernel, and the options of krrlab.New
// (Config and PrecondSpec) or of a competing method. It is plain data, and two cases are the same if their JSON is
// equal. Equal cases are run once, even if several experiments need them. Predict returns the plan of a run, with the
// seconds and bytes of each case predicted by a cost model (package cost, with the Rates of Options). Run runs the
// plan.
//
// Run orders the cases so that those with the same data set, n, kernel and λ follow each other. They share K and, if
// possible, the features and their Gram matrix (krrlab.Lab.With). The seconds of a result are the seconds of the case
// run alone: the time of forming a shared matrix is added to every case that uses it.
//
// If a case fails, lacks its data or does not fit into the memory, its result contains the reason and the other cases
// are still run. With Options.Out, the reports are written whenever a case ends, and a run uses the results that they
// already contain. The same call therefore continues an interrupted run.
//
// # Scales
//
// Smoke takes seconds and needs no data. Laptop takes about an hour per experiment on two cores. Paper has the
// published sizes. If the data of a row are not all of the paper's data, the row's name says so: it is a subset, the
// first rows, or a stand-in (another data set). Such a row has no ratio to the published numbers.
//
// # Reports
//
// A Report contains only entries and results; its JSON is stored in the folder results. Tables, figures, verdicts and
// text are functions of the report that use neither the clock nor the data. The same report therefore gives the same
// bytes (WriteFiles; `make figures`). A number that was not measured is blank.
//
// A Verdict states whether a claim holds, fails or is left open by the results.
//
// # How to add one
//
// To add a table or a figure, define an Experiment and add it to registry. Its Plan lists the entries for each scale.
// Its other functions make the table, the figure and the verdicts from the results; Report.Find returns the entries of
// a row and a role, one for each seed.
//
// # The published numbers
//
// Published returns one of the paper's five tables:
//
//	table1  time, iterations and error of the method on EC2
//	table2  the same with another ridge λ_p in the preconditioner
//	table3  against a random features solver by block ADMM
//	table4  against conjugate gradients without preconditioner
//	table5  tolerances of 1e-2 and 1e-3
//
// The transcription contains the numbers as printed, including contradictions (see theory/ERRATA.md, point 13).
// Percentages are written as fractions, 1.33 % as 0.0133; times are in seconds on the machines named; a cell that is
// blank in the paper is blank here, and FAIL stays a word. For regression an error is ‖ŷ−y‖₂/‖y‖₂.
//
// The folder peers contains programs for comparisons with other software. They are scripts for packages that Debian
// installs, and no Go code depends on them.
package experiments
