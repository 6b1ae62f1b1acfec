package testkit_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

func ExampleJSONWithoutTimes() {
	v := map[string]any{"n": 3, "solve_seconds": 1.5, "levels": []any{map[string]any{"best_seconds": 1, "s": 7}}}
	fmt.Println(testkit.JSONWithoutTimes(v, func(key string, _ map[string]any) bool { return key == "n" }))
	// Output: map[levels:[map[s:7]]]
}
