package datasets

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// FetchOptions are the options of Fetch. Nil means the defaults.
type FetchOptions struct {
	Client   *http.Client // default: http.DefaultClient
	Progress func(file string, done, total int64)
}

// Fetch downloads the missing files of a data set into dir. A download goes to NAME.part and takes its name only when
// it is whole and its content has the checksum of the registry; where that has none, the file must begin like data and
// have the length that the server stated. The URLs of a file are tried in order; the error names each with its fault. A
// redirection from https to http is refused.
func Fetch(ctx context.Context, name, dir string, o *FetchOptions) error {
	info, err := Lookup(name)
	if err != nil {
		return err
	}
	opt := *cmp.Or(o, &FetchOptions{})
	opt.Client = cmp.Or(opt.Client, http.DefaultClient)
	for _, f := range info.Files {
		if f.Find([]string{dir}) != "" {
			continue
		}
		if len(f.URLs) == 0 {
			return &MissingError{info, []File{f}, []string{dir}}
		}
		if err := opt.file(ctx, f, dir); err != nil {
			return fmt.Errorf("data set %s: %w", info.Name, err)
		}
	}
	return nil
}

// file downloads one file from the first URL that has it.
func (o *FetchOptions) file(ctx context.Context, f File, dir string) error {
	dst := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", filepath.Dir(dst), err)
	}
	var faults []string
	for _, url := range f.URLs {
		err := o.download(ctx, url, dst)
		if err == nil {
			err = settle(&f, dst)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		faults = append(faults, url+": "+err.Error())
	}
	return errors.New(strings.Join(faults, "; "))
}

// settle checks a finished download and gives it its name.
func settle(f *File, dst string) error {
	part := dst + ".part"
	known, err := f.Verify(part)
	if !known && err == nil {
		err = looksLikeData(part, dst)
	}
	if err == nil {
		return os.Rename(part, dst)
	}
	os.Remove(part)
	return errors.New(strings.Replace(err.Error(), safe.Name(part)+": ", "", 1))
}

// looksLikeData returns an error if the file is empty, a web page, or not packed as its name says.
func looksLikeData(part, name string) error {
	s, err := open(context.Background(), part)
	if err != nil {
		return err
	}
	defer s.close()
	for _, c := range containers {
		if strings.HasSuffix(name, c.ext) && !slices.Contains(s.packed, c.name) {
			return fmt.Errorf("the server sent data that is not packed as %s: not the file", c.ext)
		}
	}
	head, err := s.r.Peek(512)
	switch head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))); {
	case err != nil && !errors.Is(err, io.EOF):
		return s.failed(0, err)
	case len(head) == 0:
		return errors.New("the server sent an empty file")
	case head[0] == '<':
		return errors.New("the server sent a web page, not the file")
	}
	return nil
}

// download writes what a URL has to dst.part.
func (o *FetchOptions) download(ctx context.Context, url, dst string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity") // the file as it lies there
	resp, err := o.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	for to := resp.Request; to.Response != nil; to = to.Response.Request { // back over all redirections
		if to.Response.Request.URL.Scheme == "https" && to.URL.Scheme != "https" {
			return fmt.Errorf("redirected from https to %s: refused", quote(to.URL.Scheme+"://"+to.URL.Host))
		}
	}
	file, err := os.Create(dst + ".part")
	if err != nil {
		return err
	}
	w := &counter{w: file, name: filepath.Base(dst), total: resp.ContentLength, progress: o.Progress}
	if _, err = io.Copy(w, resp.Body); err != nil {
		err = fmt.Errorf("broken off after %d bytes (run it again): %w", w.done, err)
	}
	return cmp.Or(err, file.Sync(), file.Close())
}

// counter reports the bytes written.
type counter struct {
	w           io.Writer
	name        string
	done, total int64
	progress    func(file string, done, total int64)
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.name, c.done, c.total)
	}
	return n, err
}
