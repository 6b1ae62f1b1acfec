package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vex emits the bytes of an AMX instruction, which neither avo nor Go's assembler supports: VEX.128.pp.0F38.W0 op, with
// the second source v, which is 0 if there is none. Only the first eight general registers can hold addresses.
func vex(pp, op, v byte, operands ...byte) {
	for _, b := range append([]byte{0xc4, 0xe2, 0x78&^(v<<3) | pp, op}, operands...) {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}})
	}
}

// These constants encode registers in instructions.
const rax, rcx, rdx, rbx, rsi, rdi = 0, 1, 2, 3, 6, 7

// memory emits the load or store of tile t at base + disp, for pp = load16 or store16. step is the register with the
// distance of the rows in bytes.
func memory(pp, t, base, step, disp byte) { vex(pp, 0x4b, 0, 0x44|t<<3, step<<3|base, disp) }

// load16 and store16 are the prefixes pp of the instructions TILELOADD and TILESTORED.
const load16, store16 = 3, 2

// amx generates the kernel for bytes. It uses eight tiles of 16 rows of 64 bytes: four for sums, two for A, two for B.
func amx() {
	begin("igemm32x32", "func(k int, a, b *uint32, start, c *int32, ldc int)",
		"igemm32x32 is a micro-kernel of AMX; see byteKernel.")
	// The configuration: palette 1, and 64 bytes in each of 16 rows of the tiles 0 to 7.
	config := GLOBL("tiles", 8|16) // RODATA|NOPTR
	for index, word := range [8]uint64{1, 0, 0x40004000400040, 0x40004000400040, 0, 0, 0x1010101010101010, 0} {
		DATA(8*index, U64(word))
	}
	LEAQ(config, RAX)
	vex(0, 0x49, 0, rax) // LDTILECFG
	for t := range byte(4) {
		vex(3, 0x49, 0, 0xc0|t<<3) // TILEZERO
	}
	halves := func(ptr, ld string) { // sets RAX and RSI to the two halves of 16 rows, and RBX to the distance of rows
		Load(Param(ptr), RAX)
		Load(Param(ld), RBX)
		SHLQ(Imm(2), RBX)
		MOVQ(RBX, RSI)
		SHLQ(Imm(4), RSI)
		ADDQ(RAX, RSI)
	}
	halves("a", "k")
	Load(Param("b"), RDX)
	Load(Param("k"), RCX)
	MOVQ(U32(128), RDI)
	Label("turn")
	memory(load16, 4, rax, rbx, 0)
	memory(load16, 6, rdx, rdi, 0)
	memory(load16, 5, rsi, rbx, 0)
	memory(load16, 7, rdx, rdi, 64)
	for t := range byte(4) {
		vex(0, 0x5e, 6+t%2, 0xc0|t<<3|4+t/2) // TDPBUUD
	}
	ADDQ(Imm(64), RAX)
	ADDQ(Imm(64), RSI)
	ADDQ(U32(16*128), RDX)
	SUBQ(Imm(16), RCX)
	JNZ(LabelRef("turn"))
	halves("c", "ldc")
	for t := range byte(4) {
		memory(store16, t, []byte{rax, rsi}[t/2], rbx, 64*(t%2))
	}
	vex(0, 0x49, 0, 0xc0) // TILERELEASE
	RET()
}

// permit generates the system call of Linux that allows the process to use tiles.
func permit() {
	begin("permit", "func() int", "permit asks Linux to let the process use the tiles of AMX, by "+
		"arch_prctl(ARCH_REQ_XCOMP_PERM, 18). It returns 0 if Linux does.")
	const archPrctl, requestPermission, tileData = 158, 0x1023, 18
	MOVQ(U32(archPrctl), RAX)
	MOVQ(U32(requestPermission), RDI)
	MOVQ(U32(tileData), RSI)
	SYSCALL()
	Store(RAX, ReturnIndex(0))
	RET()
}
