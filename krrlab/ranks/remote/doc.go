// Package remote runs the stages of a krrlab.Lab on ranks, on this machine or on others. If the configuration has a
// Backend, then Solve, StatDim, SketchSize, MultiLevel, LambdaP and Quality write a job and start
//
//	mpirun -n Ranks krrlab job FILE
//
// or srun. A job consists of the configuration, the stage and its options as JSON, and a separate model file with the
// data. While the ranks run, their progress events are passed to Config.Monitor; afterwards the value of the stage is
// read from its JSON. If the context ends, the ranks are stopped, and their partial result is returned as in one
// process. The answers are those of a distributed run (Config.Comm) and do not depend on the number of ranks. RunJob
// is the code that the ranks run.
//
// A user-defined kernel or feature map cannot be serialized; krrlab.New rejects it.
package remote
