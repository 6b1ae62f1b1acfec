package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/stage"
)

// reportFile is where a folder of checkpoints keeps what was chosen.
const reportFile = "plan.json"

// Save writes a report into a folder of checkpoints, which it makes if it is not there.
func (r *Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	return stage.WriteJSON(filepath.Join(dir, reportFile), r)
}

// Saved returns the report in a folder of checkpoints, nil where there is none.
func Saved(dir string) (*Report, error) {
	text, err := os.ReadFile(filepath.Join(dir, reportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has a damaged %s: %w: name its solver and preconditioner", dir, reportFile, err)
	}
	return r, nil
}
