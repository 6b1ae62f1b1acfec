// Package remote sends the stages of a krrlab.Lab to ranks, on this machine or on others. With a
// Backend in its configuration Solve, StatDim, SketchSize, MultiLevel, LambdaP and Quality write a job
// (configuration, stage and options as JSON, the data beside it as a model file), start
//
//	mpirun -n Ranks krrlab job FILE
//
// or srun, pass on the progress to Config.Monitor, and return the stage's value from its JSON.
// When the context ends the ranks are ended, and what they have until then is returned as
// in one process. The answers are those of ranks (Config.Comm), whatever their number. RunJob is the
// ranks' side.
//
// A user-defined kernel or feature map cannot be serialized; krrlab.New rejects it.
package remote
