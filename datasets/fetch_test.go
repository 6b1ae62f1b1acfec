package datasets

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDownload checks that a download is continued, checked, and never looks complete
// before it is.
func TestDownload(t *testing.T) {
	content := strings.Repeat("1,2,3\n", 20000)
	sum := sha256.Sum256([]byte(content))
	good := hex.EncodeToString(sum[:])
	packed := gzipped(content)
	for _, c := range []struct {
		name    string
		part    string // there before
		serve   func(w http.ResponseWriter, r *http.Request)
		sum     string
		want    string // part of the error; "" for success
		keeps   bool   // a part file stays, to go on from
		request string // the Range header expected
	}{
		{name: "whole", serve: whole(packed), sum: good},
		{name: "no checksum known", part: "garbage", serve: whole(packed)},
		{name: "resume", part: packed[:100], serve: ranged(packed), sum: good, request: "bytes=100-"},
		{name: "resume without ranges", part: "garbage", serve: whole(packed), sum: good, request: "bytes=7-"},
		{name: "already whole", part: packed, serve: ranged(packed), sum: good,
			request: fmt.Sprintf("bytes=%d-", len(packed))},
		{name: "part of another file", part: strings.Repeat("x", 100), serve: ranged(packed), sum: good, want: "",
			keeps: false, request: "bytes=100-"},
		{name: "broken off", serve: broken(packed), sum: good, want: "broken off after", keeps: true},
		{name: "a range not asked for", part: packed + "1,2,3", serve: func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=0-")
			ranged(packed)(w, r)
		}, want: "206 Partial Content", keeps: true},
		{name: "wrong checksum", serve: whole(gzipped("other")), sum: good, want: "bad checksum"},
		{name: "not found", serve: func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, sum: good,
			want: "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Get("Range")
				c.serve(w, r)
			}))
			defer s.Close()
			dir := t.TempDir()
			dst := filepath.Join(dir, "set", "file.gz")
			if c.part != "" {
				os.MkdirAll(filepath.Dir(dst), 0o755)
				os.WriteFile(dst+".part", []byte(c.part), 0o644)
			}
			o := &FetchOptions{Client: s.Client()}
			f := File{Paths: []string{"set/file.gz"}, URLs: []string{s.URL}, SHA256: c.sum}
			err := o.file(context.Background(), f, dir)
			if c.name == "part of another file" { // found out by the checksum; the next try starts again
				if err == nil || !strings.Contains(err.Error(), s.URL) {
					t.Fatalf("error %v", err)
				}
				err = o.file(context.Background(), f, dir)
				asked = "bytes=100-"
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if asked != c.request {
				t.Errorf("asked for %q, want %q", asked, c.request)
			}
			b, _ := os.ReadFile(dst)
			if done := string(b) == packed; done != (c.want == "") {
				t.Errorf("file of %d bytes after %v", len(b), err)
			}
			if _, err := os.Stat(dst + ".part"); (err == nil) != c.keeps && c.name != "not found" {
				t.Errorf("part file: %v", err)
			}
		})
	}
}

func whole(content string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(content)) }
}

func ranged(content string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.Atoi(strings.Trim(r.Header.Get("Range"), "bytes=-"))
		if err != nil {
			w.Write([]byte(content))
			return
		}
		if from >= len(content) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(content)))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
		w.WriteHeader(http.StatusPartialContent)
		w.Write([]byte(content[from:]))
	}
}

func broken(content string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write([]byte(content[:len(content)/2]))
	}
}

