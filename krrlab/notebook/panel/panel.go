package panel

import (
	"context"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/widget"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// Subject is a stage or a function that a panel explores.
type Subject interface {
	// controls returns the controls in columns, and opens them if they are not open.
	controls(p *Panel) ([]*widget.Model, error)
	// currentRun returns a function that runs the subject with the current settings of its controls, and the Go code
	// that does the same. It returns an error if the settings are invalid.
	currentRun() (run func(ctx context.Context, report func(stage.Event)) (any, error), code string, err error)
	// isInterruptible reports whether a run ends soon after its context.
	isInterruptible() bool
}

// Host is the notebook that shows panels.
type Host struct {
	Models *widget.Set
	// Send sends the messages of the controls; nil if the front end has no controls.
	Send widget.SendFunc
	// Show displays the output of a panel; Update replaces it.
	Show, Update func(display.Data)
	// Explain returns the text for the value of a panic.
	Explain func(recovered any) string
}

// Panel is a panel of controls. Its methods may be called from any goroutine.
type Panel struct {
	host                 Host
	id                   string // display_id of the output
	subject              Subject
	root, status, result *widget.Model
	wake                 chan struct{} // wakes loop if a setting waits to be run
	closed               chan struct{} // closed by Close

	mu            sync.Mutex      // guards the fields below
	isPending     bool            // a setting waits to be run
	run           *run            // the run in progress, or nil
	completedRuns int             // number of completed runs, without superseded ones
	models        []*widget.Model // all models of the panel, some of which may be closed
}

// run is a run of the subject.
type run struct {
	cancel        context.CancelFunc
	goid          uint64        // ID of the goroutine of the run
	isSuperseded  bool          // a newer setting waits
	isInterrupted bool          // the user has ended the run
	finished      chan struct{} // closed when the run has ended
}

// New shows a panel and runs its subject once. It returns after this run, or when ctx ends, which interrupts the run.
// The error is that of the first run; the panel is closed then.
func New(ctx context.Context, host Host, subject Subject, id string) (*Panel, error) {
	p := &Panel{host: host, id: id, subject: subject, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	p.requestRun()
	firstErr := make(chan error, 1)
	go p.loop(firstErr)
	select {
	case err := <-firstErr:
		if err != nil {
			p.Close()
		}
		return p, err
	case <-ctx.Done():
		p.Interrupt()
		return p, ctx.Err()
	}
}

// open opens the controls and shows the panel.
func (p *Panel) open() (err error) {
	columns, err := p.subject.controls(p)
	if err != nil {
		return err
	}
	openBox := func(spec widget.Spec) (model *widget.Model) {
		if err == nil {
			model, err = p.openModel(spec, nil)
		}
		return model
	}
	controls := openBox(widget.Spec{Kind: widget.HBox, Children: columns})
	stop, stopErr := p.openModel(widget.Spec{Kind: widget.Button, Label: "Stop",
		Help: "end the run and show what it has"}, p.Interrupt)
	if err == nil {
		err = stopErr
	}
	p.status = openBox(widget.Spec{Kind: widget.HTML, Value: ""})
	row := openBox(widget.Spec{Kind: widget.HBox, Children: []*widget.Model{stop, p.status}})
	p.result = openBox(widget.Spec{Kind: widget.HTML, Value: "", Width: "100%"})
	p.root = openBox(widget.Spec{Kind: widget.VBox, Children: []*widget.Model{controls, row, p.result}})
	if err != nil {
		return err
	}
	p.host.Show(p.output("", "running…"))
	if p.host.Send != nil {
		p.root.Display()
	}
	return nil
}

// openModel opens a model of the panel.
func (p *Panel) openModel(spec widget.Spec, onChange func()) (*widget.Model, error) {
	send := p.host.Send
	if send == nil {
		send = func(string, map[string]any, map[string]any) {}
	}
	model, err := p.host.Models.Open(spec, send, onChange)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.models = append(p.models, model)
	}
	return model, err
}

// openColumn opens a box that shows models below each other.
func (p *Panel) openColumn(children ...*widget.Model) (*widget.Model, error) {
	return p.openModel(widget.Spec{Kind: widget.VBox, Children: children}, nil)
}

// withoutControls is the text below the result where the controls cannot be used.
const withoutControls = "The controls of this panel need a running kernel, and a notebook that shows Jupyter's widgets."

// output returns the output of the panel: the controls, and for front ends without controls a static picture. text is
// the result for front ends that show no HTML.
func (p *Panel) output(resultHTML, text string) display.Data {
	d := display.MakeData3(display.MIMETypeHTML, text, `<div class="krr-static">`+resultHTML+`<p><small>`+
		withoutControls+`</small></p></div>`)
	if p.host.Send != nil {
		mime, view := p.root.View()
		d.Data[mime] = view
	}
	d.Transient = display.MIMEMap{"display_id": p.id}
	return d
}

// requestRun runs the subject with the new setting. It ends a run in progress.
func (p *Panel) requestRun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		p.run.isSuperseded = true
		p.cancelRun()
	}
	p.isPending = true
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Interrupt ends the run in progress, and drops a setting that waits. If the run has a partial result, the panel shows
// it.
func (p *Panel) Interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupt()
}

// interrupt is Interrupt for a caller that holds the lock.
func (p *Panel) interrupt() {
	p.isPending = false // loop then shows that the setting was not run
	if p.run == nil {
		return
	}
	select {
	case <-p.wake:
	default:
	}
	p.run.isInterrupted, p.run.isSuperseded = true, false
	p.cancelRun()
}

// Close ends the panel and closes its controls. Its output remains.
func (p *Panel) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return
	default:
	}
	close(p.closed)
	if p.run != nil {
		p.cancelRun()
	}
	for _, model := range p.models {
		model.Close()
	}
}

