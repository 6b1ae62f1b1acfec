package accel

import (
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// CPUInfo describes the processor.
type CPUInfo struct {
	Model    string   // as the system calls it; empty if it does not say
	Arch     string   // "amd64", "arm64", …
	Cores    int      // logical cores this process may run on
	Features []string // of those that matter here: avx, avx2, fma, avx512f, …
}

// CPU describes the processor that the program runs on.
func CPU() CPUInfo { return here.cpu() }

// machine is where facts about the machine are read from; tests have their own.
type machine struct {
	fs       fs.FS                         // the root file system
	physical func() uint64                 // bytes of memory if /proc/meminfo does not say; 0 = unknown
	model    func() string                 // of the processor if /proc/cpuinfo does not say
	limits   func() []limit                // limits that the process itself has
	maxRSS   func() (bytes int64, ok bool) // peak if /proc/self/status does not say
}

var here = machine{os.DirFS("/"), physicalMemory, cpuModel, processLimits, maxRSS}

// read returns the text of a file, "" if there is none.
func (m machine) read(name string) string {
	b, err := fs.ReadFile(m.fs, strings.TrimPrefix(name, "/"))
	if err != nil {
		return ""
	}
	return string(b)
}

func (m machine) cpu() CPUInfo {
	c := CPUInfo{Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Features: features()}
	for line := range strings.Lines(m.read("/proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			if c.Model == "" {
				c.Model = strings.TrimSpace(value)
			}
		}
	}
	if c.Model == "" {
		c.Model = m.model()
	}
	return c
}

func features() []string {
	var names []string
	add := func(has bool, name string) {
		if has {
			names = append(names, name)
		}
	}
	switch runtime.GOARCH {
	case "amd64", "386":
		add(cpu.X86.HasSSE42, "sse4.2")
		add(cpu.X86.HasAVX, "avx")
		add(cpu.X86.HasAVX2, "avx2")
		add(cpu.X86.HasFMA, "fma")
		add(cpu.X86.HasAVX512F, "avx512f")
		add(cpu.X86.HasAVX512BW, "avx512bw")
		add(cpu.X86.HasAVX512DQ, "avx512dq")
		add(cpu.X86.HasAVX512VL, "avx512vl")
		add(cpu.X86.HasAVX512VNNI, "avx512vnni")
		add(cpu.X86.HasAVX512BF16, "avx512bf16")
		add(cpu.X86.HasAMXTile, "amx")
	case "arm64":
		add(cpu.ARM64.HasASIMD, "asimd")
		add(cpu.ARM64.HasFPHP, "fp16")
		add(cpu.ARM64.HasASIMDDP, "dotprod")
		add(cpu.ARM64.HasSVE, "sve")
		add(cpu.ARM64.HasSVE2, "sve2")
	}
	return names
}