// TestMirrors checks that the next URL is tried, and that the progress is reported.
func TestMirrors(t *testing.T) {
	bad := httptest.NewServer(http.NotFoundHandler())
	defer bad.Close()
	good := httptest.NewServer(http.HandlerFunc(whole("1,2\n")))
	defer good.Close()
	dir := t.TempDir()
	var last int64
	o := &FetchOptions{Client: http.DefaultClient, Progress: func(file string, done, total int64) {
		if file != "f" || total != 4 {
			t.Errorf("%s: %d of %d", file, done, total)
		}
		last = done
	}}
	if err := o.file(context.Background(), File{Paths: []string{"f"}, URLs: []string{bad.URL, good.URL}},
		dir); err != nil || last != 4 {
		t.Errorf("%v, %d bytes", err, last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := o.file(ctx, File{Paths: []string{"g"}, URLs: []string{good.URL}}, dir); err == nil {
		t.Error("a canceled download succeeded")
	}
}

func TestFetchArguments(t *testing.T) {
	if err := Fetch(context.Background(), "nosuch", t.TempDir(), nil); err == nil {
		t.Error("an unknown name passed")
	}
	err := Fetch(context.Background(), "cal-housing", t.TempDir(), nil)
	fails(t, err, "cannot be downloaded")
	if err := Fetch(context.Background(), "synthetic-classes", t.TempDir(), nil); err != nil {
		t.Errorf("built in: %v", err)
	}
}

func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.gz")
	os.WriteFile(path, []byte(gzipped("abc")), 0o644)
	f := File{SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"} // of "abc"
	if known, err := f.Verify(path); !known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	os.WriteFile(path, []byte(gzipped("abd")), 0o644)
	fails(t, errOf(f.Verify(path)), "f.gz")
	if known, err := (&File{}).Verify(path); known || err != nil {
		t.Errorf("unknown: %v, %v", known, err)
	}
}

// TestFetchNotData: what is no data is not kept, and the error is one line that prints.
func TestFetchNotData(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html><body>Sign in to the network</body></html>"
	for _, c := range []struct {
		name, path string
		serve      http.HandlerFunc
		want       string
	}{
		{"a page", "f.csv", whole("\xef\xbb\xbf \n" + page), "a web page, not the file"},
		{"a packed page", "f.gz", whole(gzipped(page)), "a web page, not the file"},
		{"a page under a packed name", "f.bz2", whole(page), "not packed as .bz2"},
		{"the rest of another", "f.csv", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=1-")
			ranged(page)(w, r)
		}, "206 Partial Content"},
		{"nothing", "f.csv", func(http.ResponseWriter, *http.Request) {}, "empty"},
		{"a status that prints badly", "f.csv", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Write([]byte("HTTP/1.1 503 \x1b[31mred\r\nContent-Length: 0\r\n\r\n"))
			conn.Close()
		}, "503 Service Unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.serve)
			defer s.Close()
			dir := t.TempDir()
			o := &FetchOptions{Client: s.Client()}
			err := o.file(t.Context(), File{Paths: []string{c.path}, URLs: []string{s.URL, s.URL + "/again"}}, dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q, want %q", fmt.Sprint(err), c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, c.path)); err == nil {
				t.Error("it is kept")
			}
		})
	}
}

// TestFetchLimit: no more is written than the set can have, whether the server states the length
// or not, with a checksum and without.
func TestFetchLimit(t *testing.T) {
	const most = 1 << 16
	for name, serve := range map[string]http.HandlerFunc{
		"stated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(most+1))
			w.WriteHeader(200)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			// no disk is filled if the limit fails
			for sent := 0; sent < 64*most && r.Context().Err() == nil; sent += 1 << 15 {
				if _, err := w.Write(make([]byte, 1<<15)); err != nil {
					return
				}
			}
		},
	} {
		for _, sum := range []string{"", strings.Repeat("0", 64)} {
			s := httptest.NewServer(serve)
			dir := t.TempDir()
			o := &FetchOptions{Client: s.Client(), most: most, Progress: func(_ string, done, _ int64) {
				if done > most+1 {
					t.Errorf("%s: %d bytes are written", name, done)
				}
			}}
			err := o.file(t.Context(), File{Paths: []string{"f"}, URLs: []string{s.URL}, SHA256: sum}, dir)
			fails(t, err, "which the data set cannot have")
			if st, err := os.Stat(filepath.Join(dir, "f.part")); err != nil || st.Size() != 0 {
				t.Errorf("%s: %v is left", name, st)
			}
			s.Close()
		}
	}
	for _, i := range Registry() {
		for _, f := range i.Files {
			if most := i.mostBytes(&f); most < int64(i.N)*int64(i.D) || strings.Contains(f.Paths[0], "mnist8m.bz2") &&
				most < 20e9 {
				t.Errorf("%s may have %d bytes", f.Paths[0], most)
			}
		}
	}
}

// TestFetchDowngrade: a redirection from https to http is refused, others are followed.
func TestFetchDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(whole("1,2\n")))
	defer plain.Close()
	target := plain.URL
	tls1 := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			whole("1,2\n")(w, r)
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	}))
	defer tls1.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(url string) error {
		o := &FetchOptions{Client: client}
		return o.file(context.Background(), File{Paths: []string{"f.csv"}, URLs: []string{url}}, t.TempDir())
	}
	fails(t, get(tls1.URL), "redirected from https to")
	target = tls1.URL + "/file"
	if err := get(tls1.URL); err != nil {
		t.Errorf("to https: %v", err)
	}
	away := httptest.NewServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer away.Close()
	if err := get(away.URL); err != nil {
		t.Errorf("from http to http: %v", err)
	}
	round := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/", http.StatusFound)
	}))
	defer round.Close()
	fails(t, get(round.URL), "more than 10 redirections")
}
