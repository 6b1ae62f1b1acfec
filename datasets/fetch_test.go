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

// TestDownload checks that a download is checked, and never looks complete before it is.
func TestDownload(t *testing.T) {
	content := strings.Repeat("1,2,3\n", 20000)
	sum := sha256.Sum256([]byte(content))
	good := hex.EncodeToString(sum[:])
	packed := gzipped(content)
	const page = "<!DOCTYPE html>\n<html><body>Sign in to the network</body></html>"
	for _, c := range []struct {
		name, path string
		serve      http.HandlerFunc
		sum        string
		want       string // part of the error; "" for success
	}{
		{"whole", "f.gz", whole(packed), good, ""},
		{"no checksum known", "f.gz", whole(packed), "", ""},
		{"broken off", "f.gz", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(packed)))
			w.Write([]byte(packed[:len(packed)/2]))
		}, good, "broken off after"},
		{"wrong checksum", "f.gz", whole(gzipped("other")), good, "bad checksum"},
		{"not found", "f.gz", http.NotFound, good, "404"},
		{"a part", "f.gz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, good,
			"206 Partial Content"},
		{"a page", "f.csv", whole("\xef\xbb\xbf \n" + page), "", "a web page, not the file"},
		{"a packed page", "f.gz", whole(gzipped(page)), "", "a web page, not the file"},
		{"a page under a packed name", "f.bz2", whole(page), "", "not packed as .bz2"},
		{"nothing", "f.csv", func(http.ResponseWriter, *http.Request) {}, "", "empty"},
		{"a status that prints badly", "f.csv", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Write([]byte("HTTP/1.1 503 \x1b[31mred\r\nContent-Length: 0\r\n\r\n"))
			conn.Close()
		}, "", "503 Service Unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.serve)
			defer s.Close()
			dst := filepath.Join(t.TempDir(), "set", c.path)
			put(t, filepath.Dir(dst), c.path+".part", strings.Repeat("garbage", len(packed))) // of a try before
			o := &FetchOptions{Client: s.Client()}
			f := File{Path: "set/" + c.path, URLs: []string{s.URL, s.URL + "/again"}, SHA256: c.sum}
			err := o.fetchFile(t.Context(), f, filepath.Dir(filepath.Dir(dst)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), s.URL+"/again") || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Fatalf("error %q, want %q", fmt.Sprint(err), c.want)
			}
			b, _ := os.ReadFile(dst)
			if done := string(b) == packed; done != (c.want == "") {
				t.Errorf("file of %d bytes after %v", len(b), err)
			}
		})
	}
}

func whole(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(content)) }
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
	if err := o.fetchFile(context.Background(), File{Path: "f", URLs: []string{bad.URL, good.URL}},
		dir); err != nil || last != 4 {
		t.Errorf("%v, %d bytes", err, last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := o.fetchFile(ctx, File{Path: "g", URLs: []string{good.URL}}, dir); err == nil {
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
	path := put(t, t.TempDir(), "f.gz", gzipped("abc"))
	f := File{SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"} // of "abc"
	if known, err := f.Verify(path); !known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	put(t, filepath.Dir(path), "f.gz", gzipped("abd"))
	fails(t, errOf(f.Verify(path)), "f.gz")
	if known, err := (&File{}).Verify(path); known || err != nil {
		t.Errorf("unknown: %v, %v", known, err)
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
		return o.fetchFile(context.Background(), File{Path: "f.csv", URLs: []string{url}}, t.TempDir())
	}
	fails(t, get(tls1.URL), "redirected from https to")
	back := httptest.NewServer(http.RedirectHandler(tls1.URL+"/file", http.StatusFound))
	defer back.Close()
	target = back.URL
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
}
