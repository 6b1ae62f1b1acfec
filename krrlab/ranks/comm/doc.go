// Package comm implements collective operations (sums, gathers, broadcasts) between the ranks of a distributed run. A
// rank is one of P processes that all run the same program on parts of one problem.
//
// # Three implementations
//
// Comm is the interface. Distributed code takes a Comm and does not depend on the implementation:
//
//	Alone()              one rank; every collective is the identity; for a process without ranks
//	Local(p, limit)      p ranks that are goroutines of this process; for tests
//	Open(launch, limit)  the ranks that mpirun, mpiexec or srun started; uses MPI
//
// The tests of this package check the same requirements for all three (checkConformance).
//
// # MPI without cgo
//
// Open loads Open MPI (4.x) or MPICH (3.x, 4.x and libraries with the same ABI) at run time with dlopen, so one
// static binary works with all of them. In Open MPI's ABI, handles are addresses of variables of the library
// (ompi_mpi_comm_world, ompi_mpi_byte, ompi_mpi_op_sum, …); in MPICH's ABI they are integer constants. All MPI calls
// are made by one locked operating-system thread, the one that initialized MPI (MPI_THREAD_FUNNELED). MPI-3 cannot
// express counts above 2³¹−1; larger messages are sent in pieces.
//
// DetectLaunch determines from the environment whether the process was started as a rank, without loading a library. A
// rank gets an error if its library cannot be loaded, or if MPI reports another rank or another number of ranks than
// the launcher announced. Such a rank must not continue alone, or P processes would solve the whole problem P times.
//
// # Guarantees of a collective
//
// All ranks of a Comm call the same collectives in the same order with the same lengths. Each call returns when the
// part of this rank is done, or returns an *Error if the context ended, if the collective took longer than the
// limit (a peer has died, hangs, or cannot be reached), or if MPI failed. After an error the Comm is broken
// and every further call returns that error. The process should then report the error and call World.Abort, which
// also ends its peers.
//
// Sums must not depend on the number of ranks, so only integers are added. FixedPoint converts float64 numbers with a
// known bound to 64-bit fixed point, whose sums are exact and therefore independent of order and grouping.
// MergeDisjoint combines vectors in which each number is set on exactly one rank. A process without ranks uses Alone(),
// a single rank with the same fixed-point arithmetic, so its sums have the same bits as those of any number of ranks.
//
// # References
//
// MPI: A Message-Passing Interface Standard, version 3.1 (2015), chapters 5 (collectives), 8.7 (start and end) and
// 12.4 (threads). J. Demmel and H. D. Nguyen, Parallel reproducible summation, IEEE Trans. Comput. 64 (2015),
// doi:10.1109/TC.2014.2345391: sums that do not depend on the order; the bounds known here make one bin of 62 bits
// enough.
package comm
