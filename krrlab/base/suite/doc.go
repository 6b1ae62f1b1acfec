// Package suite says how much the tests do: what make test has time for on every change, the long suites that rows of
// .ci/machines run in turn, or all that make test-long runs. It is for tests only, and the one place that decides.
package suite
