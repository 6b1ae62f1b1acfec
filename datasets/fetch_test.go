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

// TestFetch checks that a download is verified by its checksum and its kind, and that a file never has its final
// name before that.
func TestFetch(t *testing.T) {
	content := strings.Repeat("1,2,3\n", 20000)
	sum := sha256.Sum256([]byte(content))
	good := hex.EncodeToString(sum[:])
	packed := gzipText(content)
	const page = "<!DOCTYPE html>\n<html><body>Sign in to the network</body></html>"
	for _, c := range []struct {
		name, path string
		serve      http.HandlerFunc
		sum        string // checksum in the registry; "" for none
		wantErr    string // part of the error; "" for success
	}{
		{"whole", "f.gz", serveText(packed), good, ""},
		{"no checksum known", "f.gz", serveText(packed), "", ""},
		{"broken off", "f.gz", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(packed)))
			w.Write([]byte(packed[:len(packed)/2]))
		}, good, "broken off after"},
		{"wrong checksum", "f.gz", serveText(gzipText("other")), good, "bad checksum"},
		{"not found", "f.gz", http.NotFound, good, "404"},
		{"a part", "f.gz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, good,
			"206 Partial Content"},
		{"a page", "f.csv", serveText("\xef\xbb\xbf \n" + page), "", "a web page, not the file"},
		{"a packed page", "f.gz", serveText(gzipText(page)), "", "a web page, not the file"},
		{"a page under a packed name", "f.bz2", serveText(page), "", "not packed as .bz2"},
		{"nothing", "f.csv", func(http.ResponseWriter, *http.Request) {}, "", "empty"},
		{"a status that prints badly", "f.csv", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Write([]byte("HTTP/1.1 503 \x1b[31mred\r\nContent-Length: 0\r\n\r\n"))
			conn.Close()
		}, "", "503 Service Unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			dst := filepath.Join(t.TempDir(), "set", c.path)
			// A part of an earlier download is still there.
			writeFile(t, filepath.Dir(dst), c.path+".part", strings.Repeat("garbage", len(packed)))
			options := &FetchOptions{Client: server.Client()}
			file := File{Path: "set/" + c.path, URLs: []string{server.URL, server.URL + "/again"}, SHA256: c.sum}
			err := options.fetchFile(t.Context(), file, filepath.Dir(filepath.Dir(dst)))
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil ||
				!strings.Contains(err.Error(), c.wantErr) ||
				!strings.Contains(err.Error(), server.URL+"/again") || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Fatalf("error %q, want %q", fmt.Sprint(err), c.wantErr)
			}
			content, _ := os.ReadFile(dst)
			if isComplete := string(content) == packed; isComplete != (c.wantErr == "") {
				t.Errorf("file of %d bytes after %v", len(content), err)
			}
		})
	}
}

// serveText returns a handler that sends the content.
func serveText(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(content)) }
}

// TestFetchMirrors checks that the next URL is tried if one fails, and that the progress is reported.
func TestFetchMirrors(t *testing.T) {
	failing := httptest.NewServer(http.NotFoundHandler())
	defer failing.Close()
	working := httptest.NewServer(http.HandlerFunc(serveText("1,2\n")))
	defer working.Close()
	dir := t.TempDir()
	var last int64
	options := &FetchOptions{Client: http.DefaultClient, Progress: func(file string, done, total int64) {
		if file != "f" || total != 4 {
			t.Errorf("%s: %d of %d", file, done, total)
		}
		last = done
	}}
	if err := options.fetchFile(context.Background(), File{Path: "f", URLs: []string{failing.URL, working.URL}},
		dir); err != nil || last != 4 {
		t.Errorf("%v, %d bytes", err, last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantError(t, options.fetchFile(ctx, File{Path: "g", URLs: []string{working.URL}}, dir), "context canceled")
}

// TestFetchArguments checks that an unknown set and a set that cannot be downloaded are errors, and that a built-in
// set needs no download.
func TestFetchArguments(t *testing.T) {
	wantError(t, Fetch(context.Background(), "nosuch", t.TempDir(), nil), "nosuch")
	err := Fetch(context.Background(), "cal-housing", t.TempDir(), nil)
	wantError(t, err, "cannot be downloaded")
	if err := Fetch(context.Background(), "synthetic-classes", t.TempDir(), nil); err != nil {
		t.Errorf("built in: %v", err)
	}
}

// TestVerify checks that the checksum is that of the unpacked content, and that a file without a known checksum is
// not an error.
func TestVerify(t *testing.T) {
	path := writeFile(t, t.TempDir(), "f.gz", gzipText("abc"))
	f := File{SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"} // checksum of "abc"
	if known, err := f.Verify(path); !known || err != nil {
		t.Errorf("the checksum is known: %v, %v", known, err)
	}
	writeFile(t, filepath.Dir(path), "f.gz", gzipText("abd"))
	wantError(t, errorFrom(f.Verify(path)), "f.gz")
	if known, err := (&File{}).Verify(path); known || err != nil {
		t.Errorf("unknown: %v, %v", known, err)
	}
}

// TestFetchDowngrade checks that a redirection from https to http is refused, also by way of another server, and that
// other redirections are followed.
func TestFetchDowngrade(t *testing.T) {
	httpServer := httptest.NewServer(http.HandlerFunc(serveText("1,2\n")))
	defer httpServer.Close()
	target := httpServer.URL
	tlsServer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			serveText("1,2\n")(w, r)
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	}))
	defer tlsServer.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	fetch := func(url string) error {
		options := &FetchOptions{Client: client}
		return options.fetchFile(context.Background(), File{Path: "f.csv", URLs: []string{url}}, t.TempDir())
	}
	wantError(t, fetch(tlsServer.URL), "redirected from https to")
	backToHTTPS := httptest.NewServer(http.RedirectHandler(tlsServer.URL+"/file", http.StatusFound))
	defer backToHTTPS.Close()
	target = backToHTTPS.URL
	wantError(t, fetch(tlsServer.URL), "redirected from https to")
	target = tlsServer.URL + "/file"
	if err := fetch(tlsServer.URL); err != nil {
		t.Errorf("to https: %v", err)
	}
	fromHTTP := httptest.NewServer(http.RedirectHandler(httpServer.URL, http.StatusFound))
	defer fromHTTP.Close()
	if err := fetch(fromHTTP.URL); err != nil {
		t.Errorf("from http to http: %v", err)
	}
}
