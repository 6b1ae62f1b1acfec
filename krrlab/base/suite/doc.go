// Package suite determines the size of the tests: small ones for make test, which runs on every change; long suites,
// which the rows of .ci/machines run; or everything, for make test-long. Only tests use it, and no other package
// decides this.
package suite