// stopGrace is the time after which a run whose context has ended is stopped, if it is interruptible. Within this time,
// the run can return a partial result.
const stopGrace = 500 * time.Millisecond

// cancelRun cancels the run in progress and stops interpreted code in it. The caller holds the lock.
func (p *Panel) cancelRun() {
	current := p.run
	current.cancel()
	if !p.subject.isInterruptible() {
		engine.StopGoroutine(current.goid)
		return
	}
	go func() {
		select {
		case <-current.finished:
		case <-time.After(stopGrace):
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.run == current {
				engine.StopGoroutine(current.goid)
			}
		}
	}()
}

// loop runs the subject whenever a control has moved, until the panel is closed. It sends the error of the first
// completed run to firstErr.
func (p *Panel) loop(firstErr chan<- error) {
	for {
		select {
		case <-p.closed:
			return
		case <-p.wake:
		}
		if err, isCurrent := p.runOnce(); isCurrent && firstErr != nil {
			firstErr <- err
			firstErr = nil
		}
	}
}

// runOnce runs the subject with the current setting and shows the result. An interrupted run has no error. isCurrent is
// false if a newer setting has superseded the run.
func (p *Panel) runOnce() (err error, isCurrent bool) {
	ctx, cancel := context.WithCancel(context.Background())
	current := &run{cancel: cancel, goid: engine.GoroutineID(), finished: make(chan struct{})}
	p.mu.Lock()
	isDropped := !p.isPending // by Interrupt, after the control had moved
	p.run, current.isInterrupted, p.isPending = current, isDropped, false
	p.mu.Unlock()
	start := time.Now()
	call, code, err := p.subject.currentRun()
	var value any
	if err == nil && !isDropped {
		p.setStatus("running…")
		value, err = p.call(ctx, call)
	}
	p.mu.Lock()
	p.run = nil
	close(current.finished)
	engine.ResumeGoroutine(current.goid)
	isFirst := p.completedRuns == 0
	if !current.isSuperseded {
		p.completedRuns++
	}
	p.mu.Unlock()
	cancel()
	select {
	case <-p.closed:
		return nil, true
	default:
	}
	if current.isSuperseded {
		return nil, false
	}
	if current.isInterrupted {
		err = nil
	}
	var result, text, status string
	switch {
	case err != nil:
		text, status = err.Error(), "failed"
		result = `<p style="color:#b00">` + html.EscapeString(text) + `</p>`
	case current.isInterrupted && isNil(value):
		result, text, status = `<p>interrupted before there was a result</p>`, "interrupted", "interrupted"
	default:
		status = fmt.Sprintf("%.2f s", time.Since(start).Seconds())
		if current.isInterrupted {
			status = "interrupted: this is a partial result"
		}
		d := display.Render(value)
		result, text = resultHTML(d), fmt.Sprint(d.Data[display.MIMETypeText])
	}
	p.showResult(result, text, code, isFirst)
	p.setStatus(status)
	return err, true
}

// statusInterval is the shortest time between two reports of a run in the status line.
const statusInterval = 150 * time.Millisecond

// call runs the subject with the given function. It returns a panic as an error.
func (p *Panel) call(ctx context.Context,
	runSubject func(context.Context, func(stage.Event)) (any, error)) (value any, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			value, err = nil, fmt.Errorf("%s", p.host.Explain(recovered))
		}
	}()
	var lastReport time.Time
	return runSubject(ctx, func(event stage.Event) {
		if now := time.Now(); now.Sub(lastReport) > statusInterval {
			lastReport = now
			p.setStatus(event.String())
		}
	})
}

// setStatus shows a text in the status line.
func (p *Panel) setStatus(text string) {
	p.status.Change(func(s *widget.Spec) { s.Value = html.EscapeString(text) })
}

// script matches the scripts of interactive figures, which the HTML control does not run. Their data remain: in
// Notebook 6, the script in the output makes the figure of the control interactive, too.
var script = regexp.MustCompile(`(?s)<script>.*?</script>`)

// hideStatic hides the static picture of a cell that shows its controls in Notebook 6.
const hideStatic = `<style>.widget-area[style=""]~.output_wrapper .krr-static{display:none}</style>`

// fitWidth gives the result of a panel the width of the panel, so that long lines of text scroll.
const fitWidth = `<style>.widget-html-content:has(>.krr-fit){flex:1;min-width:0}</style><div class="krr-fit">`

// showResult shows a result with the code of its setting. Notebooks of version 2 of the widget protocol draw all
// controls anew when the output changes, so there the static picture is that of the first run.
func (p *Panel) showResult(result, text, code string, isFirst bool) {
	result += plots.FoldedHTML("the Go code of this setting", plots.PreformattedHTML(code))
	p.result.Change(func(s *widget.Spec) {
		s.Value = hideStatic + fitWidth + script.ReplaceAllString(result, "") + "</div>"
	})
	if isFirst || p.host.Models.KeepsControls() {
		p.host.Update(p.output(result, text))
	}
}

// resultHTML returns the HTML of displayed data.
func resultHTML(d display.Data) string {
	if html, ok := d.Data[display.MIMETypeHTML]; ok {
		return fmt.Sprint(html)
	}
	if picture, ok := d.Data[display.MIMETypePNG].([]byte); ok {
		return display.PNGImage(picture)
	}
	return plots.PreformattedHTML(strings.TrimSuffix(fmt.Sprint(d.Data[display.MIMETypeText]), "\n"))
}

// isNil reports whether a result is nil or a nil pointer.
func isNil(value any) bool {
	reflected := reflect.ValueOf(value)
	return value == nil || reflected.Kind() == reflect.Pointer && reflected.IsNil()
}
