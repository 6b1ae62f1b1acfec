package schema

import "strings"

// Nearest returns the word that a mistyped one most likely stands for, or "" if none is near: the first with the
// smallest edit distance, which may be at most a third of the letters and one. Letter case is ignored, and a word that
// begins with what was typed has distance 1.
func Nearest(typed string, words []string) (word string) {
	typed = strings.ToLower(typed)
	least := (len(typed)+3)/3 + 1
	for _, w := range words {
		lower := strings.ToLower(w)
		d := distance(typed, lower)
		if typed != "" && strings.HasPrefix(lower, typed) {
			d = min(d, 1)
		}
		if d < least {
			word, least = w, d
		}
	}
	return word
}

// distance returns Levenshtein's edit distance: how many letters are inserted, left out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
