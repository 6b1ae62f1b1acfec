// Package plural writes a count with its noun: 1 iteration, 2 iterations.
package plural

import "strconv"

// Count writes n and the noun, with an s unless n is 1 or −1.
func Count(n int, noun string) string {
	if n != 1 && n != -1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
