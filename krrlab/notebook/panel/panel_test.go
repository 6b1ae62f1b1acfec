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

// testNotebook is a notebook whose user moves the controls of a panel.
type testNotebook struct {
	t       *testing.T
	set     widget.Set
	mu      sync.Mutex
	ids     map[string]string // comm id of each control, by its label
	values  map[string]string // value of each HTML control, by its comm id
	changed chan bool         // receives a value when an HTML control has changed
	outputs []display.Data
}

// newTestNotebook returns a notebook without panels.
func newTestNotebook(t *testing.T) *testNotebook {
	return &testNotebook{t: t, ids: map[string]string{}, values: map[string]string{}, changed: make(chan bool, 10000)}
}

// host returns the Host of the panels of nb.
func (nb *testNotebook) host() Host {
	show := func(d display.Data) {
		nb.mu.Lock()
		defer nb.mu.Unlock()
		nb.outputs = append(nb.outputs, d)
	}
	return Host{Models: &nb.set, Send: nb.receive, Show: show, Update: show, Explain: func(v any) string {
		return fmt.Sprint("panic: ", v)
	}}
}

// receive records a message of a control.
func (nb *testNotebook) receive(messageType string, content, _ map[string]any) {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	id := content["comm_id"].(string)
	state, _ := content["data"].(map[string]any)["state"].(map[string]any)
	if label, ok := state["description"].(string); ok && label != "" {
		nb.ids[label] = id
	}
	if v, ok := state["value"].(string); ok && messageType == "comm_msg" {
		nb.values[id] = v
		nb.changed <- true
	}
}

// setControl sets key of the state of the control with a label, or clicks it if key is click.
func (nb *testNotebook) setControl(label, key string, value any) {
	nb.mu.Lock()
	id := nb.ids[label]
	nb.mu.Unlock()
	if id == "" {
		nb.t.Fatalf("no control %s", label)
	}
	message := testkit.Must(json.Marshal(map[string]any{"comm_id": id, "data": map[string]any{"method": "update",
		"state": map[string]any{key: value}, "content": map[string]any{"event": "click"}}}))
	if key == "click" {
		message = []byte(strings.Replace(string(message), `"method":"update"`, `"method":"custom"`, 1))
	}
	nb.set.Receive("comm_msg", message, nb.receive)
}

// awaitText waits until an HTML control shows the text.
func (nb *testNotebook) awaitText(text string) {
	nb.t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		nb.mu.Lock()
		values := fmt.Sprint(nb.values)
		nb.mu.Unlock()
		if strings.Contains(values, text) {
			return
		}
		select {
		case <-nb.changed:
		case <-limit:
			nb.t.Fatalf("no %q in %.3000s", text, values)
		}
	}
}

// openPanel shows a panel of a subject, and closes it when the test ends.
func (nb *testNotebook) openPanel(subject Subject, err error) *Panel {
	nb.t.Helper()
	testkit.OK(nb.t, err)
	panel := testkit.Must(New(context.Background(), nb.host(), subject, "the panel"))
	nb.t.Cleanup(panel.Close)
	return panel
}

// options is a struct with an option for each kind of control.
type options struct {
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
	// Each text has the label, kind, value, minimum, maximum and step of a control.
	want := []string{"𝑛 IntSlider 10 1 100 1", "q FloatSlider 0.5 0.01 0.99 0.01", "rate FloatLogSlider 0.01 1e-05 10 0",
		"name Dropdown x 0 0 0", "other Checkbox false 0 0 0", "max Text  0 0 0", "lists Text  0 0 0"}
	for i, field := range fieldsWithControl(schema.Of(new(options))) {
		spec := controlFor(field, 0)
		got := fmt.Sprint(spec.Label, " ", spec.Kind, " ", spec.Value, " ", spec.Min, " ", spec.Max, " ", spec.Step)
		testkit.Equal(t, got, want[i])
	}
	field := schema.Of(&struct {
		S int `flag:"s" default:"500" check:">=1"`
	}{}).Fields[0]
	spec := controlFor(field, 1000)
	testkit.Equal(t, fmt.Sprint(spec.Min, spec.Max, spec.Step), "10 1000 10")
}

