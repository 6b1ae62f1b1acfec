package datasets

import (
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// wordKey returns a normal form of labels, values of categories and names of columns: people regard texts with equal
// keys as equal. The key of a whole number is its value, if the text says no more than the value (1, +1, 1.0 and 1e0,
// but not 01). The key of a boolean (True, TRUE) is in lower case. The key of other texts (01234, 1.10, numbers of 16
// digits) is their composed form in Unicode (NFC).
func wordKey(text string) string {
	if v, ok := wholeValue(text); ok {
		return strconv.FormatFloat(v+0, 'f', -1, 64) // v+0, because −0+0 = 0
	}
	if lower := strings.ToLower(text); lower == "true" || lower == "false" {
		return lower
	}
	return norm.NFC.String(text)
}

// wordSet collects the words of labels or of a category. Texts with the same wordKey are one word.
type wordSet struct {
	// words has one text for each word, in the order of first occurrence: the text of the word if it always occurs with
	// the same text, else its wordKey.
	words  []string
	codeOf map[string]int // index in words of each wordKey
}

// newWordSet returns an empty set.
func newWordSet() *wordSet { return &wordSet{codeOf: map[string]int{}} }

// add adds the text to the set, and returns the index of its word.
func (s *wordSet) add(text string) (code int) {
	key := wordKey(text)
	code, exists := s.codeOf[key]
	if !exists {
		code = len(s.words)
		s.codeOf[key], s.words = code, append(s.words, strings.Clone(text))
	} else if s.words[code] != text {
		s.words[code] = key
	}
	return code
}

// Results of a search for a word in a list without a single match.
const (
	notFound  = -1 // no word of the list matches
	ambiguous = -2 // several words of the list match
)

// wordForms returns the forms by which a word is compared, in this order: its text, its wordKey, and the key in lower
// case.
func wordForms(word string) [3]string {
	key := wordKey(word)
	return [3]string{word, key, strings.ToLower(key)}
}

// wordIndex maps the words of a list to their indices in the list, for each of the wordForms.
type wordIndex [3]map[string]int

// newWordIndex returns the index of a list.
func newWordIndex(words []string) *wordIndex {
	x := &wordIndex{{}, {}, {}}
	for i, word := range words {
		for k, form := range wordForms(word) {
			index := i
			if _, exists := x[k][form]; exists {
				index = ambiguous
			}
			x[k][form] = index
		}
	}
	return x
}

// equalityNote describes in a note that word was read as target.
func equalityNote(word, target string) string { return quote(word) + " = " + quote(target) }

// find returns the index in the list of the word with the same text. If there is none, it returns the index of the word
// with the same wordKey, and if there is none either, the index of the only word that differs in case alone;
// caseDiffers reports the last case. It returns notFound if there is no such word, and ambiguous if there are several.
func (x *wordIndex) find(word string) (i int, caseDiffers bool) {
	for k, form := range wordForms(word) {
		caseDiffers = k == 2
		if i, ok := x[k][form]; ok && !(caseDiffers && i == ambiguous) {
			return i, caseDiffers
		}
	}
	return notFound, false
}
