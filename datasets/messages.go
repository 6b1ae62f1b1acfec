package datasets

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// maxQuotedBytes is the largest number of bytes of a text from a file or user that a message repeats, a judgment.
const maxQuotedBytes = 80

// quote returns the text in quotes, with unprintable characters escaped and at most maxQuotedBytes bytes of it.
func quote[T string | []byte](text T) string {
	if len(text) <= maxQuotedBytes {
		return strconv.Quote(string(text))
	}
	k := maxQuotedBytes
	for k > maxQuotedBytes-utf8.UTFMax && !utf8.RuneStart(text[k]) {
		k--
	}
	return strconv.Quote(string(text[:k])) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}

// quoteIfLong returns safe.Name of a name from a file, or the shortened quote if the name is long.
func quoteIfLong(text string) string {
	if len(text) > maxQuotedBytes {
		return quote(text)
	}
	return safe.Name(text)
}

// nameList returns the names in quotes, joined as joinLimited joins them.
func nameList(names []string) string {
	return joinLimited(quoteAll(names))
}

// quoteAll returns each name in quotes.
func quoteAll(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = quote(name)
	}
	return out
}

// joinLimited joins the items of a list by commas; after maxListed items it only counts the others.
func joinLimited(items []string) string {
	const maxListed = 20
	if n := len(items) - maxListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxListed], ", "), n)
	}
	return strings.Join(items, ", ")
}

// joinNames returns names of columns in the form of flags and ReadOptions.Target: a line of csv.
func joinNames(names []string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	w.Write(names)
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// plural returns a number with a noun, as "1 column" or "2 columns".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// requireOneOf returns an error if word is not one of words. kind names the property that they are values of.
func requireOneOf(kind, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %q: want one of %s", kind, word, strings.Join(words, ", "))
}
