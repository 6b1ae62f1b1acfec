package schema

import "strings"

// Nearest returns the word that a mistyped one most likely stands for: the first one with the smallest edit distance.
// It returns "" if every distance is larger than n/3+1, rounded down, where n is the length of typed in bytes. Case is
// ignored, and a word that begins with the typed text has distance at most 1.
func Nearest(typed string, words []string) (word string) {
	typed = strings.ToLower(typed)
	limit := len(typed)/3 + 2 // the accepted distance is below limit
	for _, candidate := range words {
		lower := strings.ToLower(candidate)
		edits := distance(typed, lower)
		if typed != "" && strings.HasPrefix(lower, typed) {
			edits = min(edits, 1)
		}
		if edits < limit {
			word, limit = candidate, edits
		}
	}
	return word
}

// distance returns Levenshtein's edit distance, the smallest number of bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is the distance of a[:i] and b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