// TestLiteral checks the Go code of values of options.
func TestLiteral(t *testing.T) {
	for want, v := range map[string]any{
		"panel.options{N: 3, Q: 0.25, Lists: []int{1, 2}}":             options{N: 3, Q: 0.25, Lists: []int{1, 2}},
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
	nb := newTestNotebook(t)
	started := make(chan int, 100)
	f := func(ctx context.Context, o options) (string, error) {
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
	p := nb.openPanel(FunctionSubject(f, nil, "f"))
	nb.awaitText("n = 10, q = 0.5, rate = 0.01")
	nb.awaitText("Must(f(ctx, panel.options{}))")
	nb.setControl("rate", "value", 0.1)
	nb.awaitText("n = 10, q = 0.5, rate = 0.1")
	nb.awaitText("Must(f(ctx, panel.options{Rate: 0.1}))")
	nb.setControl("𝑛", "value", 13)
	nb.awaitText("panic: unlucky")
	nb.setControl("𝑛", "value", 14)
	nb.awaitText("&lt;no&gt;")
	nb.setControl("max", "value", "0")
	nb.awaitText("--max 0: want at least 1")
	nb.setControl("max", "value", "")
	for i := range 20 {
		nb.setControl("𝑛", "value", 20+i)
	}
	for n := range started { // settings before the last one may be skipped
		if n == 39 {
			break
		}
	}
	nb.setControl("Stop", "click", nil)
	nb.awaitText("part of 39")
	nb.awaitText("partial result")
	nb.setControl("𝑛", "value", 21)
	for n := range started {
		if n == 21 {
			break
		}
	}
	nb.setControl("𝑛", "value", 11)
	nb.awaitText("n = 11")
	nb.mu.Lock()
	first, last := nb.outputs[0], nb.outputs[len(nb.outputs)-1]
	nb.mu.Unlock()
	testkit.Equal(t, fmt.Sprint(first.Data["text/plain"], first.Transient["display_id"]), "running…the panel")
	if html := fmt.Sprint(last.Data["text/html"]); !strings.Contains(html, "n = 10, q = 0.5, rate = 0.01") ||
		!strings.Contains(html, withoutControls) || len(nb.outputs) != 2 {
		t.Errorf("the static picture: %d outputs, %s", len(nb.outputs), html)
	}
	if nb.set.KeepsControls() || last.Data["application/vnd.jupyter.widget-view+json"] == nil {
		t.Errorf("%v", last.Data)
	}
	p.Close()
	testkit.Equal(t, len(nb.set.Comms("")), 0)
}

// TestStartOptions checks that a panel for a function starts from the given options, and that options of another type
// are an error.
func TestStartOptions(t *testing.T) {
	nb := newTestNotebook(t)
	f := func(o options) string { return fmt.Sprintf("n = %d, q = %g", o.N, o.Q) }
	nb.openPanel(FunctionSubject(f, options{N: 20}, "f"))
	nb.awaitText("n = 20, q = 0.5")
	nb.awaitText("f(panel.options{N: 20})")
	nb.setControl("q", "value", 0.25)
	nb.awaitText("n = 20, q = 0.25")
	testkit.Fails(t, testkit.ErrOf(FunctionSubject(f, 3, "f")), "want its options, a panel.options")
}

// TestErrorAndCancelOfFirstRun checks that New returns the error of the first run, and that cancelling its context ends
// this run. Values that are not suitable functions are errors.
func TestErrorAndCancelOfFirstRun(t *testing.T) {
	nb := newTestNotebook(t)
	failingSubject := testkit.Must(FunctionSubject(func(options) (int, error) { return 0, errors.New("no") }, nil, "f"))
	_, err := New(context.Background(), nb.host(), failingSubject, "a")
	testkit.Equal(t, fmt.Sprintf("%v %d", err, len(nb.set.Comms(""))), "no 0")
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan bool, 1)
	waitingSubject := testkit.Must(FunctionSubject(func(ctx context.Context,
		_ options) int {
		started <- true
		<-ctx.Done()
		return 1
	}, nil, "f"))
	go func() { <-started; cancel() }()
	p, err := New(ctx, nb.host(), waitingSubject, "b")
	testkit.Equal(t, err, context.Canceled)
	p.Close()
	for _, unsuitable := range []any{nil, 1, func() int { return 1 }, func(int) int { return 1 }, func(options) {},
		func(struct{ A int }) int { return 1 }, func(options) (int, int) { return 1, 1 }} {
		testkit.Fails(t, testkit.ErrOf(FunctionSubject(unsuitable, nil, "f")), "Explore")
	}
}

// TestStagePanel checks a panel for a stage. Its controls change the preconditioner of the laboratory, the settings
// share one kernel matrix K, and the result equals that of the Go code that the panel shows.
func TestStagePanel(t *testing.T) {
	train := datasets.SyntheticRegression(200, 2, 0.1, 1)
	lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1,
		Precond: krrlab.Features{S: 40}}))
	nb := newTestNotebook(t)
	nb.openPanel(StageSubject(lab, &quality.Options{MaxExactN: -1}, "lab"))
	nb.awaitText("Must(lab.Run(ctx, quality.Options{MaxExactN: -1}))")
	nb.setControl("s", "value", 80)
	nb.awaitText("c.Precond = recipe.Features{S: 80, LambdaP: 0.1}")
	other := testkit.Must(lab.With(func(c *krrlab.Config) { c.Precond = krrlab.Features{S: 80, LambdaP: 0.1} }))
	result := testkit.Must(other.Run(t.Context(), quality.Options{MaxExactN: -1})).(*quality.Result)
	_, kappa, _ := strings.Cut(result.String(), "κ(M⁻¹A) ")
	kappa, _, _ = strings.Cut(kappa, "\n")
	nb.awaitText(kappa)
	var names []string
	for _, kind := range stage.Kinds() {
		if kind.CheckKernel(lab.Config().Kernel) == nil && !strings.HasSuffix(kind.Name, ":") {
			names = append(names, kind.Name)
		}
	}
	nb.setControl("preconditioner", "index", slices.Index(names, "nystrom"))
	nb.awaitText("c.Precond = recipe.Nystrom{}")
	nb.setControl("s", "value", 100)
	nb.awaitText("c.Precond = recipe.Nystrom{S: 100}")
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
	nb := newTestNotebook(t)
	runs := make(chan int, 10)
	p := nb.openPanel(FunctionSubject(func(c options) (int, error) { runs <- c.N; return c.N, nil }, nil, "f"))
	testkit.Equal(t, <-runs, 10)
	nb.awaitText(" s")
	p.mu.Lock()
	p.isPending = true
	p.wake <- struct{}{}
	for len(p.wake) > 0 { // until the loop has received the move, and waits for the lock
		runtime.Gosched()
	}
	p.interrupt()
	p.mu.Unlock()
	nb.awaitText("interrupted before there was a result")
	nb.setControl("𝑛", "value", 20)
	testkit.Equal(t, <-runs, 20)
}
