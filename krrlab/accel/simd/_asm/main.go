// Command asm writes the assembly of package simd and its Go declarations:
//
//	cd krrlab/accel/simd && go generate
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	for name, make := range map[string]printer.Builder{
		"simd_amd64.s":  printer.NewGoAsm,
		"stub_amd64.go": printer.NewStubs,
	} {
		out, err := text(make)
		if err == nil {
			err = os.WriteFile("../"+name, out, 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// text prints the routines in one form.
func text(make printer.Builder) ([]byte, error) {
	f, err := file()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, err
	}
	for _, fn := range f.Functions() {
		if err := registers(fn); err != nil {
			return nil, err
		}
	}
	return make(printer.Config{
		Name: "krrlab/accel/simd/_asm with avo v0.6.0, run by go generate in krrlab/accel/simd",
		Pkg:  "simd",
	}).Print(f)
}

// registers reports a routine of AVX2 that uses more than the 16 registers of AVX2: avo goes
// on to those of AVX-512.
func registers(fn *ir.Function) error {
	if !strings.HasSuffix(fn.Name, avx2.name) {
		return nil
	}
	for _, i := range fn.Instructions() {
		for _, r := range i.Registers() {
			if p := reg.ToPhysical(r); p != nil && p.Kind() == reg.KindVector && p.PhysicalIndex() > 15 {
				return fmt.Errorf("%s: %s uses %s", fn.Name, i.Opcode, p.Asm())
			}
		}
	}
	return nil
}

// file builds all routines.
func file() (*ir.File, error) {
	c := build.NewContext()
	clear(constants) // those of another file
	for _, s := range []set{avx2, avx512} {
		for _, f := range []format{float32s, fixed, float64s} {
			for _, shape := range s.shapes {
				tilePass{f, s, both, shape[0], shape[1], false}.build(c)
				if shape[0] > 1 {
					tilePass{f, s, both, shape[0], shape[1], true}.build(c)
				}
			}
		}
		for _, shape := range s.oneWay {
			for _, f := range []format{widened, float64s} {
				for _, w := range []way{forward, backward} {
					if w.adds && s.bytes == 32 && shape[1] > 4 {
						continue // a pass backward takes at most four right-hand sides with AVX2: see its kit
					}
					tilePass{f, s, w, shape[0], shape[1], false}.build(c)
					if shape[0] > 1 {
						tilePass{f, s, w, shape[0], shape[1], true}.build(c)
					}
				}
			}
		}
	}
	widen16(c)
	narrow16(c)
	exp(c)
	exp64(c)
	cos(c)
	gaussian(c, widened)
	gaussian(c, float64s)
	distances(c, widened)
	distances(c, float64s)
	round(c)
	gaussian(c, format{tile: "int32", stored: 4, load: (*build.Context).VCVTDQ2PD})
	butterfly(c, float32s)
	butterfly(c, float64s)
	addTo(c, float32s)
	addTo(c, float64s)
	magnitudes := bits(c, "magnitudes", 1<<63-1-1<<31)
	for _, s := range []set{avx2, avx512} {
		packing{Context: c, set: s, magnitude: magnitudes}.pack()
		packing{Context: c, set: s, magnitude: magnitudes}.unpack()
	}
	candidates(c, magnitudes)
	gather(c)
	gathers(c)
	magnitudes64 := bits(c, "magnitudes64", 1<<63-1)
	for _, s := range []set{avx2, avx512} {
		pairs(c, s, float32s, true, magnitudes)
		pairs(c, s, float64s, true, magnitudes64)
		pairs(c, s, float64s, false, magnitudes64)
	}
	return c.Result()
}
