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

// ReportFile is where a folder of checkpoints keeps what was chosen.
const ReportFile = "plan.json"

// Save writes a report into a folder of checkpoints.
func (r *Report) Save(dir string) error {
	return stage.WriteJSON(filepath.Join(dir, ReportFile), r)
}

// Saved returns the report in a folder of checkpoints, nil where there is none.
func Saved(dir string) (*Report, error) {
	text, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s has a damaged %s: %w: name its solver and preconditioner", dir, ReportFile, err)
	}
	return r, nil
}
