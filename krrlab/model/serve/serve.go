package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// Options are the limits of a server. Zero values mean the defaults.
type Options struct {
	// MaxBody is the largest size of a request's body. The rows read from it may take memoryFactor times as much.
	MaxBody int64 `flag:"max-body" default:"10MB" unit:"bytes" check:">=1" help:"largest size of a request"`
	// Timeout limits the time for reading a request, for waiting and predicting, and for writing the answer.
	Timeout time.Duration `flag:"timeout" default:"30s" check:"positive" help:"limit of the time to read, and to answer"`
	// Concurrent is the number of predictions at the same time. Each uses all threads.
	Concurrent int `flag:"concurrent" default:"2" check:">=1" help:"number of predictions at the same time"`
	// Waiting is the number of requests that may be read or wait at the same time. Further ones get the status 503.
	Waiting int `flag:"waiting" default:"100" check:">=1" help:"number of requests that are read or wait at the same time"`
}

const (
	memoryFactor   = 64          // memory limit for the rows of a body, as a multiple of MaxBody
	idleTimeout    = time.Minute // a connection without a request is closed after this time
	maxHeaderBytes = 1 << 16     // limit of the size of a request's header
)

// handler answers the requests for one model.
type handler struct {
	Options
	m       *model.Model
	info    []byte        // answer of GET /
	pending chan struct{} // one value for each request that is not answered yet, at most Waiting
	slots   chan struct{} // one value for each prediction that runs, at most Concurrent
}

// Handler returns a handler of requests for predictions of the model. All options must be set. It returns an error for
// a model that does not predict from rows.
func Handler(m *model.Model, o Options) (http.Handler, error) {
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return nil, errors.New("serve: the model has a precomputed kernel, and predicts from K(test, train) only")
	}
	info, err := m.Info()
	if err != nil {
		return nil, err
	}
	h := &handler{Options: o, m: m, pending: make(chan struct{}, o.Waiting), slots: make(chan struct{}, o.Concurrent)}
	if h.info, err = json.Marshal(info); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Write(h.info)
	})
	mux.HandleFunc("POST /predict", h.predict)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		allowed, exists := map[string]string{"/": "GET", "/predict": "POST"}[r.URL.Path]
		if !exists {
			writeError(w, http.StatusNotFound, "path %q: want POST /predict or GET /", r.URL.Path)
			return
		}
		w.Header().Set("Allow", allowed)
		writeError(w, http.StatusMethodNotAllowed, "method %s: want %s %s", r.Method, allowed, r.URL.Path)
	})
	return mux, nil
}

// Run answers requests to l until ctx ends. It then accepts no more requests, and returns nil when the accepted ones
// are answered, or an error if that takes longer than Timeout.
func Run(ctx context.Context, l net.Listener, m *model.Model, o Options) error {
	err := schema.Complete(&o)
	if err != nil {
		l.Close()
		return fmt.Errorf("serve: %w", err)
	}
	h, err := Handler(m, o)
	if err != nil {
		l.Close()
		return err
	}
	server := &http.Server{Handler: h, ReadTimeout: o.Timeout, WriteTimeout: 3 * o.Timeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	shutdownCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), o.Timeout)
	defer stop()
	if err = server.Shutdown(shutdownCtx); err != nil {
		server.Close()
	}
	return err
}

const jsonType, csvType = "application/json", "text/csv"

// writeError answers a request with an error.
func writeError(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": fmt.Sprintf(format, args...)})
}

// predict answers a request for predictions.
func (h *handler) predict(w http.ResponseWriter, r *http.Request) {
	select {
	case h.pending <- struct{}{}:
		defer func() { <-h.pending }()
	default:
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "%d requests are being answered, the most at the same time",
			h.Waiting)
		return
	}
	if r.URL.RawQuery != "" {
		writeError(w, http.StatusBadRequest, "query %q: want none; krrlab predict has intervals and other options",
			r.URL.RawQuery)
		return
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != jsonType && media != csvType {
		writeError(w, http.StatusUnsupportedMediaType, "Content-Type %q: want %s or %s", media, jsonType, csvType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if bodyError, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, "the request has more than %d bytes: send its rows in parts",
			bodyError.Limit)
		return
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "%v", err)
		return
	}
	answer, answerType, status, err := h.answer(r, media, body)
	if err != nil {
		writeError(w, status, "%v", err)
		return
	}
	w.Header().Set("Content-Type", answerType)
	w.Write(answer)
}

