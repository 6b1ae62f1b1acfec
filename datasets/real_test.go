package datasets

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// realData returns the folder of real data, or skips the test.
func realData(t testing.TB) string {
	dir := os.Getenv("KRRLAB_DATA")
	if dir == "" {
		t.Skip("no real data: set KRRLAB_DATA to a folder of data sets (see krrlab data list)")
	}
	return dir
}

// TestRealData loads every data set of the registry whose files are present and compares its size and class counts
// with those of its publishers.
func TestRealData(t *testing.T) {
	dir := realData(t)
	classSizes := map[string][2][]int{ // points per class, training and test
		"mnist": {{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
			{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}},
		"adult":  {{24720, 7841}, {12435, 3846}},
		"ijcnn1": {{45137, 4853}, {82989, 8712}},
		"usps": {{1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644},
			{359, 264, 198, 166, 200, 160, 170, 147, 166, 177}},
	}
	for _, info := range Registry() {
		if _, missing := info.Find([]string{dir}); len(missing) > 0 || info.BuiltIn() {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			paths, _ := info.Find([]string{dir})
			for _, f := range info.Files {
				if _, err := f.Verify(paths[f.Role]); err != nil {
					t.Error(err)
				}
			}
			data, err := Load(context.Background(), info.Name, &LoadOptions{Dirs: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			if data.Train.Len() != info.N || data.Test.Len() != info.TestN || data.Train.Dim() != info.D ||
				data.Test.Dim() != info.D {
				t.Errorf("%d + %d points of dimension %d, %d; the registry says %d + %d of %d",
					data.Train.Len(), data.Test.Len(), data.Train.Dim(), data.Test.Dim(), info.N, info.TestN, info.D)
			}
			if data.Train.Task != info.Task || len(data.Train.Labels) != info.Classes {
				t.Errorf("%v with labels %q", data.Train.Task, data.Train.Labels)
			}
			for _, d := range []*Dataset{data.Train, data.Test} {
				if err := points.CheckFinite(d.X); err != nil {
					t.Error(err)
				}
			}
			if want, ok := classSizes[info.Name]; ok {
				if got := [2][]int{data.Train.rowsOfClasses(), data.Test.rowsOfClasses()}; !slices.Equal(got[0],
					want[0]) ||
					!slices.Equal(got[1], want[1]) {
					t.Errorf("points per class %v, want %v", got, want)
				}
			}
		})
	}
}
