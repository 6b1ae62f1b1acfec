package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// store keeps the results of cases in a folder, one file each, written whole or not at all
// as soon as the case is done.
type store struct{ dir string }

// casesDir is the folder of the cases below the one of the reports.
const casesDir = "cases"

// openStore makes the folders.
func openStore(out string) (*store, error) {
	dir := filepath.Join(out, casesDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	return &store{dir}, nil
}

// kept is the file of a case. The case stands in it for the reader's sake, and to tell a
// file of another case or version.
type kept struct {
	Version int     `json:"version"`
	Case    Case    `json:"case"`
	Result  *Result `json:"result"`
}

func (s *store) name(c Case) string { return filepath.Join(s.dir, c.Key()+".json") }

// load returns the result of a case that was kept; nil if there is none. A file that
// cannot be read for what it is, damaged or of another case, is an error that names it.
func (s *store) load(c Case) (*Result, error) {
	name := s.name(c)
	js, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	var k kept
	if err := json.Unmarshal(js, &k); err != nil {
		return nil, fmt.Errorf("experiments: %s is damaged (%v): remove it to run the case again", name, err)
	}
	if k.Version != resultVersion || k.Case != c || k.Result == nil {
		return nil, fmt.Errorf("experiments: %s is not the result of %v: remove it to run the case again", name, c)
	}
	return k.Result, nil
}

// retire renames the file of a case that is to be run again, so that a run that is interrupted
// before does not take it for its own.
func (s *store) retire(c Case) error {
	name := s.name(c)
	if err := os.Rename(name, name+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("experiments: %w", err)
	}
	return nil
}

// save keeps the result of a case.
func (s *store) save(c Case, r *Result) error {
	return writeJSON(s.name(c), kept{resultVersion, c, r})
}

// writeJSON writes a value as indented JSON, whole or not at all.
func writeJSON(name string, v any) error {
	js, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return writeFile(name, append(js, '\n'))
}

// writeFile writes a file through a temporary one beside it, synced before it takes the name.
func writeFile(name string, content []byte) (err error) {
	defer func() {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		if err != nil {
			err = fmt.Errorf("experiments: cannot write %s: %w", name, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
