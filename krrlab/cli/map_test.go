package cli

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestMap checks krrlab map for a fit with --space. The fit names its projection of degrees to kilometers. The map in
// csv and in .npy format must have the predictions and standard deviations that predict gives for the same cells, and
// maps of one and two coordinates are drawn.
func TestMap(t *testing.T) {
	uniform := make([]float64, 900)
	rng.New(1).Float64s(uniform, 0)
	wells, swapped := "id,lat,lon,depth\n", "lon,lat,depth\n"
	for i := range 300 {
		u, v, noise := uniform[3*i], uniform[3*i+1], uniform[3*i+2]
		wells += fmt.Sprintf("%d,%g,%g,%g\n", i, 48+2*u, 8+3*v, math.Sin(4*u)+v+0.1*noise)
		swapped += fmt.Sprintf("%g,%g,1\n", 48+2*u, 8+3*v)
	}
	enterTempFolder(t, map[string]string{"wells.csv": wells, "swapped.csv": swapped})
	runScript(t, `
$ fit --train wells.csv --target depth --space lat,lon --kernel gaussian --sigma 80 --lambda 0.05 --tol 1e-8 --out w.krr
	left out "id"
	"lon", "lat" are degrees: projected to km around 9.
	distances within 0.
$ map w.krr --grid 7x5 --out map.csv --plot map.svg
	7×5 cells of lon, lat, prediction
	noise 0.0
	wrote        map.csv
$ map w.krr --grid 7x5 --out map.npy --plot map.html
$ predict w.krr --in map.csv --interval 90% --method posterior --out again.csv
	left out, not in the model: "row", "prediction", "std"
	!so far from
$ predict w.krr --in swapped.csv
	note: 300 of 300 rows are so far from the training points that the kernel is below 0.001
$ predict w.krr --in swapped.csv --out s.csv
	note         300 of 300 rows are so far
$ fit --train wells.csv --target depth --space lat --kernel gaussian --sigma 0.5 --lambda 0.05 --out line.krr
	"lat" is a coordinate as it is
$ map line.krr --plot line.svg --out line.csv --no-std
	500 cells of lat, prediction
	!noise
2$ map w.krr
	nothing to write
2$ map w.krr --grid 7x --out m.csv
	want numbers of cells
1$ map w.krr --grid 7 --out m.csv
	a grid of 7 cells for the coordinates
2$ fit --train wells.csv --target depth --space lat,lon --drop id
	--space
$ fit --train wells.csv --target depth --kernel gaussian --sigma 1 --lambda 0.1 --out no.krr
1$ map no.krr --out m.csv
	fit with --space lon,lat
1$ map w.krr --grid 7x5 --out m.csv --memory 2869
	a grid of 7×5 cells would take 2.87 kB of memory, and 2.87 kB of 2.87 kB are free: take fewer cells, or allow more
1$ map w.krr --grid 7x5 --out m.csv --memory 2870
	would take 720 kB of memory
	or allow more by --memory; --no-std draws the map without standard deviations
$ map w.krr --grid 7x5 --out m.csv --memory 2870 --no-std
	7×5 cells
1$ predict w.krr --in map.csv --interval 90% --method posterior --out new.csv --memory 100kB
	would take
	and 100 kB of 100 kB are free
1$ predict w.krr --in map.csv --interval 90% --out new.csv --memory 719999
	the factor of K+λI of 300 points would take 720 kB
$ predict w.krr --in map.csv --interval 90% --out new.csv --memory 720000
1$ tune --train wells.csv --target depth --memory 100MB
	a search with the fewest rows, 100, would take
	none is free, as 100 MB are kept for the program itself: allow more by --memory
1$ loo --train wells.csv --target depth --sigma 80 --lambda 0.05 --memory 100MB
	would take
	none is free, as 100 MB are kept for the program itself
1$ statdim --train wells.csv --target depth --sigma 80 --lambda 0.05 --method exact --memory 100MB
	dense work on K of n = 300 points would take 720 kB of memory, and none is free, as 100 MB are kept for the program itself: take another method
$ statdim --train wells.csv --target depth --sigma 80 --lambda 0.05 --method exact --memory 101MB`)
	_, data, err := npy.Read(testkit.Must(os.Open("map.npy")), 1<<20)
	testkit.OK(t, err)
	array, grid, again := data.([]float64), readColumns(t, "map.csv"), readColumns(t, "again.csv")
	number := func(text string) float64 { return testkit.Must(strconv.ParseFloat(text, 64)) }
	for i := range 35 {
		for k, name := range []string{"prediction", "std"} {
			mapped, predicted := number(grid[name][i]), number(again[name][i])
			if math.Abs(mapped-predicted) > 1e-4 || math.Abs(array[35*k+i]-mapped) > 1e-12 {
				t.Errorf("%s of cell %d: %g in the csv map, %g in the npy map, %g by predict", name, i, mapped,
					array[35*k+i], predicted)
			}
		}
	}
	testkit.Contains(t, string(readFile(t, "map.svg")), "standard deviation")
	testkit.Contains(t, string(readFile(t, "map.html")), "standard deviation")
	testkit.Contains(t, string(readFile(t, "line.svg")), "<svg")
	testkit.Equal(t, len(readColumns(t, "line.csv")["lat"]), 500, "cells of the map of a line")
}

