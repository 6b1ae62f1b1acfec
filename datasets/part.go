package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
)

// originSuffix is what a file beside NAME.part has more in its name, which says where that is from.
const originSuffix = ".from"

// origin says where the first bytes of an unfinished download are from.
type origin struct {
	url     string
	version string // what the server tells this file from others by: ETag or Last-Modified; "" for none
}

// version returns what tells the file that is sent from others at the same address.
func version(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

// readOrigin returns the origin of a part; the zero value if it is not known.
func readOrigin(part string) (o origin) {
	if st, err := os.Lstat(part + originSuffix); err != nil || !st.Mode().IsRegular() || st.Size() > 1<<16 {
		return o
	}
	b, err := os.ReadFile(part + originSuffix)
	if err != nil {
		return o
	}
	o.url, o.version, _ = strings.Cut(strings.TrimSuffix(string(b), "\n"), "\n")
	return o
}

// write keeps the origin beside its part.
func (o origin) write(part string) error {
	name := part + originSuffix
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(o.url + "\n" + o.version + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// openPart opens a file to write at, or makes it. It follows no link, and refuses what is no plain
// file.
func openPart(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	before, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a link or no plain file: remove it", printable(name))
	}
	if f, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		f.Close()
		return nil, fmt.Errorf("%s was exchanged while it was opened: remove it", printable(name))
	}
	return f, nil
}
