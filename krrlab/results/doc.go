// Package results is what the stages of a krrlab.Lab return: numbers that can be looked at, as lines, a table, a
// picture and JSON (stage.Stage). No K and no Lab is needed for that: a result read from a file that krrlab wrote
// shows the same as the one that was computed.
//
//	Solution    the answer, its residuals and bounds        Lab.Solve, packages pcg, direct and bound
//	LeaveOneOut the leave-one-out error and GCV for each λ  Lab.LeaveOneOut, package loo
package results
