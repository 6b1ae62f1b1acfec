// Package plan chooses a method for solving a problem. Options.Run lists the candidates for a Task, predicts the
// seconds and bytes of each one, and returns a Plan with the fastest candidate that fits into memory.
//
// Seconds and bytes are operation counts multiplied by the rates of the machine (package cost). Iteration counts come
// from a rule of thumb that uses properties of the spectrum of K; a Pilot estimates these properties from a random
// sample of the points. Each kind of preconditioner reports its costs, its iterations and the configurations worth
// proposing (package recipe).
//
// docs/stages/plan.md describes the method; docs/sizing.md predicts the paper's runs with Machines.Scale.
package plan
