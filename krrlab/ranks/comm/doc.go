// Package comm lets the ranks of a distributed run add, gather and wait for each other.
// A rank is one of P processes that all run the same program on parts of one problem.
//
// # Three implementations
//
// Comm is the interface; what runs on ranks takes one and does not know which it is.
//
//	Alone()          one rank, every collective is the identity: a process without ranks
//	Local(p, o)      p ranks, goroutines of this process: for tests
//	Open(launch, o)  the ranks that mpirun, mpiexec or srun started, by MPI
//
// commtest is their conformance suite.
//
// # MPI without cgo
//
// Open finds Open MPI (4.x) or MPICH (3.x, 4.x and what shares its ABI) at run time with
// dlopen, so that the program is one static binary for all of them. In Open MPI's ABI
// handles are addresses of variables of the library (ompi_mpi_comm_world,
// ompi_mpi_double, ompi_mpi_op_sum, …); in MPICH's they are integer constants. Calls go
// through one locked operating-system thread, the one that initialized MPI
// (MPI_THREAD_FUNNELED). Counts above 2³¹−1, which MPI-3 cannot express, are sent in
// pieces.
//
// Detect tells from the environment whether the process was started as a rank, without
// loading anything. A rank whose library cannot be loaded, or that finds itself another
// rank, or with another number of ranks, than its launcher announced, gets an error: it must
// not go on alone, or P processes would solve the whole problem P times.
//
// # What a collective promises
//
// All ranks of a Comm call the same collectives in the same order with the same lengths.
// Each returns when this rank's part is done, or with an *Error: the context ended, the
// collective took longer than Options.Limit (a peer has died, hangs, or cannot be
// reached), or MPI failed. After an error the Comm is broken and every further call
// returns that error; a process should then say why and end with World.Abort, which ends its
// peers as well.
//
// Sums must not depend on the number of ranks, so only integers are added: Fixed turns float64 numbers of a known bound
// into 64-bit fixed point, whose sums are exact, so that order and grouping do not enter. Merge gives all ranks numbers
// that one each has. A process without ranks is one rank, Alone(), and adds in the same way, so that its sums have the
// bits of any number of ranks.
//
// # References
//
// MPI: A Message-Passing Interface Standard, version 3.1 (2015), chapters 5 (collectives),
// 8.7 (start and end) and 12.4 (threads). J. Demmel and H. D. Nguyen, Parallel
// reproducible summation, IEEE Trans. Comput. 64 (2015), doi:10.1109/TC.2014.2345391:
// sums that do not depend on the order; the bounds known here make one bin of 62 bits
// enough.
package comm
