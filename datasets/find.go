package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Dirs returns the folders that data are looked for in by default: $KRRLAB_DATA, if it is set, and the
// user's cache, where krrlab data fetch puts them.
func Dirs() []string {
	var dirs []string
	if d := os.Getenv("KRRLAB_DATA"); d != "" {
		dirs = append(dirs, d)
	}
	if d, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(d, "krrlab"))
	}
	return dirs
}

// bareOf returns a name without its packing.
func bareOf(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".bz2")
}

// Find returns where the file lies in the first of the folders that has it, or "".
func (f *File) Find(dirs []string) string {
	for _, dir := range dirs {
		for _, p := range f.Paths {
			name := filepath.Join(dir, filepath.FromSlash(p))
			if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}

// Find returns the paths of the files by role and the files that are missing.
func (i *Info) Find(dirs []string) (paths map[Role]string, missing []File) {
	paths = map[Role]string{}
	for _, f := range i.Files {
		if p := f.Find(dirs); p != "" {
			paths[f.Role] = p
		} else {
			missing = append(missing, f)
		}
	}
	return paths, missing
}

// Verify reads the named file through and returns an error if its unpacked content is not
// what f says; known is false if f says nothing of it.
func (f *File) Verify(name string) (known bool, err error) {
	if f.SHA256 == "" {
		return false, nil
	}
	sum, err := contentSum(name)
	if err != nil {
		return true, err
	}
	if sum != f.SHA256 {
		return true, &ParseError{File: name, Reason: fmt.Sprintf("bad checksum: the content has sha256 %s, expected %s; get it again", sum, f.SHA256)}
	}
	return true, nil
}

// contentSum is the sha256 of the file's unpacked content.
func contentSum(name string) (string, error) {
	s, err := open(context.Background(), name)
	if err != nil {
		return "", err
	}
	defer s.close()
	h := sha256.New()
	if _, err := io.Copy(h, s.r); err != nil {
		return "", s.failed(0, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// MissingError says that files of a data set are not at hand, where they are to be had, and
// where to put them.
type MissingError struct {
	Info  *Info
	Files []File   // that are missing
	Dirs  []string // that were looked in
}

func (e *MissingError) Error() string {
	dir := "the data folder"
	if len(e.Dirs) > 0 {
		dir = e.Dirs[len(e.Dirs)-1]
	}
	f := e.Files[0]
	put := filepath.Join(dir, filepath.FromSlash(f.Paths[0]))
	var b strings.Builder
	fmt.Fprintf(&b, "data set %s: %s is missing", e.Info.Name, f.Paths[0])
	if n := len(e.Files); n > 1 {
		fmt.Fprintf(&b, " (and %d more)", n-1)
	}
	if len(f.URLs) > 0 {
		fmt.Fprintf(&b, "; run krrlab data fetch %s, or get %s and put it at %s", e.Info.Name, f.URLs[0], put)
	} else {
		fmt.Fprintf(&b, "; it cannot be downloaded by itself: see %s and put the file at %s", e.Info.Page, put)
	}
	if e.Info.Similar != "" {
		fmt.Fprintf(&b, "; a subset may be at hand as --data %s", e.Info.Similar)
	}
	return b.String()
}
