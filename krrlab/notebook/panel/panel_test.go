package panel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/widget"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/compare"
	"github.com/krrlab/lab/krrlab/stage/quality"
)

// reader is a notebook whose user moves the controls of a panel.
type reader struct {
	t       *testing.T
	set     widget.Set
	mu      sync.Mutex
	ids     map[string]string // comm id of each control, by its label
	values  map[string]string // value of each HTML control, by its comm id
	changed chan bool         // receives a value when an HTML control has changed
	outputs []display.Data
}

// newReader returns a notebook without panels.
func newReader(t *testing.T) *reader {
	return &reader{t: t, ids: map[string]string{}, values: map[string]string{}, changed: make(chan bool, 10000)}
}

// host returns the Host of the panels of r.
func (r *reader) host() Host {
	show := func(d display.Data) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.outputs = append(r.outputs, d)
	}
	return Host{Models: &r.set, Send: r.receive, Show: show, Update: show, Explain: func(v any) string {
		return fmt.Sprint("panic: ", v)
	}}
}

// receive records a message of a control.
func (r *reader) receive(typ string, content, _ map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := content["comm_id"].(string)
	state, _ := content["data"].(map[string]any)["state"].(map[string]any)
	if label, ok := state["description"].(string); ok && label != "" {
		r.ids[label] = id
	}
	if v, ok := state["value"].(string); ok && typ == "comm_msg" {
		r.values[id] = v
		r.changed <- true
	}
}

// move sets key of the state of the control with a label, or clicks it if key is click.
func (r *reader) move(label, key string, value any) {
	r.mu.Lock()
	id := r.ids[label]
	r.mu.Unlock()
	if id == "" {
		r.t.Fatalf("no control %s", label)
	}
	b := testkit.Must(json.Marshal(map[string]any{"comm_id": id, "data": map[string]any{"method": "update",
		"state": map[string]any{key: value}, "content": map[string]any{"event": "click"}}}))
	if key == "click" {
		b = []byte(strings.Replace(string(b), `"method":"update"`, `"method":"custom"`, 1))
	}
	r.set.Receive("comm_msg", b, r.receive)
}

// wait waits until an HTML control shows the text.
func (r *reader) wait(text string) {
	r.t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		r.mu.Lock()
		shown := fmt.Sprint(r.values)
		r.mu.Unlock()
		if strings.Contains(shown, text) {
			return
		}
		select {
		case <-r.changed:
		case <-limit:
			r.t.Fatalf("no %q in %.3000s", text, shown)
		}
	}
}

// open shows a panel of a subject, and closes it when the test ends.
func (r *reader) open(s Subject, err error) *Panel {
	r.t.Helper()
	testkit.OK(r.t, err)
	p := testkit.Must(New(context.Background(), r.host(), s, "the panel"))
	r.t.Cleanup(p.Close)
	return p
}

// choice has an option for each kind of control.
type choice struct {
	N     int     `flag:"n" symbol:"𝑛" default:"10" check:"[1,100]" help:"points"`
	Q     float64 `flag:"q" default:"0.5" check:"(0,1)"`
	Rate  float64 `flag:"rate" default:"0.01" check:"positive"`
	Name  string  `flag:"name" default:"x" check:"one of x y"`
	Other bool    `flag:"other"`
	Max   int     `flag:"max" check:">=1"`
	Lists []int   `flag:"lists" check:">=1"`
	File  string  `flag:"file" file:"read"`
}

// TestControlKinds checks which control each kind of option gets, with its range and step.
func TestControlKinds(t *testing.T) {
	want := []string{"𝑛 IntSlider 10 1 100 1", "q FloatSlider 0.5 0.01 0.99 0.01", "rate FloatLogSlider 0.01 1e-05 10 0",
		"name Dropdown x 0 0 0", "other Checkbox false 0 0 0", "max Text  0 0 0", "lists Text  0 0 0"}
	for i, f := range fieldsWithControl(schema.Of(new(choice))) {
		s := controlFor(f, 0)
		testkit.Equal(t, fmt.Sprint(s.Label, " ", s.Kind, " ", s.Value, " ", s.Min, " ", s.Max, " ", s.Step), want[i])
	}
	f := schema.Of(&struct {
		S int `flag:"s" default:"500" check:">=1"`
	}{}).Fields[0]
	s := controlFor(f, 1000)
	testkit.Equal(t, fmt.Sprint(s.Min, s.Max, s.Step), "10 1000 10")
}

