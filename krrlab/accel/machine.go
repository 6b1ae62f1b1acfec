package accel

import (
	"cmp"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// CPUInfo describes the processor.
type CPUInfo struct {
	Model    string   // name that the system reports; empty if it reports none
	Arch     string   // "amd64", "arm64", …
	Cores    int      // number of logical cores that this process may run on
	Features []string // instruction sets that matter here: avx, avx2, fma, avx512f, …
}

// CPU describes the processor that the program runs on.
func CPU() CPUInfo { return hostMachine.cpu() }

// machine holds the sources of facts about the machine. Tests replace them.
type machine struct {
	fs        fs.FS                         // root file system
	physical  func() uint64                 // bytes of physical memory, used if /proc/meminfo lacks them; 0 if unknown
	model     func() string                 // name of the processor, used if /proc/cpuinfo lacks it
	ownLimits func() []limit                // memory limits that apply to the process itself
	maxRSS    func() (bytes int64, ok bool) // peak resident memory, used if /proc/self/status lacks it
}

// hostMachine is the machine that the program runs on.
var hostMachine = machine{os.DirFS("/"), physicalMemory, cpuModel, processLimits, maxRSS}

// read returns the text of a file, or "" if it cannot be read.
func (m machine) read(name string) string {
	data, err := fs.ReadFile(m.fs, strings.TrimPrefix(name, "/"))
	if err != nil {
		return ""
	}
	return string(data)
}

// cpu describes the processor.
func (m machine) cpu() CPUInfo {
	info := CPUInfo{Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Features: features()}
	for line := range strings.Lines(m.read("/proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			info.Model = cmp.Or(info.Model, strings.TrimSpace(value))
		}
	}
	if info.Model == "" {
		info.Model = m.model()
	}
	return info
}

// features returns the names of the processor's instruction sets that matter here.
func features() []string {
	var names []string
	addIf := func(hasFeature bool, name string) {
		if hasFeature {
			names = append(names, name)
		}
	}
	addIf(cpu.X86.HasSSE42, "sse4.2")
	addIf(cpu.X86.HasAVX, "avx")
	addIf(cpu.X86.HasAVX2, "avx2")
	addIf(cpu.X86.HasFMA, "fma")
	addIf(cpu.X86.HasAVX512F, "avx512f")
	addIf(cpu.X86.HasAVX512BW, "avx512bw")
	addIf(cpu.X86.HasAVX512DQ, "avx512dq")
	addIf(cpu.X86.HasAVX512VL, "avx512vl")
	addIf(cpu.X86.HasAVX512VNNI, "avx512vnni")
	addIf(cpu.X86.HasAVX512BF16, "avx512bf16")
	addIf(cpu.X86.HasAMXTile, "amx")
	addIf(cpu.ARM64.HasASIMD, "asimd")
	addIf(cpu.ARM64.HasFPHP, "fp16")
	addIf(cpu.ARM64.HasASIMDDP, "dotprod")
	addIf(cpu.ARM64.HasSVE, "sve")
	addIf(cpu.ARM64.HasSVE2, "sve2")
	return names
}
