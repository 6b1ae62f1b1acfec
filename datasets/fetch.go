package datasets

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
)

// FetchOptions are the options of Fetch. Nil means the defaults.
type FetchOptions struct {
	Client   *http.Client // default: http.DefaultClient
	Progress func(file string, done, total int64)

	most int64 // bytes that the file can have; 0 if that is not known
}

// Fetch downloads the missing files of a data set into dir. A download goes to NAME.part and
// takes its name only when it is whole and its content has the checksum of the registry; so such a
// file that has its name is a good one. Where the registry has no checksum, the file must begin
// like data and have the length that the server stated. A download that was broken off is
// continued: from any server if there is a checksum, and else from the same address only, if the
// server says that the file is the same (If-Range). The URLs of a file are tried in order; the
// error names each with its fault. A redirection from https to http is refused, as is more than
// the set can take.
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
		opt.most = info.mostBytes(&f)
		if err := opt.file(ctx, f, dir); err != nil {
			return fmt.Errorf("data set %s: %w", info.Name, err)
		}
	}
	return nil
}

// mostBytes bounds the length of a file of the set: 32 bytes for each number, which is more than
// text takes.
func (i *Info) mostBytes(f *File) int64 {
	return 1<<20 + 32*int64(max(i.N+i.TestN, f.Rows))*int64(i.D+1)
}

// secure returns a client that follows no redirection from https to http.
func secure(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
			return fmt.Errorf("redirected from https to %s: refused", quote(req.URL.Scheme+"://"+req.URL.Host))
		case c.CheckRedirect != nil:
			return c.CheckRedirect(req, via)
		case len(via) >= 10:
			return errors.New("more than 10 redirections")
		}
		return nil
	}
	return &own
}

// file downloads one file from the first URL that has it.
func (o *FetchOptions) file(ctx context.Context, f File, dir string) error {
	dst := filepath.Join(dir, filepath.FromSlash(f.Paths[0]))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", filepath.Dir(dst), err)
	}
	var faults error
	for _, url := range f.URLs {
		err := o.download(ctx, url, dst, f.SHA256 != "")
		if err == nil {
			err = settle(&f, dst)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err = fmt.Errorf("%s: %w", url, err); faults != nil {
			err = fmt.Errorf("%w; %w", faults, err)
		}
		faults = err
	}
	return faults
}

// settle checks a finished download and gives it its name.
func settle(f *File, dst string) error {
	part := dst + ".part"
	known, err := f.Verify(part)
	if !known && err == nil {
		err = looksLikeData(part, dst)
	}
	if err == nil {
		err = os.Rename(part, dst)
	} else {
		os.Remove(part)
		err = errors.New(strings.Replace(err.Error(), printable(part)+": ", "", 1))
	}
	os.Remove(part + originSuffix)
	return err
}

// looksLikeData returns an error if the file is empty, a web page, or not packed as its name says.
func looksLikeData(part, name string) error {
	f, err := os.Open(part)
	if err != nil {
		return err
	}
	defer f.Close()
	raw := make([]byte, startBytes)
	k, _ := io.ReadFull(f, raw)
	for _, c := range containers {
		if strings.HasSuffix(name, c.ext) && !bytes.HasPrefix(raw[:k], []byte(c.start)) {
			return fmt.Errorf("the server sent data that is not packed as %s: not the file", c.ext)
		}
	}
	s, err := open(context.Background(), part)
	if err != nil {
		return err
	}
	defer s.close()
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

// download continues dst.part from url to its end, or begins it anew; checked says that its
// content will be compared with a checksum.
func (o *FetchOptions) download(ctx context.Context, url, dst string, checked bool) (err error) {
	file, err := openPart(dst + ".part")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, file.Close()) }()
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	from := readOrigin(dst + ".part")
	same := from.url == url && from.version != ""
	if !same && !checked {
		have = 0 // what is there may be of another file
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity") // the file as it lies there
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if same {
			req.Header.Set("If-Range", from.version)
		}
	}
	resp, err := secure(o.Client).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if err := continues(resp, have); err != nil {
			return restart(file, err)
		}
		if have > 0 && same && version(resp) != from.version {
			return restart(file, errors.New("the file has changed since the download began; run it again"))
		}
	case http.StatusOK:
		have = 0
	case http.StatusRequestedRangeNotSatisfiable: // what is there is whole, or not of this file
		if have > 0 && resp.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have) {
			return nil
		}
		return restart(file, refused(resp))
	default:
		return refused(resp)
	}
	if !checked && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return errors.New("the server sent a web page, not the file")
	}
	if have == 0 {
		if err := restart(file, nil); err != nil {
			return err
		}
		if err := (origin{url, version(resp)}).write(dst + ".part"); err != nil {
			return err
		}
	}
	return o.receive(file, resp, dst, have)
}

