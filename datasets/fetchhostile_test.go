package datasets

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tagged serves the content in ranges, as the version of the tag; a download from its start ends
// after cut bytes, if that is not 0.
func tagged(content, tag string, cut int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("Range") != "" && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == tag) {
			ranged(content)(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if cut > 0 {
			content = content[:cut]
		}
		w.Write([]byte(content))
	}
}

// fetchFile downloads a file without a checksum from the URLs and returns what is there.
func fetchFile(t *testing.T, dir string, most int64, urls ...string) (content, part string, err error) {
	o := &FetchOptions{Client: http.DefaultClient, most: most}
	err = o.file(t.Context(), File{Paths: []string{"f.csv"}, URLs: urls}, dir)
	b, _ := os.ReadFile(filepath.Join(dir, "f.csv"))
	p, _ := os.ReadFile(filepath.Join(dir, "f.csv.part"))
	return string(b), string(p), err
}

// TestFetchHalves: without a checksum no file is made of halves of two; a download is continued
// where the server vouches for the file.
func TestFetchHalves(t *testing.T) {
	one, two := strings.Repeat("1,1\n", 5000), strings.Repeat("2,2\n", 5000)
	for _, c := range []struct {
		name          string
		first, second http.HandlerFunc
		other         bool // the second answers at another address
		want          string
	}{
		{"the same file", tagged(one, `"a"`, 8000), tagged(one, `"a"`, 0), false, one},
		{"changed meanwhile", tagged(one, `"a"`, 8000), tagged(two, `"b"`, 0), false, two},
		{"another server", tagged(one, `"a"`, 8000), tagged(two, `"a"`, 0), true, two},
		{"no version", broken(one), ranged(two), false, two},
		{"a weak version", tagged(one, `W/"a"`, 8000), tagged(two, `W/"a"`, 0), false, two},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler := c.first
			a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
			defer a.Close()
			b := httptest.NewServer(c.second)
			defer b.Close()
			dir := t.TempDir()
			if got, part, err := fetchFile(t, dir, 0, a.URL); err == nil || got != "" || part == "" {
				t.Fatalf("broken off: %v, %d bytes, part of %d", err, len(got), len(part))
			}
			handler = c.second
			urls := []string{a.URL}
			if c.other {
				urls = []string{b.URL}
			}
			got, _, err := fetchFile(t, dir, 0, urls...)
			if err != nil || got != c.want {
				t.Errorf("%v; %d bytes, of the first file %d, of the second %d", err, len(got), strings.Count(got, "1"), strings.Count(got, "2"))
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
	// A server that heeds no If-Range and sends the rest of another version.
	handler := tagged(one, `"a"`, 8000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
	defer s.Close()
	dir := t.TempDir()
	fetchFile(t, dir, 0, s.URL)
	handler = func(w http.ResponseWriter, r *http.Request) { w.Header().Set("ETag", `"b"`); ranged(two)(w, r) }
	if got, _, err := fetchFile(t, dir, 0, s.URL); err == nil || got != "" || !strings.Contains(err.Error(), "the file has changed") {
		t.Errorf("If-Range ignored: %v, %d bytes", err, len(got))
	}
	if got, _, err := fetchFile(t, dir, 0, s.URL); err != nil || got != two {
		t.Errorf("once more: %v", err)
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
		{"a page", "f.csv", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("1,2\n"))
		}, "a web page, not the file"},
		{"a page without its type", "f.csv", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte("\xef\xbb\xbf \n" + page))
		}, "a web page, not the file"},
		{"a packed page", "f.gz", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/gzip")
			w.Write([]byte(gzipped(page)))
		}, "a web page, not the file"},
		{"a page under a packed name", "f.bz2", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-bzip2")
			w.Write([]byte(page))
		}, "not packed as .bz2"},
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
			for sent := 0; sent < 64*most && r.Context().Err() == nil; sent += 1 << 15 { // no disk is filled if the limit fails
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
			if most := i.mostBytes(&f); most < int64(i.N)*int64(i.D) || strings.Contains(f.Paths[0], "mnist8m.bz2") && most < 20e9 {
				t.Errorf("%s may have %d bytes", f.Paths[0], most)
			}
		}
	}
}

// TestContentRange: what a server says it sends must be just what was asked for.
func TestContentRange(t *testing.T) {
	for _, c := range []struct {
		header string
		length int64
		good   bool
	}{
		{"bytes 100-199/200", 100, true},
		{"bytes 100-199/*", 100, true},
		{"bytes 100-199/200", -1, true},
		{"bytes 100-199/300", 100, false}, // ends before the end
		{"bytes 100-199/200", 50, false},
		{"bytes 100-99/100", 0, false},
		{"bytes 1000-1099/1100", 100, false},
		{"bytes 0-199/200", 200, false},
		{"bytes 100-", 100, false},
		{"bytes 100-199", 100, false},
		{"bytes 100-199/200 ", 100, false},
		{"bytes 100-199/200, bytes 300-400/500", 100, false},
		{"octets 100-199/200", 100, false},
		{"bytes 0x64-199/200", 100, false},
		{"", 100, false},
	} {
		resp := &http.Response{Header: http.Header{"Content-Range": {c.header}}, ContentLength: c.length}
		if err := continues(resp, 100); (err == nil) != c.good {
			t.Errorf("%q of %d bytes: %v", c.header, c.length, err)
		}
	}
}

// TestFetchLinks: a part that is a link is not followed, nor is the file that says where it is
// from; what they point to stays.
func TestFetchLinks(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(whole("1,2\n")))
	defer s.Close()
	for _, there := range []bool{true, false} {
		dir, away := t.TempDir(), filepath.Join(t.TempDir(), "precious")
		if there {
			os.WriteFile(away, []byte("precious"), 0o644)
		}
		if err := os.Symlink(away, filepath.Join(dir, "f.csv.part")); err != nil {
			t.Skip(err)
		}
		if _, _, err := fetchFile(t, dir, 0, s.URL); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("a link: %v", err)
		}
		os.Rename(filepath.Join(dir, "f.csv.part"), filepath.Join(dir, "f.csv.part.from"))
		if got, _, err := fetchFile(t, dir, 0, s.URL); err != nil || got != "1,2\n" {
			t.Errorf("a link beside it: %v", err)
		}
		if b, err := os.ReadFile(away); there && string(b) != "precious" || !there && err == nil {
			t.Errorf("what the link points to is %q, %v", b, err)
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
	round := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }))
	defer round.Close()
	fails(t, get(round.URL), "more than 10 redirections")
}
