package datasets

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is the most bytes of a text from outside that an error repeats.
const maxQuoted = 80

// quote returns the text in quotes, what does not print escaped, a long one cut.
func quote[T string | []byte](text T) string {
	if len(text) <= maxQuoted {
		return strconv.Quote(string(text))
	}
	k := maxQuoted
	for k > maxQuoted-utf8.UTFMax && !utf8.RuneStart(text[k]) {
		k--
	}
	return strconv.Quote(string(text[:k])) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}