// receive appends the response's body to the file, of which there are have bytes.
func (o *FetchOptions) receive(file *os.File, resp *http.Response, dst string, have int64) error {
	total := int64(-1)
	if resp.ContentLength >= 0 {
		total = have + resp.ContentLength
	}
	tooLarge := func() error {
		return restart(file, fmt.Errorf("the server sends more than %s, which the data set cannot have: not the file", accel.Bytes(o.most)))
	}
	body := io.Reader(resp.Body)
	if o.most > 0 {
		if total > o.most {
			return tooLarge()
		}
		body = io.LimitReader(body, o.most-have+1)
	}
	w := &counter{w: file, name: filepath.Base(dst), done: have, total: total, progress: o.Progress}
	if _, err := io.Copy(w, body); err != nil {
		return fmt.Errorf("broken off after %d bytes (run it again to continue): %w", w.done, err)
	}
	if o.most > 0 && w.done > o.most {
		return tooLarge()
	}
	if total >= 0 && w.done != total {
		return fmt.Errorf("broken off after %d of %d bytes (run it again to continue)", w.done, total)
	}
	return file.Sync()
}

// refused is the error for a status that brings no content.
func refused(resp *http.Response) error {
	return fmt.Errorf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

// continues returns an error unless the response is the rest of a file from byte have on.
func continues(resp *http.Response, have int64) error {
	text := resp.Header.Get("Content-Range")
	var first, last, total int64
	if n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &total); n == 2 && text == fmt.Sprintf("bytes %d-%d/*", first, last) {
		total = last + 1
	} else if text != fmt.Sprintf("bytes %d-%d/%d", first, last, total) {
		first = -1
	}
	if first != have || last < first || total != last+1 || resp.ContentLength >= 0 && resp.ContentLength != total-have {
		return fmt.Errorf("asked for the bytes from %d on, the server sends %s (%d bytes)", have, quote(text), resp.ContentLength)
	}
	return nil
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

// Fingerprint returns a sha256 of the points, the answers, their Mean and the weights: equal for equal numbers in
// the same order and form, whatever they are called and wherever they come from.
func (d *Dataset) Fingerprint() [sha256.Size]byte {
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<15)
	word := func(v uint64) { w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), v)) } // a hash takes all
	n, dim := d.X.Dims()
	fmt.Fprintf(w, "%d %d %v %q\n", n, dim, d.Task, d.Labels)
	switch x := d.X.(type) {
	case *points.CSR:
		for i := range n {
			lo, hi := x.Ptr[i], x.Ptr[i+1]
			word(uint64(hi - lo))
			for k := lo; k < hi; k++ {
				word(uint64(x.Col[k]))
				word(math.Float64bits(x.Val[k]))
			}
		}
	default:
		row := make([]float64, dim)
		for i := range n {
			x.RowTo(row, i)
			for _, v := range row {
				word(math.Float64bits(v))
			}
		}
	}
	for _, v := range d.Target {
		word(math.Float64bits(v))
	}
	for _, c := range d.Class {
		word(uint64(c))
	}
	for _, list := range append(d.More[:len(d.More):len(d.More)], d.Mean, d.Weights) {
		for _, v := range list {
			word(math.Float64bits(v))
		}
	}
	w.Flush()
	return [sha256.Size]byte(h.Sum(nil))
}