// answer reads the rows of a body and returns the predictions for them with their media type, or an error with its
// status. It occupies one of the slots, and frees the slot before anything is written to the client, who may read
// slowly.
func (h *handler) answer(r *http.Request, media string,
	body []byte) (answer []byte, answerType string, status int, err error) {
	ctx, stop := context.WithTimeout(r.Context(), h.Timeout)
	defer stop()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, "", http.StatusServiceUnavailable, fmt.Errorf("no free place within %v", h.Timeout)
	}
	o := datasets.ReadOptions{Memory: memoryFactor * h.MaxBody}
	var lines []int
	if media == jsonType {
		if body, o.Header, lines, err = csvRows(body); err != nil {
			return nil, "", http.StatusBadRequest, err
		}
		switch {
		case o.Header == "yes" && h.m.Columns == nil:
			return nil, "", http.StatusBadRequest, errors.New("the columns of the model have no names: " +
				"want rows as lists of cells, in the order of the columns")
		case o.Header == "no" && h.m.Columns != nil && h.m.Origin.Categorical != nil:
			return nil, "", http.StatusBadRequest, errors.New("the model has columns of words or dates, " +
				"which are found by name: want rows as objects, such as {\"column\": value, …}")
		}
		o.Separator, o.Comment = ",", "none"
	}
	p, rows, err := h.m.PredictRows(ctx, bytes.NewReader(body), o)
	switch {
	case ctx.Err() != nil:
		return nil, "", http.StatusServiceUnavailable, fmt.Errorf("no answer within %v", h.Timeout)
	case err != nil:
		return nil, "", http.StatusBadRequest, locateInRows(err, lines)
	case media == csvType && !strings.Contains(r.Header.Get("Accept"), jsonType):
		var csv bytes.Buffer
		err = model.WriteCSV(&csv, rows.Len(), p.Columns())
		return csv.Bytes(), csvType, http.StatusInternalServerError, err
	}
	return h.jsonAnswer(p, rows), jsonType, http.StatusOK, nil
}

// locateInRows returns an error of reading rows in the terms of a request. For rows in JSON, lines has the line of CSV
// at which each row begins, and the error names the row, counted from 0, in place of the line. For CSV, lines is nil.
func locateInRows(err error, lines []int) error {
	parseError, ok := errors.AsType[*datasets.ParseError](err)
	if !ok || lines == nil {
		return err
	}
	rowsUpToError, _ := slices.BinarySearch(lines, parseError.Line+1)
	row := rowsUpToError - 1
	switch {
	case row < 0:
		return errors.New(parseError.Reason)
	case lines[0] == 1 && parseError.Column > 0: // there is no header, and so no name in the reason
		return fmt.Errorf("row %d, column %d: %s", row, parseError.Column-1, parseError.Reason)
	}
	return fmt.Errorf("row %d: %s", row, parseError.Reason)
}

// jsonAnswer returns a prediction as JSON, with notes on the words in the rows that the model does not know, and on
// rows far from the training points, whose predictions are nearly constant.
func (h *handler) jsonAnswer(p *model.Prediction, rows *datasets.Dataset) []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // predictions are finite
	}
	var notes []string
	for _, words := range rows.UnknownWords {
		notes = append(notes, "words that are not in the training data, with their rows: "+words.String())
	}
	if note := h.m.FarRowsNote(rows); note != "" {
		notes = append(notes, note)
	}
	if notes == nil {
		return text
	}
	notesJSON, err := json.Marshal(notes)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(text[:len(text)-1], `,"notes":%s}`, notesJSON)
}
