package comm

import (
	"strconv"
	"time"
)

// Launch says how the process was started as a rank.
type Launch struct {
	Launcher string // "Open MPI", "MPICH", "PMIx" or "Slurm"
	Rank     int
	Size     int // 0 if the launcher does not tell
	// Lost is how long the launcher takes to notice that a host cannot be reached any
	// more, and to end the run; 0 where that is not known.
	Lost time.Duration
}

// launchers lists the variables that a launcher sets for each rank it starts. Intel MPI
// and MVAPICH use those of MPICH's Hydra. Slurm's are of a job step, which srun starts;
// a batch script, which sees the job's size as well, is none. PMIx, by which srun starts ranks
// of Open MPI, does not tell the size.
var launchers = []struct{ name, rank, size string }{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MPICH", "PMI_RANK", "PMI_SIZE"},
	{"PMIx", "PMIX_RANK", ""},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}

// Detect returns how the process was started as a rank, judged by its environment, and
// false if it was not. It loads nothing.
func Detect(getenv func(string) string) (Launch, bool) {
	for _, l := range launchers {
		rank, err := strconv.Atoi(getenv(l.rank))
		if err != nil || rank < 0 {
			continue
		}
		if l.size == "" {
			return Launch{Launcher: l.name, Rank: rank, Size: stepSize(getenv, rank)}, true
		}
		size, err := strconv.Atoi(getenv(l.size))
		if err != nil || size < 1 || l.name == "Slurm" && size == 1 {
			continue
		}
		found := Launch{Launcher: l.name, Rank: rank, Size: size}
		if l.name == "Open MPI" {
			found.Lost = openMPILost(getenv)
		}
		return found, true
	}
	return Launch{}, false
}

// stepSize returns the number of ranks of the job step of srun in which this is that rank, 0 if
// it is not in one of several.
func stepSize(getenv func(string) string, rank int) int {
	id, err := strconv.Atoi(getenv("SLURM_PROCID"))
	size, e := strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || e != nil || id != rank || size < 2 {
		return 0
	}
	return size
}

// openMPILost returns when Open MPI 4's mpirun and its daemons give a silent connection up:
// TCP's keep-alive, after so many seconds of silence and so many probes; its defaults where
// nothing else was asked for.
func openMPILost(getenv func(string) string) time.Duration {
	seconds := func(name string, def int) int {
		if v, err := strconv.Atoi(getenv("OMPI_MCA_oob_tcp_keepalive_" + name)); err == nil && v > 0 {
			return v
		}
		return def
	}
	return time.Duration(seconds("time", 300)+seconds("intvl", 20)*seconds("probes", 9)) * time.Second
}
