package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestCommands checks the command lines for MPICH, Open MPI and the ranks.
func TestCommands(t *testing.T) {
	backend := &Backend{Ranks: 3, Hosts: []string{"n1:2", "n2"}, Program: "/opt/krrlab", Options: []string{"--quiet"},
		Flags: []string{"--blas", "go"}, Limit: time.Minute}
	if got, want := strings.Join(backend.mpirunArgs("HYDRA build details"), " "), "-hosts n1:2,n2"; got != want {
		t.Errorf("MPICH: %s", got)
	}
	got := strings.Join(backend.mpirunArgs("mpirun (Open MPI) 4.1.4"), " ")
	testkit.Contains(t, got, "--bind-to none", "--host n1:2,n2",
		"--mca oob_tcp_keepalive_time 12 --mca oob_tcp_keepalive_intvl 4 --mca oob_tcp_keepalive_probes 2")
	if strings.Contains(got, "oversubscribe") {
		t.Error("hosts are oversubscribed")
	}
	if got := strings.Join((&Backend{Ranks: 10000}).mpirunArgs("Open MPI"), " "); !strings.Contains(got,
		"--oversubscribe") || strings.Contains(got, "keepalive") {
		t.Errorf("one machine: %s", got)
	}
	words, err := backend.rankCommand("/jobs/a b/job.json")
	if want := []string{"/opt/krrlab", "job", "--rank-timeout", "1m0s", "--blas", "go",
		"/jobs/a b/job.json"}; err != nil || !reflect.DeepEqual(words, want) {
		t.Errorf("command %q, %v, want %q", words, err, want)
	}
}

// TestSrun checks the command line for srun. It names an interface that srun offers, before Options, which may name
// another one, and the hosts without numbers, because srun distributes the ranks itself.
func TestSrun(t *testing.T) {
	launcher := filepath.Join(t.TempDir(), "srun")
	testkit.OK(t, os.WriteFile(launcher, []byte("#!/bin/sh\n[ $1 = --mpi=list ] && printf 'none\\n\\tpmi2\\n' >&2\n"),
		0o755))
	backend := &Backend{Ranks: 3, Hosts: []string{"n1:2", "n2"}, Launcher: launcher, Dir: "/jobs",
		Program: "/opt/krrlab", Options: []string{"--mpi=pmix"}}
	const want = "-n 3 --kill-on-bad-exit=1 --mpi=pmi2 --nodelist n1,n2 --mpi=pmix /opt/krrlab job "
	words, err := backend.command(t.Context(), "job.json")
	if got := strings.Join(words, " "); err != nil || !strings.HasPrefix(got, launcher+" "+want) {
		t.Errorf("%v, %s, want %s", err, got, want)
	}
	backend.Program = ""
	t.Setenv("PATH", filepath.Dir(launcher))
	testkit.Fails(t, testkit.ErrOf(backend.command(t.Context(), "job.json")), "not on the path: install it")
}

// fakeLauncher writes a launcher that runs the given script, in which $file is the file of the job.
func fakeLauncher(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mpirun")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo HYDRA; exit; }\nfor file; do :; done\n" + script
	testkit.OK(t, os.WriteFile(name, []byte(text), 0o755))
	return name
}

