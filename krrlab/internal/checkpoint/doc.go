// Package checkpoint keeps the states of long computations in files of one folder, so that
// one survives whatever happens while the next is written. A file is whole or absent
// (package atomicfile), names its format's version and the computation it belongs to, and
// ends with a checksum of all before. The two newest are kept: where the newest is damaged,
// the one before it serves. A run has its folder for itself: a lock keeps others out, which the
// system lets go of when the process ends, however it ends. File systems without locks have none.
package checkpoint
