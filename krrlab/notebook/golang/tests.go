package golang

import (
	"flag"
	"sync/atomic"
	"testing"
)

// preparedTests is whether package testing knows how often to run a test: testing.RunTests runs none at all, and says
// that all passed, until its Main has begun, which go test alone does.
var preparedTests atomic.Bool

func init() { preparedTests.Store(testing.Testing()) }

// prepareTests begins testing.Main and leaves it, by a panic out of the first match of a name, once it has read its
// flags.
func prepareTests() {
	if preparedTests.Swap(true) {
		return
	}
	testing.Init()
	if !flag.Parsed() { // else Main would parse the arguments of the program
		_ = flag.CommandLine.Parse(nil)
	}
	type begun struct{}
	run := flag.Lookup("test.run").Value
	old := run.String()
	_ = run.Set("^$")
	defer func() {
		_ = run.Set(old)
		if _, ok := recover().(begun); !ok {
			panic("golang: testing.Main did not match names")
		}
	}()
	testing.Main(func(string, string) (bool, error) { panic(begun{}) }, nil, nil, nil)
}