// TestLiteral checks the Go code of values of options.
func TestLiteral(t *testing.T) {
	for want, v := range map[string]any{
		"panel.choice{N: 3, Q: 0.25, Lists: []int{1, 2}}":              choice{N: 3, Q: 0.25, Lists: []int{1, 2}},
		`compare.Options{With: stage.Entries{stage.Entry{Text: "a"}}}`: compare.Options{With: stage.Entries{{Text: "a"}}},
		"krrlab.Config{Memory: 3, ProcessTimeout: 5}":                  krrlab.Config{Kernel: kernel.Gaussian{}, Memory: 3, ProcessTimeout: 5},
		"{P: new(int(7))}": struct{ P *int }{new(7)},
	} {
		testkit.Equal(t, literal(reflect.ValueOf(v)), want)
	}
}

// TestFunctionPanel moves the controls of a panel for a function. The panel must show the result of the newest setting,
// errors, panics and invalid values. A run that waits for its context ends when a newer setting replaces it or Stop is
// clicked.
func TestFunctionPanel(t *testing.T) {
	r := newReader(t)
	started := make(chan int, 100)
	f := func(ctx context.Context, o choice) (string, error) {
		started <- o.N
		switch {
		case o.N == 13:
			panic("unlucky")
		case o.N == 14:
			return "", errors.New("<no>")
		case o.N >= 20: // runs until the context ends
			<-ctx.Done()
			return fmt.Sprint("part of ", o.N), ctx.Err()
		}
		return fmt.Sprintf("n = %d, q = %g, rate = %.4g", o.N, o.Q, o.Rate), nil
	}
	p := r.open(FunctionSubject(f, nil, "f"))
	r.wait("n = 10, q = 0.5, rate = 0.01")
	r.wait("Must(f(ctx, panel.choice{}))")
	r.move("rate", "value", 0.1)
	r.wait("n = 10, q = 0.5, rate = 0.1")
	r.wait("Must(f(ctx, panel.choice{Rate: 0.1}))")
	r.move("𝑛", "value", 13)
	r.wait("panic: unlucky")
	r.move("𝑛", "value", 14)
	r.wait("&lt;no&gt;")
	r.move("max", "value", "0")
	r.wait("--max 0: want at least 1")
	r.move("max", "value", "")
	for i := range 20 {
		r.move("𝑛", "value", 20+i)
	}
	for n := range started { // settings before the last one may be skipped
		if n == 39 {
			break
		}
	}
	r.move("Stop", "click", nil)
	r.wait("part of 39")
	r.wait("partial result")
	r.move("𝑛", "value", 21)
	for n := range started {
		if n == 21 {
			break
		}
	}
	r.move("𝑛", "value", 11)
	r.wait("n = 11")
	r.mu.Lock()
	first, last := r.outputs[0], r.outputs[len(r.outputs)-1]
	r.mu.Unlock()
	testkit.Equal(t, fmt.Sprint(first.Data["text/plain"], first.Transient["display_id"]), "running…the panel")
	if h := fmt.Sprint(last.Data["text/html"]); !strings.Contains(h, "n = 10, q = 0.5, rate = 0.01") ||
		!strings.Contains(h, withoutControls) || len(r.outputs) != 2 {
		t.Errorf("the static picture: %d outputs, %s", len(r.outputs), h)
	}
	if r.set.KeepsControls() || last.Data["application/vnd.jupyter.widget-view+json"] == nil {
		t.Errorf("%v", last.Data)
	}
	p.Close()
	testkit.Equal(t, len(r.set.Comms("")), 0)
}

// TestStartOptions checks that a panel for a function starts from the given options, and that options of another type
// are an error.
func TestStartOptions(t *testing.T) {
	r := newReader(t)
	f := func(o choice) string { return fmt.Sprintf("n = %d, q = %g", o.N, o.Q) }
	r.open(FunctionSubject(f, choice{N: 20}, "f"))
	r.wait("n = 20, q = 0.5")
	r.wait("f(panel.choice{N: 20})")
	r.move("q", "value", 0.25)
	r.wait("n = 20, q = 0.25")
	testkit.Fails(t, testkit.ErrOf(FunctionSubject(f, 3, "f")), "want its options, a panel.choice")
}