// TestBackendRuns uses launchers that run a script and no ranks. Progress and notes must be passed on, failures must
// be explained in one line, and a canceled context must end the launcher and keep the result so far.
func TestBackendRuns(t *testing.T) {
	train := problem(50)
	var events []krrlab.Event
	var notes []string
	onReady := func() {}   // called when the script reports that it is ready
	var monitorError error // error that the Monitor then returns
	lab := func(script string) *krrlab.Lab {
		events, notes = nil, nil
		return newLab(t, train, krrlab.Config{Kernel: gauss, Lambda: 0.1, Precond: krrlab.Features{S: 10},
			Monitor: func(e krrlab.Event) error {
				if events = append(events, e); e.Stage == "ready" {
					onReady()
					return monitorError
				}
				return nil
			},
			Checkpoint: &krrlab.Checkpoint{Dir: "kept", Note: func(s string) { notes = append(notes, s) }},
			Backend:    &Backend{Ranks: 2, Dir: t.TempDir(), Program: "/bin/true", Launcher: fakeLauncher(t, script)}})
	}
	// writeResult writes the result of the stage, with further fields in the place of %s.
	const writeResult = `echo '{"version":5,"stage":"quality","value":{"n":50,"steps":7}%s}' >$(dirname "$file")/result.json
`
	writeComplete := fmt.Sprintf(writeResult, "")
	const report = "printf " +
		"'{\"event\":{\"Stage\":\"solve\",\"Iteration\":3}}\\n{\"note\":\"resuming\"}\\nnoise\\n{bad\\n'\n"
	quality, err := lab(report+writeComplete).Quality(t.Context(), krrlab.QualityOptions{})
	if err != nil || quality.N != 50 || quality.Steps != 7 {
		t.Errorf("%v, %+v, want n = 50 and 7 steps", err, quality)
	}
	if len(events) != 2 || events[1].Iteration != 3 || !reflect.DeepEqual(notes, []string{"resuming"}) {
		t.Errorf("events %+v, notes %q", events, notes)
	}
	for script, want := range map[string]string{
		"echo noise; echo 'krrlab: λ = 0: want more' >&2; echo later; exit 2": "the job on 2 ranks failed: exit " +
			"status 2: λ = 0: want more",
		"echo 'krrlab: note: bound'; echo 'krrlab: no space left' >&2; exit 1": "exit status 1: no space left",
		"echo first; echo last >&2; exit 9":                                    "exit status 9: last",
		"exit 7":                                                               "exit status 7: no output",
		"exit 0":                                                               "ended without a result",
		"mkdir $(dirname \"$file\")/result.json":                               "result of the ranks: read",
		fmt.Sprintf(writeResult, `,"interrupted":true`):                        "were interrupted",
		fmt.Sprintf(writeResult, `,"interrupted":true`) +
			"echo 'krrlab: a scheduler'; exit 130": "until then: the job on 2 ranks failed: exit status 130: a " +
			"scheduler",
		"echo '{\"version\":6}' >$(dirname \"$file\")/result.json":               "format version 6",
		"echo '{\"version\":5,\"value\":3}' >$(dirname \"$file\")/result.json\n": "the value of quality",
	} {
		if _, err := lab(script).Quality(t.Context(), krrlab.QualityOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	quality, err = lab(fmt.Sprintf(writeResult, `,"interrupted":true`)+"exit 130").Quality(t.Context(),
		krrlab.QualityOptions{})
	if err == nil || quality == nil || quality.Steps != 7 {
		t.Errorf("interrupted by others: %v, %+v", err, quality)
	}
	if quality, err = lab(writeComplete+"echo 'krrlab: not all ranks ended'; exit 1").Quality(t.Context(),
		krrlab.QualityOptions{}); err != nil || quality.Steps != 7 {
		t.Errorf("a failure after the result: %v, %+v", err, quality)
	}
	const ready = `echo '{"event":{"Stage":"ready"}}'
`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	onReady = cancel
	if quality, err = lab("trap 'exit 143' TERM\n"+writeComplete+ready+"while :; do sleep 0.05; done").Quality(ctx,
		krrlab.QualityOptions{}); err != nil || quality.Steps != 7 {
		t.Errorf("an end after the result: %v, %+v", err, quality)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	onReady = cancel
	quality, err = lab("trap 'printf \"%s\" \"$kept\" >$(dirname \"$file\")/result.json; exit 130' "+
		"TERM\nkept='{\"version\":5,\"stage\":\"quality\",\"value\":{\"steps\":4},\"interrupted\":true}'\n"+
		ready+"while :; do sleep 0.05; done").Quality(ctx, krrlab.QualityOptions{})
	if !errors.Is(err, context.Canceled) || quality == nil || quality.Steps != 4 {
		t.Errorf("interrupted: %v, %+v, want 4 steps", err, quality)
	}
	onReady = func() {}
	for _, monitorError = range []error{pcg.ErrStop, errors.New("boom")} { // each ends the ranks
		quality, err = lab("trap 'printf \"%s\" \"$kept\" >$(dirname \"$file\")/result.json; exit 130' "+
			"TERM\nkept='{\"version\":5,\"stage\":\"quality\",\"value\":{\"steps\":4},\"interrupted\":true}'\n"+
			ready+"while :; do sleep 0.05; done").Quality(t.Context(), krrlab.QualityOptions{})
		want := monitorError
		if want == pcg.ErrStop { // not a failure
			want = nil
		}
		if quality == nil || quality.Steps != 4 || err != want {
			t.Errorf("%v: %v, %+v, want the error %v and 4 steps", monitorError, err, quality, want)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if quality, err = lab("exec sleep 60").Quality(ctx, krrlab.QualityOptions{}); !errors.Is(err,
		context.DeadlineExceeded) ||
		quality != nil {
		t.Errorf("after the deadline: %v, %+v, want no result", err, quality)
	}
}
