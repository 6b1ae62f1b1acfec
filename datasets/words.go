package datasets

import (
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// wordKey returns the text that labels, values of categories and names of columns have in common if people take them
// for the same: whole numbers whose text says nothing but their value (1, +1, 1.0, 1e0, but not 01) have that value,
// booleans (True, TRUE) are in lower case, and other texts (01234, 1.10, numbers of 16 digits) are in the composed form
// of Unicode (NFC).
func wordKey(text string) string {
	if v, ok := value(text); ok {
		return strconv.FormatFloat(v+0, 'f', -1, 64) // −0+0 = 0
	}
	if lower := strings.ToLower(text); lower == "true" || lower == "false" {
		return lower
	}
	return norm.NFC.String(text)
}

// Places of words that a list does not have, or that several of its words may stand for.
const (
	noPlace       = -1
	severalPlaces = -2
)

// wordIndex finds words in a list: by their text, their wordKey, and their wordKey in lower case.
type wordIndex struct{ texts, keys, folds map[string]int }

func newWordIndex(words []string) *wordIndex {
	x := &wordIndex{map[string]int{}, map[string]int{}, map[string]int{}}
	for i, w := range words {
		key := wordKey(w)
		addPlace(x.texts, w, i)
		addPlace(x.keys, key, i)
		addPlace(x.folds, strings.ToLower(key), i)
	}
	return x
}

func addPlace(places map[string]int, word string, i int) {
	if _, known := places[word]; known {
		i = severalPlaces
	}
	places[word] = i
}

// equalWords writes that a word was taken for another one, for a note.
func equalWords(word, other string) string { return quote(word) + " = " + quote(other) }

// find returns the place of a word in the list: of the same text, else of the same wordKey, else of the only word that
// differs in upper and lower case alone, which caseDiffers reports. It is noPlace or severalPlaces where there is no
// such word, or more than one.
func (x *wordIndex) find(word string) (i int, caseDiffers bool) {
	if i, ok := x.texts[word]; ok {
		return i, false
	}
	key := wordKey(word)
	if i, ok := x.keys[key]; ok {
		return i, false
	}
	if i, ok := x.folds[strings.ToLower(key)]; ok && i >= 0 {
		return i, true
	}
	return noPlace, false
}
