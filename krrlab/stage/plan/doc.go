// Package plan chooses a way to solve a problem: Options.Run lists the candidates of a Task, predicts each one's seconds
// and bytes from the rates of the machine (package cost) and its iterations on the spectrum of K, of which a Pilot, a
// subsample of the points, tells, and returns a Plan. Which preconditioners there are, what they cost and when they are
// worth proposing their kinds say (package recipe). docs/stages/plan.md has the method, docs/sizing.md the paper's runs
// (Machines.Scale).
package plan
