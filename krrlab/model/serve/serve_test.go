package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/serve"
)

// options are the options of the servers in these tests.
var options = serve.Options{MaxBody: 2000, Timeout: time.Minute, Concurrent: 2, Waiting: 100}

// twoPointModel returns a model of two points in the columns a and city. The column city has the words x and y.
func twoPointModel() *model.Model {
	return &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Columns: []string{"a", "city=x", "city=y"},
		X: points.NewDense(2, 3, []float64{0, 0, 0, 3, 1, 0}), C: mat.NewDense(2, 1, []float64{2, -1}),
		Origin: model.Origin{Target: "price",
			Categorical: []datasets.ColumnCoding{{Column: "city", Values: []string{"x", "y"}}}}}
}

// post sends a request with the given media type and body to the handler. It returns the status and the body of the
// response.
func post(t *testing.T, h http.Handler, mediaType, body string) (int, string) {
	t.Helper()
	request := httptest.NewRequest("POST", "/predict", strings.NewReader(body))
	request.Header.Set("Content-Type", mediaType)
	response := httptest.NewRecorder()
	h.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

// TestPredict checks that rows in JSON and CSV, with columns in any order, give the predictions of the model, and
// that an invalid request is an error that names the row or the column.
func TestPredict(t *testing.T) {
	m := twoPointModel()
	h := testkit.Must(serve.Handler(m, options))
	want := testkit.Must(m.Decision(t.Context(), points.NewDense(2, 3, []float64{1, 1, 0, 2.5, 0, 1}), nil))
	first, second := fmt.Sprint(want.At(0, 0)), fmt.Sprint(want.At(1, 0))
	twoValues, oneValue := `{"value":[`+first+`,`+second+`]}`, `{"value":[`+first+`]}`
	var tooLong = "a,city\n" + strings.Repeat("1,x\n", 600)
	for _, c := range []struct {
		media, body string
		status      int
		want        string // whole answer, or part of an error
	}{
		{"application/json", `[{"a": 1, "city": "x"}, {"city": "y", "a": 2.5}]`, 200, twoValues},
		{"application/json; charset=utf-8", `{"rows": [{"a": 1, "city": "x"}, {"a": "2.5", "city": "y"}]}`, 200,
			twoValues}, {"application/json", `{"city": "x", "a": 1}`, 200, oneValue},
		{"application/json", `{"city": "x", "a": 1, "price": 7, "else": null}`, 200, oneValue},
		{"text/csv", "city,a\nx,1\ny,2.5\n", 200, "row,prediction\n0," + first + "\n1," + second + "\n"},
		{"text/csv", "a;city\n1;x\n", 200, "row,prediction\n0," + first + "\n"},
		{"application/json", `[{"a": 1, "city": "z"}, {"a": 1, "city": "x"}]`, 200,
			`"notes":["words that are not in the`},
		{"application/json", `[{"a": 1, "city": "x"}, {"a": 1}]`, 400, `row 1 has no \"city\"`},
		{"application/json", `[{"a": 1}, {"a": 1, "city": "x"}]`, 400, `row 1 has \"city\", which row 0 has not`},
		{"application/json", `[{"a": 1, "town": "x"}]`, 400, `city`},
		{"application/json", `[{"a": 1, "city": "x"}, {"a": "one", "city": "x"}]`, 400, `{"error":"row 1: a: `},
		{"application/json", `[{"a": null, "city": "x"}]`, 400, `{"error":"row 0: a: the cell is empty`},
		{"application/json", `[{"a": 1, "city": "x", "note": "a\nb\nc"}, {"a": "one", "city": "x", "note": ""}]`, 400,
			`{"error":"row 1: a: `},
		{"application/json", `[[1, "x"]]`, 400, `words or dates, which are found by name: want rows as objects`},
		{"application/json", `[{"a": 90, "city": "x"}, {"a": 1, "city": "x"}]`, 200,
			`"notes":["1 of 2 rows are so far from the training points`},
		{"application/json", `[{"a": [1], "city": "x"}]`, 400, "row 0, column a: want a number"},
		{"application/json", `[[1, "x"], {"a": 1}]`, 400, "row 1: want"},
		{"application/json", `[{"a": 1`, 400, "JSON: unexpected EOF"},
		{"application/json", `[{"a": 1}] 2`, 400, "more text follows"},
		{"application/json", `[]`, 400, "want {"}, {"application/json", `7`, 400, "want {"},
		{"application/json", `[[]]`, 400, "row 0: want"}, {"application/json", ``, 400, "JSON: EOF"},
		{"application/json", strings.Repeat("[", 1500), 400, "row 0, column 0: want a number"},
		{"application/json", `[{"a": 1, "city": "x", "a": 2}]`, 400, `row 0 has \"a\" twice`},
		{"application/json", `{"rows": [{"a": 1, "city": "x"}], "more": 1}`, 400, "want {"},
		{"application/json", `{"rows": 5, "a": 1, "city": "x"}`, 200, oneValue},
		{"application/json", `[{"a": 1, "city": "x"}}`, 400, "JSON: "},
		{"application/json", `[{"a": 1,}]`, 400, "JSON: "},
		{"application/json", `[[1], {"a": 1}]`, 400, "row 1: want"}, {"application/json", `[1]`, 400, "row 0: want"},
		{"text/csv", "", 400, "rows"}, {"text/csv", "a,city\n", 400, "rows"},
		{"text/csv", "\x1f\x8b garbage", 400, "rows"}, {"text/csv", "a,city\n1e400,x\n", 400, "1e400"},
		{"text/csv", tooLong, 413, "more than 2000 bytes"}, {"application/json", tooLong, 413, "more than 2000 bytes"},
		{"text/plain", "a,city\n1,x\n", 415, "want application/json or text/csv"}, {"", "x", 415, "want"},
	} {
		status, got := post(t, h, c.media, c.body)
		var errorAnswer struct{ Error string }
		switch {
		case status != c.status || !strings.Contains(got, c.want):
			t.Errorf("%s %.80q: %d %s, want %d %s", c.media, c.body, status, got, c.status, c.want)
		case status != 200 && (json.Unmarshal([]byte(got), &errorAnswer) != nil || errorAnswer.Error == ""):
			t.Errorf("%s %.80q: want JSON with an error: %s", c.media, c.body, got)
		case status == 200 && !strings.Contains(c.want, "notes") && got != c.want:
			t.Errorf("%s %.80q: %q, want %q", c.media, c.body, got, c.want)
		}
	}
	p, rows, err := m.PredictRows(t.Context(), strings.NewReader("a,city\n1,x\n"), datasets.ReadOptions{})
	testkit.OK(t, err)
	var csv bytes.Buffer
	testkit.OK(t, model.WriteCSV(&csv, rows.Len(), p.Columns()))
	testkit.Equal(t, csv.String(), "row,prediction\n0,"+first+"\n")
	for path, status := range map[string]int{"/": 200, "/predict": 405, "/other": 404} {
		response := httptest.NewRecorder()
		h.ServeHTTP(response, httptest.NewRequest("GET", path, nil))
		var errorAnswer struct{ Error string }
		err := json.Unmarshal(response.Body.Bytes(), &errorAnswer)
		if response.Code != status || err != nil || (errorAnswer.Error == "") != (status == 200) {
			t.Errorf("GET %s: status %d, want %d and JSON: %s", path, response.Code, status, response.Body)
		}
	}
	for _, query := range []string{"interval=0.9", "a=1&city=x", "decision", "%zz", "="} {
		request := httptest.NewRequest("POST", "/predict", strings.NewReader("a,city\n1,x\n"))
		request.URL.RawQuery = query
		request.Header.Set("Content-Type", "text/csv")
		response := httptest.NewRecorder()
		h.ServeHTTP(response, request)
		if response.Code != 400 || !strings.Contains(response.Body.String(), "krrlab predict has intervals") {
			t.Errorf("the query ?%s: status %d, want 400 with a hint: %s", query, response.Code, response.Body)
		}
	}
	m.Kernel = testkit.Must(kernel.NewPrecomputed(points.NewDense(2, 2, []float64{1, 0, 0, 1})))
	testkit.Fails(t, testkit.ErrOf(serve.Handler(m, options)), "precomputed")
}

// TestModelWithoutHeader checks a model of a file without a header. It takes the coordinates of --space by their
// positions in that file, or alone in the same order. JSON objects, whose names have no order, are refused.
func TestModelWithoutHeader(t *testing.T) {
	fit := testkit.Must(datasets.Read(strings.NewReader("5,0,1\n6,1,0\n7,2,4\n"), "fit",
		&datasets.ReadOptions{Space: &datasets.Space{Columns: []string{"2", "1"}}, Target: "0"}))
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 0.1, X: fit.X, C: mat.NewDense(3, 1, fit.Target),
		Origin: model.Origin{Target: "0", Space: fit.Space}}
	h := testkit.Must(serve.Handler(m, options))
	want := fmt.Sprint(testkit.Must(m.Decision(t.Context(), points.NewDense(1, 2, []float64{3, 2}), nil)).At(0, 0))
	for body, media := range map[string]string{"[[9, 2, 3]]": "application/json", "[[2, 3]]": "application/json",
		"2,3\n": "text/csv"} {
		_, got := post(t, h, media, body)
		testkit.Contains(t, got, want)
	}
	for body, want := range map[string]string{`[{"y": 9, "b": 2, "a": 3}]`: "have no names", "[[3]]": "column 2",
		`[[9, 2, 3], [9, "two", 3]]`: `{"error":"row 1, column 1: `} {
		if status, got := post(t, h, "application/json", body); status != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: status %d %s, want 400 with %q", body, status, got, want)
		}
	}
}

