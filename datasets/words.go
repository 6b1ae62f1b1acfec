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

// wordForms returns what words are compared by, in order: their text, their wordKey, and that in lower case.
func wordForms(word string) [3]string {
	key := wordKey(word)
	return [3]string{word, key, strings.ToLower(key)}
}

// wordIndex has the places of the words of a list, by each of their wordForms.
type wordIndex [3]map[string]int

func newWordIndex(words []string) *wordIndex {
	x := &wordIndex{{}, {}, {}}
	for i, word := range words {
		for k, form := range wordForms(word) {
			place := i
			if _, known := x[k][form]; known {
				place = severalPlaces
			}
			x[k][form] = place
		}
	}
	return x
}

// equalWords writes that a word was taken for another one, for a note.
func equalWords(word, other string) string { return quote(word) + " = " + quote(other) }

// find returns the place of a word in the list: of the same text, else of the same wordKey, else of the only word that
// differs in upper and lower case alone, which caseDiffers reports. It is noPlace or severalPlaces where there is no
// such word, or more than one.
func (x *wordIndex) find(word string) (i int, caseDiffers bool) {
	for k, form := range wordForms(word) {
		caseDiffers = k == 2
		if i, ok := x[k][form]; ok && !(caseDiffers && i == severalPlaces) {
			return i, caseDiffers
		}
	}
	return noPlace, false
}
