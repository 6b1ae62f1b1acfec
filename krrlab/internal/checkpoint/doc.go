// Package checkpoint keeps the states of long computations in files of one folder, so that
// one survives whatever happens while the next is written. A file is whole or absent
// (package atomicfile), names its format's version and the computation it belongs to, and
// ends with a checksum of all before. The two newest are kept: where the newest is damaged,
// the one before it serves. Use it from one process at a time.
package checkpoint
