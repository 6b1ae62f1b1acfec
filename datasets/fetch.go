package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// FetchOptions are the options of Fetch. Nil means the defaults.
type FetchOptions struct {
	Client   *http.Client // default: http.DefaultClient
	Progress func(file string, done, total int64)
}

// Fetch downloads the missing files of a data set into dir. A download goes to NAME.part,
// is continued from there if it was broken off, and takes its name only when it is whole
// and its content has the checksum of the registry; so a file that has its name is a good
// one. The URLs of a file are tried in order; the error names each with its fault.
func Fetch(ctx context.Context, name, dir string, o *FetchOptions) error {
	info, err := Lookup(name)
	if err != nil {
		return err
	}
	var opt FetchOptions
	if o != nil {
		opt = *o
	}
	if opt.Client == nil {
		opt.Client = http.DefaultClient
	}
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
	dst := filepath.Join(dir, filepath.FromSlash(f.Paths[0]))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", filepath.Dir(dst), err)
	}
	var faults []error
	for _, url := range f.URLs {
		err := o.download(ctx, url, dst)
		if err == nil {
			err = o.settle(&f, dst)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		faults = append(faults, fmt.Errorf("%s: %w", url, err))
	}
	return errors.Join(faults...)
}

// settle checks a finished download and gives it its name.
func (o *FetchOptions) settle(f *File, dst string) error {
	part := dst + ".part"
	if _, err := f.Verify(part); err != nil {
		os.Remove(part)
		return errors.New(strings.Replace(err.Error(), part+": ", "", 1))
	}
	return os.Rename(part, dst)
}

// download continues dst.part from url to its end.
func (o *FetchOptions) download(ctx context.Context, url, dst string) (err error) {
	file, err := os.OpenFile(dst+".part", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity") // the file as it lies there
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)) {
			return restart(file, fmt.Errorf("the server continues at %q", resp.Header.Get("Content-Range")))
		}
	case http.StatusOK: // from the start
		have = 0
		if err := restart(file, nil); err != nil {
			return err
		}
	case http.StatusRequestedRangeNotSatisfiable: // what is there is whole, or not of this file
		if strings.HasSuffix(resp.Header.Get("Content-Range"), fmt.Sprintf("/%d", have)) {
			return nil
		}
		return restart(file, fmt.Errorf("%s", resp.Status))
	default:
		return fmt.Errorf("%s", resp.Status)
	}
	total := int64(-1)
	if resp.ContentLength >= 0 {
		total = have + resp.ContentLength
	}
	w := &counter{w: file, name: filepath.Base(dst), done: have, total: total, progress: o.Progress}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("broken off after %d bytes (run it again to go on from there): %w", w.done, err)
	}
	if total >= 0 && w.done != total {
		return fmt.Errorf("broken off after %d of %d bytes (run it again to go on from there)", w.done, total)
	}
	return file.Sync()
}

// restart empties the file and returns err.
func restart(f *os.File, err error) error {
	if e := f.Truncate(0); e != nil {
		return e
	}
	if _, e := f.Seek(0, io.SeekStart); e != nil {
		return e
	}
	return err
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
