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

// FetchOptions are the options of Fetch. A nil pointer stands for the defaults.
type FetchOptions struct {
	Client   *http.Client                             // default: http.DefaultClient
	Progress func(file string, received, total int64) // bytes; total is negative if it is not known
}

// Fetch downloads the missing files of a data set into dir.
//
// A download is written to NAME.part and renamed when it is complete and its content has the checksum of the registry.
// If the registry has no checksum, the file must begin like data and have the length that the server stated. The URLs
// of a file are tried in order; the error names each of them with its fault. A redirection from https to http is
// refused.
func Fetch(ctx context.Context, name, dir string, options *FetchOptions) error {
	info, err := Lookup(name)
	if err != nil {
		return err
	}
	settings := *cmp.Or(options, &FetchOptions{})
	settings.Client = cmp.Or(settings.Client, http.DefaultClient)
	for _, file := range info.Files {
		if file.Find([]string{dir}) != "" {
			continue
		}
		if len(file.URLs) == 0 {
			return &MissingFilesError{info, []File{file}, []string{dir}}
		}
		if err := settings.fetchFile(ctx, file, dir); err != nil {
			return fmt.Errorf("data set %s: %w", info.Name, err)
		}
	}
	return nil
}

// fetchFile downloads one file from the first URL that provides it.
func (o *FetchOptions) fetchFile(ctx context.Context, f File, dir string) error {
	dst := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", filepath.Dir(dst), err)
	}
	var faults []string
	for _, url := range f.URLs {
		err := o.download(ctx, url, dst)
		if err == nil {
			err = finishDownload(&f, dst)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		faults = append(faults, url+": "+err.Error())
	}
	return errors.New(strings.Join(faults, "; "))
}

// finishDownload verifies a completed download and renames it to dst.
func finishDownload(f *File, dst string) error {
	partFile := dst + ".part"
	hasChecksum, err := f.Verify(partFile)
	if !hasChecksum && err == nil {
		err = looksLikeData(partFile, dst)
	}
	if err == nil {
		return os.Rename(partFile, dst)
	}
	os.Remove(partFile)
	return errors.New(strings.Replace(err.Error(), safe.Name(partFile)+": ", "", 1))
}

// looksLikeData returns an error if the file is empty, is a web page, or is not packed in the container that its name
// states.
func looksLikeData(partFile, name string) error {
	s, err := openSource(context.Background(), partFile)
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
		return s.readError(0, err)
	case len(head) == 0:
		return errors.New("the server sent an empty file")
	case head[0] == '<':
		return errors.New("the server sent a web page, not the file")
	}
	return nil
}

// download writes the content of a URL to dst.part.
func (o *FetchOptions) download(ctx context.Context, url, dst string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity") // without compression by the server
	resp, err := o.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	// The loop visits the requests of all redirections, beginning with the last one.
	for request := resp.Request; request.Response != nil; request = request.Response.Request {
		if request.Response.Request.URL.Scheme == "https" && request.URL.Scheme != "https" {
			return fmt.Errorf("redirected from https to %s: refused", quote(request.URL.Scheme+"://"+request.URL.Host))
		}
	}
	file, err := os.Create(dst + ".part")
	if err != nil {
		return err
	}
	counter := &byteCounter{w: file, name: filepath.Base(dst), total: resp.ContentLength, progress: o.Progress}
	if _, err = io.Copy(counter, resp.Body); err != nil {
		err = fmt.Errorf("broken off after %d bytes (run it again): %w", counter.written, err)
	}
	return cmp.Or(err, file.Sync(), file.Close()) // all arguments are evaluated, so the file is closed in any case
}

// byteCounter is a writer that reports the number of bytes written.
type byteCounter struct {
	w              io.Writer
	name           string
	written, total int64
	progress       func(file string, received, total int64)
}

// Write implements io.Writer.
func (c *byteCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.written += int64(n)
	if c.progress != nil {
		c.progress(c.name, c.written, c.total)
	}
	return n, err
}
