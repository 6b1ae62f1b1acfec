// Package checkpoint saves the states of a long computation in files of one folder. Writing a new state never
// endangers the previous one: a file is written atomically (package atomicfile), it has the version of its format and
// the fingerprint of its computation, and it ends with a checksum of everything before. The two newest files remain
// in the folder; if the newest is damaged, the one before it is used.
//
// Only one run can use a folder at a time. A lock excludes others, and the system releases it when the process ends
// for any reason. On file systems without locks, runs are not excluded.
package checkpoint
