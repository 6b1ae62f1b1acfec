package golang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/panel"
	"github.com/krrlab/lab/krrlab/notebook/widget"
	"github.com/krrlab/lab/krrlab/stage"
)

// maxPanels is the number of panels that stay open. Opening another one closes the oldest.
const maxPanels = 20

// panels are the open panels of a session, oldest first.
type panels struct {
	count atomic.Int64 // number of panels made so far
	mu    sync.Mutex   // guards list
	list  []*panel.Panel
}

// add adds a panel, and closes the oldest ones beyond maxPanels.
func (p *panels) add(newPanel *panel.Panel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.list = append(p.list, newPanel); len(p.list) > maxPanels; p.list = p.list[1:] {
		p.list[0].Close()
	}
}

// forEach calls f with all panels.
func (p *panels) forEach(f func(*panel.Panel)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, openPanel := range p.list {
		f(openPanel)
	}
}

// closeAll closes all panels and forgets them.
func (p *panels) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, openPanel := range p.list {
		openPanel.Close()
	}
	p.list = nil
}

// commSender is an Output that can send messages of comms.
type commSender interface {
	Comm(messageType string, content, metadata map[string]any)
}

// exploreCall matches a call of Explore. Its group is the name of the first argument.
var exploreCall = regexp.MustCompile(`\bExplore\(\s*([\pL_][\pL\pN_.]*)\s*[,)]`)

// explore is Explore in cells: it shows a panel for a stage of a lab, for its Solve, or for a function. An error of the
// first run panics, which ends the cell. The options have the type any, not stage.Runner: otherwise the interpreter
// would load package stage and all that it imports when the kernel starts.
func (s *Session) explore(subject any, options ...any) {
	name, out := "", s.out.output()
	if out == nil {
		panic(errors.New("no cell is running that could show a panel"))
	}
	if running := s.runningCell.Load(); running != nil {
		code := strings.Join(running.lines[max(0, running.currentLine-1):], "\n")
		if match := exploreCall.FindStringSubmatch(code); match != nil {
			name = match[1]
		}
	}
	explored, err := newSubject(subject, options, name)
	if err != nil {
		panic(err)
	}
	host := panel.Host{Models: &s.widgets, Show: s.out.show, Explain: explainPanic,
		Update: func(d display.Data) { out.Update(encode(d)) }}
	if sender, ok := out.(commSender); ok {
		host.Send = sender.Comm
	}
	newPanel, err := panel.New(s.ctx.Load(), host, explored, fmt.Sprint("krrlab-panel-", s.panels.count.Add(1)))
	if newPanel != nil { // also if the first run of the panel failed
		s.panels.add(newPanel)
	}
	if errors.Is(err, context.Canceled) && s.ctx.Load().Err() != nil {
		panic(engine.Stopped{})
	}
	if err != nil {
		panic(err)
	}
}

// explainPanic returns the message for a recovered panic of a run.
func explainPanic(recovered any) string {
	value, _, _ := unwrapPanic(recovered)
	return panicText(value)
}

// newSubject checks the arguments of Explore and returns the subject that the panel explores. name is the name of the
// first argument in the cell, for the code that the panel shows; "" stands for a usual name.
func newSubject(subject any, options []any, name string) (panel.Subject, error) {
	lab, isLab := subject.(*krrlab.Lab)
	switch {
	case len(options) > 1:
		return nil, errors.New("Explore takes one struct of options: make a panel for each stage")
	case !isLab && len(options) == 0:
		return panel.FunctionSubject(subject, nil, cmp.Or(name, "f"))
	case !isLab && reflect.ValueOf(subject).Kind() == reflect.Func:
		return panel.FunctionSubject(subject, options[0], cmp.Or(name, "f"))
	case !isLab:
		return nil, fmt.Errorf("Explore of values of the types %T and %T: want a *krrlab.Lab and the options of a stage, or a function "+
			"and its options", subject, options[0])
	case len(options) == 0:
		return panel.StageSubject(lab, nil, cmp.Or(name, "lab"))
	}
	runner, ok := options[0].(stage.Runner)
	if !ok {
		return nil, fmt.Errorf("Explore of a lab and a value of type %T: want the options of a stage, such as "+
			"quality.Options{}, or a type of yours that implements stage.Runner (%%doc stage.Runner)", options[0])
	}
	return panel.StageSubject(lab, runner, cmp.Or(name, "lab"))
}

// Comms returns the open comms of a target, or of all targets if it is "".
func (s *Session) Comms(target string) map[string]any { return s.widgets.Comms(target) }

// ReceiveComm handles a message of a comm. It must not wait for a cell.
func (s *Session) ReceiveComm(messageType string, content []byte, publish widget.SendFunc) {
	s.widgets.Receive(messageType, content, publish)
}

// Interrupt ends the runs of all panels.
func (s *Session) Interrupt() { s.panels.forEach((*panel.Panel).Interrupt) }
