package krrlab

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
)

// Header says which problem a stage is about: the first fields of its JSON.
type Header struct {
	Dataset string      `json:"dataset"`
	Source  string      `json:"source,omitempty"` // files or generator the points came from
	Note    string      `json:"note,omitempty"`   // what is special about the data: a subset, a stand-in
	Task    string      `json:"task"`
	N       int         `json:"n"`
	D       int         `json:"d"`
	T       int         `json:"t"` // right-hand sides
	Kernel  kernel.Spec `json:"kernel"`
	Lambda  float64     `json:"lambda"`
	Tol     float64     `json:"tol"` // τ
	Seed    uint64      `json:"seed"`
}

// header returns the lab's.
func (l *Lab) header() Header {
	n, d, t := l.Dims()
	spec, err := kernel.ToSpec(l.cfg.Kernel)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: l.cfg.Kernel.String()}
	}
	return Header{
		Dataset: l.train.Name, Source: l.train.Source, Task: l.train.Task.String(), N: n, D: d, T: t,
		Kernel: spec, Lambda: l.cfg.Lambda, Tol: l.cfg.Tol, Seed: l.cfg.Seed,
	}
}

// dataText names the data and their sizes.
func (h *Header) dataText() string {
	name := h.Dataset
	if h.Note != "" {
		name += " (" + h.Note + ")"
	}
	return fmt.Sprintf("%s: %s, n = %d, d = %d, t = %d", name, h.Task, h.N, h.D, h.T)
}

// problemText names the kernel and λ.
func (h *Header) problemText() string {
	return fmt.Sprintf("kernel %s, λ = %g", kernelWords(h.Kernel), h.Lambda)
}
