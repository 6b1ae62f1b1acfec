package datasets

import (
	"strconv"
	"unicode"
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

// printable returns the text as it is if all of it prints, and else in quotes, the rest escaped.
func printable(text string) string {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// plain is printable for a name from a file, cut like a quote if it is long.
func plain(text string) string {
	if len(text) > maxQuoted {
		return quote(text)
	}
	return printable(text)
}