// TestOnlyMissingValues checks that each row has a prediction, even if its only column has a missing value, for rows
// with and without names.
func TestOnlyMissingValues(t *testing.T) {
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Columns: []string{"x"},
		X: points.NewDense(1, 1, []float64{0}),
		C: mat.NewDense(1, 1, []float64{1}), Scaling: &datasets.Scaling{Kind: "fill", Scale: []float64{1},
			Fill: []float64{0}}}
	h := testkit.Must(serve.Handler(m, options))
	for _, named := range []string{`[{"x": null}, {"x": 0}, {"x": null}]`, `[{"x": null}]`} {
		rows := strings.Count(named, "x")
		m.Columns = []string{"x"}
		for _, body := range []string{named, strings.NewReplacer(`{"x": `, "[", "}", "]").Replace(named)} {
			status, got := post(t, h, "application/json", body)
			testkit.Equal(t, got, `{"value":[`+strings.TrimSuffix(strings.Repeat("1,", rows), ",")+`]}`, body, status)
			m.Columns = nil // the second body has rows without names
		}
	}
}

// startServer serves the model of twoPointModel on a free port of this machine. The function stop stops the server and
// returns the error of Run.
func startServer(t *testing.T, o serve.Options) (address string, stop func() error) {
	t.Helper()
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, listener, twoPointModel(), o) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { stop() })
	return listener.Addr().String(), stop
}