// TestFirstRun checks that New returns the error of the first run, and that cancelling its context ends this run.
// Values that are not suitable functions are errors.
func TestFirstRun(t *testing.T) {
	r := newReader(t)
	fails := testkit.Must(FunctionSubject(func(choice) (int, error) { return 0, errors.New("no") }, nil, "f"))
	_, err := New(context.Background(), r.host(), fails, "a")
	testkit.Equal(t, fmt.Sprintf("%v %d", err, len(r.set.Comms(""))), "no 0")
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan bool, 1)
	waits := testkit.Must(FunctionSubject(func(ctx context.Context,
		_ choice) int {
		begun <- true
		<-ctx.Done()
		return 1
	}, nil, "f"))
	go func() { <-begun; cancel() }()
	p, err := New(ctx, r.host(), waits, "b")
	testkit.Equal(t, err, context.Canceled)
	p.Close()
	for _, unsuitable := range []any{nil, 1, func() int { return 1 }, func(int) int { return 1 }, func(choice) {},
		func(struct{ A int }) int { return 1 }, func(choice) (int, int) { return 1, 1 }} {
		testkit.Fails(t, testkit.ErrOf(FunctionSubject(unsuitable, nil, "f")), "Explore")
	}
}

// TestStagePanel checks a panel for a stage. Its controls change the preconditioner of the laboratory, the settings
// share one kernel matrix K, and the result equals that of the Go code that the panel shows.
func TestStagePanel(t *testing.T) {
	train := datasets.SyntheticRegression(200, 2, 0.1, 1)
	lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1,
		Precond: krrlab.Features{S: 40}}))
	r := newReader(t)
	r.open(StageSubject(lab, &quality.Options{MaxExactN: -1}, "lab"))
	r.wait("Must(lab.Run(ctx, quality.Options{MaxExactN: -1}))")
	r.move("s", "value", 80)
	r.wait("c.Precond = recipe.Features{S: 80, LambdaP: 0.1}")
	other := testkit.Must(lab.With(func(c *krrlab.Config) { c.Precond = krrlab.Features{S: 80, LambdaP: 0.1} }))
	result := testkit.Must(other.Run(t.Context(), quality.Options{MaxExactN: -1})).(*quality.Result)
	_, kappa, _ := strings.Cut(result.String(), "κ(M⁻¹A) ")
	kappa, _, _ = strings.Cut(kappa, "\n")
	r.wait(kappa)
	var names []string
	for _, kind := range stage.Kinds() {
		if kind.CheckKernel(lab.Config().Kernel) == nil && !strings.HasSuffix(kind.Name, ":") {
			names = append(names, kind.Name)
		}
	}
	r.move("preconditioner", "index", slices.Index(names, "nystrom"))
	r.wait("c.Precond = recipe.Nystrom{}")
	r.move("s", "value", 100)
	r.wait("c.Precond = recipe.Nystrom{S: 100}")
	testkit.Fails(t, testkit.ErrOf(StageSubject(nil, quality.Options{}, "lab")), "Explore of a lab that is nil")
	if s := testkit.Must(StageSubject(lab, compare.Options{}, "lab")).(*stageSubject); s.hasPreconditioner() {
		t.Error("compare has a choice of preconditioner")
	}
	matrix := testkit.Must(lab.K(t.Context()))
	otherMatrix := testkit.Must(other.K(t.Context()))
	if matrix != otherMatrix {
		t.Error("two settings have two matrices")
	}
}

// TestStopBetweenRuns clicks Stop after the loop of a panel has noticed a moved control and before it runs the subject.
// The subject must not run, and the panel says so. The next move must run it.
func TestStopBetweenRuns(t *testing.T) {
	r := newReader(t)
	runs := make(chan int, 10)
	p := r.open(FunctionSubject(func(c choice) (int, error) { runs <- c.N; return c.N, nil }, nil, "f"))
	testkit.Equal(t, <-runs, 10)
	r.wait(" s")
	p.mu.Lock()
	p.isPending = true
	p.wake <- struct{}{}
	for len(p.wake) > 0 { // until the loop has received the move, and waits for the lock
		runtime.Gosched()
	}
	p.interrupt()
	p.mu.Unlock()
	r.wait("interrupted before there was a result")
	r.move("𝑛", "value", 20)
	testkit.Equal(t, <-runs, 20)
}
