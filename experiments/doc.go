// Package experiments repeats the tables and figures of the paper: each as data, a runner that
// measures, and reports with our numbers beside the published ones.
//
// The paper is Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression Using
// Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI
// 10.1137/16M1105396), section 6.
//
//	Experiment ── Plan(scale) ──► Entries: cases, each with its place
//	                                 │ Run: each case once, kept when done
//	                                 ▼
//	Report: entries with results ──► Table, Plot, Verdicts, Provenance, NotRun
//
// # Cases
//
// A Case says all that its result depends on: data, n, kernel, and the options of krrlab.New, of Config and
// PrecondSpec, or a rival's. It is plain data; its Key is a hash of it and of resultVersion. Cases
// of one Key are run once, whichever experiments ask for them. Predict says what a run would do, with
// the seconds and bytes of each case by a cost model (package plan, at the Rates of Options); Run does it.
//
// Run orders cases so that those of one data set, n, kernel and λ follow each other, share K, and where
// they can the features and their Gram matrix (krrlab.Lab.With). A result's seconds are
// those that the case takes alone: what was shared is charged what forming it took.
//
// A case that fails, lacks its data or does not fit the memory has the reason in its result, and the others go on. With
// Options.Out the reports are written when a case is done, and a run takes the results that they have: the same call
// continues one that was stopped.
//
// # Scales
//
// Smoke takes seconds and needs no data. Laptop takes about an hour per experiment on two cores.
// Paper has the published sizes. A row whose data are not the whole of the paper's says so:
// a subset, the first rows, a stand-in. Such a row has no ratio to the published numbers.
//
// # Reports
//
// A Report is entries and results, nothing else; its JSON is kept in the folder results. Tables, figures,
// verdicts and text are functions of it that read no clock and no data, so that the same
// report gives the same bytes (WriteFiles; `make figures`). A number that was not measured
// is blank.
//
// A Verdict is a claim with what the results say: it holds, it fails, or they leave it open.
//
// # How to add one
//
// A table or figure of your own is an Experiment: a Plan that lists entries for each scale, and
// what to make of their results, with Report.Find for the entries of a row and a role, one
// for each seed. Its line goes into registry.
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
// The transcription keeps what is printed, its contradictions included (see
// theory/ERRATA.md, point 13). Percentages are written as fractions, 1.33 % as 0.0133;
// times are in seconds on the machines named; a cell that is blank in the paper is
// blank here, and FAIL stays a word. For regression an error is ‖ŷ−y‖₂/‖y‖₂.
//
// The folder peers holds programs that other software is compared with. They are
// scripts for what Debian installs, and no Go code depends on them.
package experiments