// TestSlowClients checks that a client that does not complete its request loses its connection and does not block
// other clients, and that the server ends without an error.
func TestSlowClients(t *testing.T) {
	shortTimeout := options
	shortTimeout.Timeout, shortTimeout.Waiting = 2*time.Second, 3
	address, stop := startServer(t, shortTimeout)
	const head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: 11\r\n\r\n"
	var slowConns []net.Conn
	for _, sent := range []string{"", "POST /pre", head, head + "a,ci"} {
		conn := testkit.Must(net.Dial("tcp", address))
		defer conn.Close()
		io.WriteString(conn, sent)
		slowConns = append(slowConns, conn)
	}
	for i, conn := range slowConns { // reads until the server closes the connection
		if text, _ := io.ReadAll(conn); strings.Contains(string(text), " 200 ") {
			t.Errorf("slow client %d: %s", i, text)
		}
	}
	conn := testkit.Must(net.Dial("tcp", address))
	defer conn.Close()
	io.WriteString(conn, head+"a,city\n1,x\n")
	response := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))
	if text, _ := io.ReadAll(response.Body); response.StatusCode != 200 {
		t.Errorf("after slow clients: %s", text)
	}
	testkit.OK(t, stop())
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the server still listens")
	}
}

// TestManyRequests checks that many simultaneous requests are answered correctly or refused with the status 503.
func TestManyRequests(t *testing.T) {
	const clients = 50
	requestsPerClient := suite.Scale(5, 5, 200)
	address, stop := startServer(t, serve.Options{MaxBody: 1 << 20, Timeout: time.Minute, Concurrent: 2,
		Waiting: clients / 2})
	want := testkit.Must(twoPointModel().Decision(t.Context(), points.NewDense(1, 3, []float64{1, 1, 0}), nil))
	var answered, refused atomic.Int64
	var wg sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	for range clients {
		wg.Go(func() {
			for range requestsPerClient {
				response, err := (&http.Client{Transport: transport}).Post("http://"+address+"/predict",
					"application/json", strings.NewReader(`[{"a": 1, "city": "x"}]`))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				switch {
				case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "1":
					refused.Add(1)
				case err != nil || response.StatusCode != 200 ||
					string(text) != fmt.Sprintf(`{"value":[%v]}`, want.At(0, 0)):
					t.Errorf("status %d %s, error %v; want the prediction %v", response.StatusCode, text, err,
						want.At(0, 0))
				default:
					answered.Add(1)
				}
			}
		})
	}
	wg.Wait()
	transport.CloseIdleConnections()
	if answered.Load() == 0 || answered.Load()+refused.Load() != int64(clients*requestsPerClient) {
		t.Errorf("%d requests are answered and %d refused, of %d", answered.Load(), refused.Load(),
			clients*requestsPerClient)
	}
	testkit.OK(t, stop())
}

// TestDefaults checks that a server with zero options answers a request, and that an invalid option is an error that
// names it and closes the listener.
func TestDefaults(t *testing.T) {
	address, stop := startServer(t, serve.Options{})
	response := testkit.Must(http.Post("http://"+address+"/predict", "application/json",
		strings.NewReader(`[{"a":1,"city":"x"}]`)))
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
	testkit.OK(t, stop())
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))
	testkit.Fails(t, serve.Run(t.Context(), listener, twoPointModel(), serve.Options{Waiting: -1}),
		"Waiting -1: want at least 1")
	if _, err := listener.Accept(); err == nil {
		t.Error("Run with an invalid option leaves the listener open")
	}
}

// A handler answers a request with the prediction of the model.
func ExampleHandler() {
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Columns: []string{"x"},
		X: points.NewDense(1, 1, []float64{0}), C: mat.NewDense(1, 1, []float64{2})}
	h, err := serve.Handler(m, serve.Options{MaxBody: 1e6, Timeout: time.Second, Concurrent: 1, Waiting: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("POST", "/predict", strings.NewReader(`[{"x": 0}]`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Body)
	// Output: {"value":[2]}
}