// TestSpaceWithoutHeader checks that predict, --test and --extend find the columns of files without a header by their
// numbers. An extended model keeps its coordinates, and the box of its map covers all rows.
func TestSpaceWithoutHeader(t *testing.T) {
	var rows [2]strings.Builder
	for i := range 12 {
		for j := range 12 {
			fmt.Fprintf(&rows[i/8], "%d,%d,%g\n", i, j, 10*float64(i)+math.Sin(float64(j)))
		}
	}
	enterTempFolder(t, map[string]string{"grid.csv": rows[0].String(), "more.csv": rows[1].String(),
		"new.csv": "1,0\n5,2\n3,4\n", "answers.csv": "1,0,10\n2,1,20.84\n"})
	runScript(t, `
$ fit --train grid.csv --target 2 --space 0,1 --kernel gaussian --sigma 3 --lambda 1e-6 --tol 1e-10 --test answers.csv --out grid.krr
	with one unit
$ predict grid.krr --in new.csv --out auto.csv
$ predict grid.krr --in new.csv --format header=no --out no.csv
2$ fit --extend grid.krr --train more.csv --space 0,1 --out all.krr
	--space: with --extend the model determines it
$ fit --extend grid.krr --train more.csv --out all.krr
$ predict all.krr --in new.csv --out extended.csv
$ map all.krr --grid 2x2 --out map.csv`)
	for _, file := range []string{"auto.csv", "no.csv", "extended.csv"} {
		got := readColumns(t, file)["prediction"]
		for i, want := range []float64{10, 50 + math.Sin(2), 30 + math.Sin(4)} {
			if len(got) != 3 || math.Abs(testkit.Must(strconv.ParseFloat(got[i], 64))-want) > 0.1 {
				t.Fatalf("%s: %v, want %g in row %d", file, got, want, i)
			}
		}
	}
	x := readColumns(t, "map.csv")["0"]
	testkit.Equal(t, x[1], "8.25", "center of the second of two cells between 0 and 11")
}

// TestSpaceLengthScales checks that fit says which features the numbers of --sigma belong to where longitude and latitude
// are projected, and names the features if there are too few numbers, or too many for a Fourier series.
func TestSpaceLengthScales(t *testing.T) {
	local, globe := "z,lat,lon,v\n", "z,lat,lon,v\n"
	for i := range 30 {
		local += fmt.Sprintf("%d,%g,%g,%d\n", i%7, 40+0.1*float64(i%5), 8+0.1*float64(i%11), i)
		globe += fmt.Sprintf("%d,%d,%d,%d\n", i%7, 5*i-70, 11*i-160, i)
	}
	enterTempFolder(t, map[string]string{"local.csv": local, "globe.csv": globe})
	runScript(t, `
$ fit --train local.csv --space z,lat,lon --target v --sigma 20,30,2 --lambda 0.1
	note: --sigma: the numbers are for east km, north km, z, in this order
$ fit --train local.csv --space lat,lon --target v --sigma 20 --lambda 0.1
	!--sigma: the numbers
$ fit --train local.csv --space z,lat --target v --sigma 20,30 --lambda 0.1
	!--sigma: the numbers
1$ fit --train globe.csv --space z,lat,lon --target v --sigma 20,30,2 --lambda 0.1
	3 length scales for 4 features ("x km", "y km", "z km", "z"): want one for each
1$ fit --train globe.csv --space z,lat,lon --target v --sigma 2000 --lambda 0.1 --solver fourier
	points in 4 dimensions: a Fourier series needs 1 to 3; longitude and latitude of a large region are x, y and z on a sphere`)
}

// TestMapOfLine checks maps of degenerate points. Points on a line give a curve, and a constant target has finite
// standard deviations. Points at one place give a map of one cell, which cannot be drawn; the refusal must come before
// any file is written. Their leave-one-out error is that of new rows, as there is none for new features.
func TestMapOfLine(t *testing.T) {
	line, place, spot := "x,y,z\n", "x,y,z\n", "x,y,z\n"
	for i := range 200 {
		spot += fmt.Sprintf("3,5,%g\n", math.Sin(float64(i)))
		line += fmt.Sprintf("%g,5,1\n", float64(i)/40)
		place += fmt.Sprintf("3,5,%d\n", i%3)
	}
	enterTempFolder(t, map[string]string{"line.csv": line, "place.csv": place, "spot.csv": spot})
	runScript(t, `
$ loo --train spot.csv --target z --space x,y --sigma 1 --grid 1
	199 rows repeat the features of an earlier one: they count as new rows
	fit with       --lambda 1: RMSE 0.7098 on new rows
	!whose features are new
$ tune --train spot.csv --target z --space x,y --kernels gaussian --sigma 1
	the error is of new rows
$ fit --train line.csv --target z --task regression --space x,y --kernel gaussian --sigma 1 --lambda 0.1 --center yes --out line.krr
$ map line.krr --plot line.svg --out line-map.csv
	500×1 cells of x, y, prediction
	!NaN
$ map line.krr --grid 20x10 --plot line.svg
	20×1 cells
$ fit --train place.csv --target z --task regression --space x,y --kernel gaussian --sigma 1 --lambda 0.1 --repeats apart --out place.krr
1$ map place.krr --plot place.svg --out place-map.csv
	a grid of one cell is no map to draw
$ map place.krr --out one.csv
	1×1 cells`)
	if _, err := os.Stat("place-map.csv"); err == nil {
		t.Error("a file was written before the refusal")
	}
}
