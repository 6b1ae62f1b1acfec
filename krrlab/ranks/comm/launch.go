package comm

import (
	"slices"
	"strconv"
	"time"
)

// Launch describes how a launcher started this process as a rank.
type Launch struct {
	Launcher string // "Open MPI", "MPICH", "PMIx" or "Slurm"
	Rank     int
	Size     int // 0 if the launcher does not announce it
	// NoPMI reports that srun started the ranks without the process manager interface that MPI ranks need to find
	// each other.
	NoPMI bool
	// RequestedCPUs reports that the user requested a number of processors per rank from Slurm.
	RequestedCPUs bool
	// LostHostTimeout is the time after which the launcher notices that a host is unreachable and ends the run; 0 if
	// unknown.
	LostHostTimeout time.Duration
}

// launchers lists the environment variables with the rank and the number of ranks that each launcher sets. Intel MPI
// and MVAPICH use those of MPICH's launcher, Hydra. The variables of Slurm are those of a job step, which srun starts;
// a batch script also sees the size of the job but is not a rank. PMIx, with which srun starts ranks of Open MPI, does
// not announce the number of ranks.
var launchers = []struct{ name, rank, size string }{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MPICH", "PMI_RANK", "PMI_SIZE"},
	{"PMIx", "PMIX_RANK", ""},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}

// DetectLaunch determines from the environment how the process was started as a rank. It returns false if the process
// is not a rank. It loads no library.
func DetectLaunch(getenv func(string) string) (Launch, bool) {
	requestedCPUs := getenv("SLURM_CPUS_PER_TASK") != ""
	for _, variables := range launchers {
		rank, err := strconv.Atoi(getenv(variables.rank))
		if err != nil || rank < 0 {
			continue
		}
		if variables.size == "" {
			launch := Launch{Launcher: variables.name, Rank: rank, Size: stepSize(getenv, rank),
				RequestedCPUs: requestedCPUs}
			return launch, true
		}
		size, err := strconv.Atoi(getenv(variables.size))
		// A Slurm step of one task is an ordinary process.
		if err != nil || size < 1 || variables.name == "Slurm" && size == 1 {
			continue
		}
		launch := Launch{Launcher: variables.name, Rank: rank, Size: size, RequestedCPUs: requestedCPUs}
		switch variables.name {
		case "Open MPI":
			launch.LostHostTimeout = openMPILostHostTimeout(getenv)
		case "Slurm": // srun offers no PMI under these names of SLURM_MPI_TYPE; a plugin with another name may
			launch.NoPMI = slices.Contains([]string{"", "none", "pmix", "pmi2"}, getenv("SLURM_MPI_TYPE"))
		}
		return launch, true
	}
	return Launch{}, false
}

// stepSize returns the number of ranks of the srun job step if its environment agrees that this process is the given
// rank of a step with several ranks, and 0 otherwise.
func stepSize(getenv func(string) string, rank int) int {
	slurmRank, err := strconv.Atoi(getenv("SLURM_PROCID"))
	size, sizeErr := strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || sizeErr != nil || slurmRank != rank || size < 2 {
		return 0
	}
	return size
}

// openMPILostHostTimeout returns the time after which mpirun of Open MPI 4 and its daemons give up a silent
// connection. TCP keep-alive starts after some seconds of silence and sends a number of probes; getenv returns these
// settings, and the defaults of Open MPI apply to those that are not set.
func openMPILostHostTimeout(getenv func(string) string) time.Duration {
	seconds := func(name string, def int) int {
		if v, err := strconv.Atoi(getenv("OMPI_MCA_oob_tcp_keepalive_" + name)); err == nil && v > 0 {
			return v
		}
		return def
	}
	return time.Duration(seconds("time", 300)+seconds("intvl", 20)*seconds("probes", 9)) * time.Second
}
