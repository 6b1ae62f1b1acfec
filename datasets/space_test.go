package datasets

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// greatCircle returns the distance in kilometers of two points, each a longitude and a latitude in degrees, by the
// haversine formula.
func greatCircle(a, b []float64) float64 {
	const degree = math.Pi / 180
	u, v := math.Sin((b[1]-a[1])/2*degree), math.Sin((b[0]-a[0])/2*degree)
	return 2 * earthRadius * math.Asin(math.Sqrt(u*u+math.Cos(a[1]*degree)*math.Cos(b[1]*degree)*v*v))
}

// readSpace returns a data set with the given longitudes and latitudes, a column of words that is ignored, and the
// row number as the answer.
func readSpace(t *testing.T, rows [][]float64) *Dataset {
	t.Helper()
	text := "Lat,word,lon,y\n"
	for i, row := range rows {
		text += fmt.Sprintf("%.12g,a,%.12g,%d\n", row[1], row[0], i)
	}
	space := &Space{}
	if err := space.Set("Lat, lon"); err != nil {
		t.Fatal(err)
	}
	return must(Read(strings.NewReader(text), "wells.csv", &ReadOptions{Target: "y", Space: space}))
}

// TestSpaceDistances compares distances of projected points with great-circle distances. For points near each other
// anywhere on the sphere they must agree within the distortion of the projection. For points on the whole sphere they
// must be the chords.
func TestSpaceDistances(t *testing.T) {
	for seed := range uint64(8) {
		uniform := make([]float64, 200)
		rng.New(seed).Float64s(uniform, 0)
		center := [][]float64{{10, 50}, {179.9, -10}, {-179.9, 65}, {300, 0}, {0, 89}, {0, -88}, {20, 0}, {0, 0}}[seed]
		rows := make([][]float64, 100)
		for i := range rows {
			lat := center[1] + 12*(uniform[2*i]-0.5)
			if lat > 90 || lat < -90 {
				lat = 2*center[1] - lat
			}
			rows[i] = []float64{center[0] + 14*(uniform[2*i+1]-0.5), min(max(lat, -90), 90)}
			if seed > 5 {
				rows[i] = []float64{360*uniform[2*i] - 180, math.Asin(2*uniform[2*i+1]-1) * 180 / math.Pi}
			}
			if rows[i][0] > 180 && seed != 3 {
				rows[i][0] -= 360
			}
			rows[i][0] = max(rows[i][0], -180)
		}
		d := readSpace(t, rows)
		want, dim, tolerance := AzimuthalProjection, 2, 1/math.Cos(azimuthalRadius/2)-1
		if seed > 5 { // points on the whole sphere
			want, dim, tolerance = ChordProjection, 3, 1e-9
		}
		if d.Space.Projection != want || d.Dim() != dim {
			t.Fatalf("seed %d: %+v", seed, d.Space)
		}
		x := d.X.(*points.Dense)
		worstError := 0.0
		for i := range rows {
			for j := range i {
				sum := 0.0
				for k := range d.Dim() {
					sum += (x.Row(i)[k] - x.Row(j)[k]) * (x.Row(i)[k] - x.Row(j)[k])
				}
				exact := greatCircle(rows[i], rows[j])
				if want == ChordProjection {
					exact = 2 * earthRadius * math.Sin(exact/2/earthRadius)
				}
				worstError = max(worstError, math.Abs(math.Sqrt(sum)/exact-1))
			}
		}
		if worstError > tolerance {
			t.Errorf("seed %d: distances are off by %g, at most %g", seed, worstError, tolerance)
		}
		if want == AzimuthalProjection && !strings.Contains(d.ReadReport.String(), "Lambert azimuthal equal-area") ||
			want == ChordProjection && !strings.Contains(d.ReadReport.String(), "the distance is the chord") {
			t.Errorf("seed %d: the report does not name the projection %v: %v", seed, want, d.ReadReport)
		}
		if s := d.Space; s.High[0]-s.Low[0] > 361 || seed < 4 && s.High[0]-s.Low[0] > 15 {
			t.Errorf("seed %d: the box %v, %v", seed, s.Low, s.High)
		}
	}
}

// TestSpaceRead checks that new rows get the projection of the fit, also with columns in another order, with further
// columns and with a projection from JSON. No scaling is chosen, coordinates that are not degrees are unchanged, and
// a grid has the features of its cells.
func TestSpaceRead(t *testing.T) {
	rows := [][]float64{{7, 50}, {8, 51}, {9, 49}, {8.5, 50.5}}
	d := readSpace(t, rows)
	if kind, _ := d.AutoScaling(); kind != "none" || !slices.Equal(d.Space.Columns, []string{"lon", "Lat"}) ||
		!slices.Equal(d.Columns, []string{"east km", "north km"}) || !strings.Contains(d.ReadReport.String(), `left out "word"`) {
		t.Errorf("space %v, columns %v, report %v", d.Space, d.Columns, d.ReadReport)
	}
	space := must(readJSON(d.Space))
	options := &ReadOptions{Target: "y", TargetOptional: true, Columns: d.Columns, Dim: 2, Space: space}
	for _, text := range []string{"extra,lon,Lat\n1,8,51\n2,7,50\n", "Lat,y,lon\n51,3,8\n50,4,7\n"} {
		other := must(Read(strings.NewReader(text), "new.csv", options))
		x, want := other.X.(*points.Dense), d.X.(*points.Dense)
		if !slices.Equal(x.Row(0), want.Row(1)) || !slices.Equal(x.Row(1), want.Row(0)) {
			t.Errorf("%v, want rows of %v", x.Data, want.Data)
		}
	}
	values, cells, err := space.Grid([]int{3, 2}, accel.Budget{})
	if err != nil || cells.Len() != 6 || math.Abs(values[0][0]-(7+1.0/3)) > 1e-12 || values[1][1] != 50.5 {
		t.Fatalf("grid of 3×2 cells: coordinates %v, cells %v, %v", values, cells, err)
	}
	for k := range 6 {
		row := make([]float64, 2)
		cells.X.RowTo(row, k)
		if want := space.appendFeatures(nil, []float64{values[0][k%3], values[1][k/3]}); !slices.Equal(row, want) {
			t.Errorf("cell %d: %v, want %v", k, row, want)
		}
	}
	depth := must(Read(strings.NewReader("1,7,50,3\n2,8,51,4\n5,9,50,6\n"), "d.csv", &ReadOptions{Header: "no", Space: &Space{
		Columns: []string{"1", "0"}}}))
	if x := depth.X.(*points.Dense); depth.Space.Projection != PlaneProjection || !slices.Equal(x.Data, []float64{7, 1,
		8, 2, 9, 5}) ||
		!strings.Contains(depth.ReadReport.String(), "coordinates as they are") {
		t.Errorf("points %v, report %v, want the plane projection", x.Data, depth.ReadReport)
	}
	if sizes := (&Space{Columns: []string{"x", "y"}, Projection: PlaneProjection, Low: []float64{0, 0},
		High: []float64{4, 1}}).defaultSizes(); !slices.Equal(sizes, []int{200, 50}) {
		t.Errorf("default sizes %v, want 200 and 50", sizes)
	}
}

// TestSpaceRefusals checks that impossible degrees, missing coordinates, formats without columns, unknown columns,
// damaged projections and invalid grids are errors.
func TestSpaceRefusals(t *testing.T) {
	read := func(text string, options ReadOptions) error {
		_, err := Read(strings.NewReader(text), "a.csv", &options)
		return err
	}
	space := &Space{Columns: []string{"lon", "lat"}}
	wantError(t, read("lon,lat,y\n512000,48,1\n3,4,5\n", ReadOptions{Space: space}),
		`"lon" goes from 3 to 512000, and a longitude`)
	wantError(t, read("lon,lat,y\n1,91,1\n3,4,5\n", ReadOptions{Space: space}), "a latitude in degrees from -90 to 90")
	wantError(t, read("lon,lat,y\n1,,1\n3,4,5\n", ReadOptions{Space: space, KeepMissing: true}),
		"a coordinate is missing")
	wantError(t, read("lon,b,y\n1,9,1\n3,4,5\n", ReadOptions{Space: space}), `no column is named "lat"`)
	wantError(t, read("lon,lat\n1,9\n3,4\n", ReadOptions{Space: space, Target: "lat"}), "is in --target too")
	wantError(t, read("1 1:2 2:3\n0 1:3\n", ReadOptions{Space: space, Format: "libsvm"}), "--space is for csv files")
	wantError(t, read("lon,lat,y\n1,9,1\n3,4,5\n", ReadOptions{Space: &Space{Columns: space.Columns,
		Projection: "mercator"}}), "is damaged")
	wantError(t, (&Space{}).Set("a,b,c,d"), "want the names")
	wantError(t, (&Space{}).Set("a,,b"), "want the names")
	s := &Space{Columns: []string{"x", "y"}, Projection: PlaneProjection, Low: []float64{0, 0}, High: []float64{1, 1}}
	for want, sizes := range map[string][]int{
		`a grid of 3 cells for the coordinates "x", "y": want a number from 1 on for each, such as 50x50`: {3},
		"a grid of 3×0 cells for": {3, 0}, "a grid of 20000×5001 cells: want at most 10⁸": {20000, 5001}} {
		_, _, err := s.Grid(sizes, accel.Budget{})
		wantError(t, err, want)
	}
	const need = 4000 * 200 * (50 + 16*2) // cellBytes and featureBytes in Grid
	_, _, err := s.Grid([]int{4000, 200}, accel.Budget{Limit: need + 2e6, Used: 2e6 + 1})
	wantError(t, err,
		"a grid of 4000×200 cells would take 65.6 MB of memory, and 65.6 MB of 67.6 MB are free: take fewer "+
			"cells, or allow more by --memory")
	if _, _, err = s.Grid([]int{4000, 200}, accel.Budget{Limit: need}); err != nil {
		t.Error(err)
	}
}

// TestSpaceByNumber checks that coordinates in a file without a header are found by their numbers, whatever the first
// row of a later file is. A file with the coordinates alone has them in the order of the file of the fit.
func TestSpaceByNumber(t *testing.T) {
	fit := func(text string, columns ...string) *Dataset {
		return must(Read(strings.NewReader(text), "grid.csv", &ReadOptions{Space: &Space{Columns: columns}, Target: "0"}))
	}
	d := fit("5,0,1\n6,1,0\n7,2,4\n", "2", "-2") // y, i, j
	if s := d.Space; !s.ByNumber || d.Columns != nil || !slices.Equal(s.Columns, []string{"2", "1"}) {
		t.Fatalf("%+v, columns %q", s, d.Columns)
	}
	for _, c := range []struct {
		header, text string
		want         []float64
	}{
		{"auto", "1,0\n9,2\n3,4\n", []float64{0, 1, 2, 9, 4, 3}}, {"no", "1,0\n9,2\n3,4\n", []float64{0, 1, 2, 9, 4, 3}},
		{"auto", "1,2,0\n9,2,7\n", []float64{0, 2, 7, 2}}, {"no", "1,2,0\n9,2,7\n", []float64{0, 2, 7, 2}},
		{"auto", "y,b,a\n9,2,7\n", []float64{7, 2}}, {"yes", "0,2,1\n9,2,7\n", []float64{7, 2}},
	} {
		options := &ReadOptions{Target: "0", TargetOptional: true, Dim: 2, Columns: d.Columns, Space: d.Space,
			Header: c.header}
		if x := must(Read(strings.NewReader(c.text), "new.csv", options)).X.(*points.Dense); !slices.Equal(x.Data,
			c.want) {
			t.Errorf("header %s of %q: %v, want %v", c.header, c.text, x.Data, c.want)
		}
	}
	named := fit("y,1,2\n5,0,1\n6,1,0\n7,2,4\n", "1", "2")
	_, err := Read(strings.NewReader("0,2,1\n1,2,3\n"), "new.csv", &ReadOptions{Target: "y", TargetOptional: true, Dim: 2,
		Columns: named.Columns, Space: named.Space, Header: "no"})
	if named.Space.ByNumber || err == nil || !strings.Contains(err.Error(), `have names, "1", "2", and a file without a header has none`) {
		t.Errorf("space %+v: %v, want an error that the columns have names", named.Space, err)
	}
}

// TestSpaceWithoutNames checks the errors about later files in which the coordinates cannot be found: a file without a
// header where the coordinates have names, and a file without the target where they have numbers.
func TestSpaceWithoutNames(t *testing.T) {
	named := readSpace(t, [][]float64{{7, 50}, {8, 51}})
	_, err := Read(strings.NewReader("7,50\n8,51\n"), "new.csv", &ReadOptions{Target: "y", TargetOptional: true, Dim: 2,
		Columns: named.Columns, Space: named.Space})
	wantError(t, err,
		`the coordinates of the model have names, "lon", "Lat", and a file without a header has none: write the names`)

	s := &Space{Columns: []string{"1", "2"}}
	numbered := must(Read(strings.NewReader("9,0,1,5\n9,1,0,6\n9,2,4,7\n"), "grid.csv", &ReadOptions{Space: s, Target: "3"}))
	options := &ReadOptions{Target: "3", TargetOptional: true, Dim: 2, Space: numbered.Space}
	_, err = Read(strings.NewReader("9,0,1\n9,1,0\n"), "new.csv", options)
	wantError(t, err,
		"3 columns, and the file of the fit, without a header, had the coordinates in the columns 1, 2 and the "+
			"target in 3, counted from 0: give all columns as they were there, or the coordinates alone")
	options.Target = "none"
	d := must(Read(strings.NewReader("9,0,1\n9,1,0\n"), "new.csv", options))
	if x := d.X.(*points.Dense).Data; !slices.Equal(x, []float64{0, 1, 1, 0}) {
		t.Errorf("without a target the coordinates are %v", x)
	}
}

// TestSpaceFarFromCenter checks the note about later rows that are too far from the center of a projection to a plane.
func TestSpaceFarFromCenter(t *testing.T) {
	plane := readSpace(t, [][]float64{{10, 0}, {12, 0}})
	sphere := readSpace(t, [][]float64{{10, 0}, {70, 0}, {-50, 10}})
	for _, c := range []struct {
		fit  *Dataset
		text string
		want string
	}{
		{plane, "25.3,0\n-3.3,0\n11,14.3\n", ""}, {sphere, "101,0\n", ""},
		{plane, "11,0\n101,0\n11,15\n", "2 of 3 rows up to 10008 km from the center of the fit, 11, 0, where its projection " +
			"to a plane is off by up to 29 %"}, // 90 degrees: 1 − cos 45°
	} {
		d := must(Read(strings.NewReader("lon,Lat\n"+c.text), "new.csv", &ReadOptions{Target: "none", Columns: c.fit.Columns,
			Dim: c.fit.Dim(), Space: c.fit.Space}))
		notes := strings.Join(d.ReadReport.Notes, "\n")
		if c.want == "" && strings.Contains(notes, "center") || !strings.Contains(notes, c.want) {
			t.Errorf("%q on a %v: notes %q, want %q", c.text, c.fit.Space.Projection, notes, c.want)
		}
	}
}

// TestSpacePlaneNote checks what is said about coordinates that are not projected.
func TestSpacePlaneNote(t *testing.T) {
	for names, want := range map[string]string{"depth": `"depth" is a coordinate as it is`, "lat": `"lat" is a coordinate as it is`,
		"x,y":          `"x", "y" are coordinates as they are, with one unit (columns named lon and lat would be projected)`,
		"lon_wgs,lat":  `only "lat" is known by its name as degrees, and nothing is projected`,
		"lat,lon,time": `"lon", "lat" are degrees`} {
		s := &Space{Columns: strings.Split(names, ",")}
		d := must(Read(strings.NewReader(names+",v\n"+strings.Repeat("1,", len(s.Columns))+"7\n"+
			strings.Repeat("2,", len(s.Columns))+"8\n"), "a.csv", &ReadOptions{Space: s, Target: "v"}))
		if notes := strings.Join(d.ReadReport.Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q, want %q", names, notes, want)
		}
	}
}

// TestSpaceGridOfSmallBox checks that the cells of a grid follow its sizes if the coordinates differ little from each
// other compared with their size, such as times in seconds since 1970. Coordinates that differ by rounding have one
// cell.
func TestSpaceGridOfSmallBox(t *testing.T) {
	for _, c := range []struct {
		space Space
		want  int
	}{
		{Space{Columns: []string{"t"}, Low: []float64{1.7e9}, High: []float64{1.7e9 + 0.125}}, 5},
		{Space{Columns: []string{"t"}, Low: []float64{1.7e9}, High: []float64{1.7e9}}, 1},
		{Space{Columns: []string{"t"}, Low: []float64{1e-20}, High: []float64{2e-20}}, 5},
	} {
		c.space.Projection = PlaneProjection
		values, cells, err := c.space.Grid([]int{5}, accel.Budget{})
		if err != nil || len(values[0]) != c.want || cells.Len() != c.want {
			t.Errorf("%v to %v: %d cells, want %d (%v)", c.space.Low, c.space.High, len(values[0]), c.want, err)
		}
	}
	d := readSpace(t, [][]float64{{0, 50}, {360, 51}, {-360, 52}, {1e-15, 53}})
	if values, _, err := d.Space.Grid([]int{5, 5}, accel.Budget{}); err != nil || len(values[0]) != 1 || len(values[1]) != 5 {
		t.Errorf("%d×%d cells of equal longitudes (%v)", len(values[0]), len(values[1]), err)
	}
}

// TestSpaceAppend checks that appended rows extend the box of the coordinates, and that the earlier data set keeps
// its own box.
func TestSpaceAppend(t *testing.T) {
	d := readSpace(t, [][]float64{{7, 50}, {8, 51}, {9, 49}})
	tail := must(Read(strings.NewReader("lon,Lat,y\n9.5,50,1\n8,48,2\n"), "new.csv", &ReadOptions{Target: "y", Columns: d.Columns, Dim: 2,
		Space: d.Space}))
	all := must(d.Append(tail))
	if s := all.Space; !slices.Equal(s.Low, []float64{7, 48}) || math.Abs(s.High[0]-9.5) > 1e-9 || s.High[1] != 51 || d.Space.Low[1] != 49 {
		t.Errorf("the range of all rows is %+v", s)
	}
}

// TestSpaceImpossible checks that impossible degrees in later files are errors, as in the file of the fit.
func TestSpaceImpossible(t *testing.T) {
	for _, d := range []*Dataset{readSpace(t, [][]float64{{7, 50}, {8, 51}}), readSpace(t, [][]float64{{7, 50}, {-100, -60}, {120, 0}})} {
		for text, want := range map[string]string{"500,50": `"lon" goes from 500 to 500`, "8,95": "a latitude in degrees from -90 to 90"} {
			_, err := Read(strings.NewReader("lon,Lat\n"+text+"\n"), "new.csv", &ReadOptions{Target: "none", Columns: d.Columns, Dim: d.Dim(), Space: d.Space})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "rename") {
				t.Errorf("%s of %v: %v", text, d.Space.Projection, err)
			}
		}
	}
}

// TestSpaceWords checks that coordinates that are words, missing or dates are refused, in the file of the fit and
// later. The messages must not propose flags that --space excludes.
func TestSpaceWords(t *testing.T) {
	fitted := readSpace(t, [][]float64{{7, 50}, {8, 51}})
	for _, options := range []ReadOptions{{Space: &Space{Columns: []string{"lon", "Lat"}}},
		{Space: fitted.Space, Columns: fitted.Columns, Dim: 2}} {
		for _, text := range []string{"E7,50N,1\nW8,51N,1\n", "7,,1\n8,50,1\n", ",,1\n,,1\n", "2024-01-01,4,1\n2024-01-02,5,1\n"} {
			_, err := Read(strings.NewReader("lon,Lat,y\n"+text), "a.csv", &options)
			if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "number") {
				t.Errorf("%q: %v, want an error about numbers without advice on flags", text, err)
			}
		}
	}
}

// TestSpaceNames checks that later files are searched for the names of the coordinates and not for those of the
// projected features, also if the names are in a comment above the rows.
func TestSpaceNames(t *testing.T) {
	fitted := readSpace(t, [][]float64{{7, 50}, {8, 51}})
	options := &ReadOptions{Target: "none", Space: fitted.Space, Columns: fitted.Columns, Dim: 2}
	_, err := Read(strings.NewReader("e,n\n7,50\n"), "a.csv", options)
	wantError(t, err, `none of the columns "lon", "Lat" of the model is here`)
	d := must(Read(strings.NewReader("# lon,Lat,a\n8,51,1\n7,50,2\n"), "a.csv", options))
	if x := d.X.(*points.Dense).Data; !slices.Equal(x[:2], fitted.X.(*points.Dense).Data[2:]) {
		t.Errorf("%v of %v", x, fitted.X)
	}
}

// TestSpaceGridIsRead checks that the cells of a map, written to a file and read again, are the same points, also
// across the 180th meridian.
func TestSpaceGridIsRead(t *testing.T) {
	for wantFirst, rows := range map[float64][][]float64{175: {{175, -20}, {-173, -12}}, 173: {{173, -20}, {-175, -12}},
		-190: {{170, -20}, {-100, 3}, {-60, 3}, {10, -12}}, -124: {{-124, 40}, {-120, 45}}} {
		d := readSpace(t, rows)
		values, cells, err := d.Space.Grid([]int{6, 2}, accel.Budget{})
		step := values[0][1] - values[0][0]
		if err != nil || math.Abs(values[0][0]-step/2-wantFirst) > 1e-9 {
			t.Errorf("%v: longitudes from %v, %v", rows, values[0], err)
		}
		text := "lon,Lat\n"
		for i := range 12 {
			text += fmt.Sprintf("%.17g,%.17g\n", values[0][i%6], values[1][i/6])
		}
		again := must(Read(strings.NewReader(text), "map.csv", &ReadOptions{Target: "none", Space: d.Space, Columns: d.Columns, Dim: d.Dim()}))
		for i, v := range again.X.(*points.Dense).Data {
			if math.Abs(v-cells.X.(*points.Dense).Data[i]) > 1e-9 {
				t.Fatalf("%v: cell %d: %g", rows, i, v)
			}
		}
	}
}

// TestSpaceSet checks that quoted names may contain commas, and that a second flag adds columns.
func TestSpaceSet(t *testing.T) {
	s := &Space{}
	if err := s.Set(`a b,"c,d"`); err != nil || !slices.Equal(s.Columns, []string{"a b", "c,d"}) || s.String() != `a b,"c,d"` {
		t.Errorf("columns %q, %v", s.Columns, err)
	}
	s = &Space{}
	for _, name := range []string{"lat", "lon"} {
		if err := s.Set(name); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(s.Columns, []string{"lon", "lat"}) {
		t.Errorf("columns %q, want lon and lat", s.Columns)
	}
	for _, text := range []string{"", "lon", `"a`} {
		if (&Space{Columns: []string{"lon", "lat"}}).Set(text) == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestSpaceGlobe checks that the box of points around the globe goes from -180 to 180, and that a note says that a
// third coordinate should be in km.
func TestSpaceGlobe(t *testing.T) {
	text := "lon,lat,depth,y\n"
	for i := range 60 {
		text += fmt.Sprintf("%d,%d,%d,1\n", 6*i-177, i%50, i)
	}
	d := must(Read(strings.NewReader(text), "a.csv", &ReadOptions{Space: &Space{Columns: []string{"lon", "lat", "depth"}}}))
	if d.Space.Low[0] != -180 || d.Space.High[0] != 180 || !strings.Contains(d.ReadReport.String(), `"depth" is the next feature, as it is: give it in km`) {
		t.Errorf("space %+v, report %v", d.Space, d.ReadReport)
	}
}

// TestSpaceSourceColumns checks that a projected longitude and latitude are one source column, with the names in the
// file, and that other coordinates are separate columns.
func TestSpaceSourceColumns(t *testing.T) {
	for want, c := range map[string]struct {
		text, header string
		columns      []string
	}{
		"[{lon, lat 0 2 <nil>} {alt 2 1 <nil>}]":      {"alt,lat,lon,y\n1,47,8,3\n2,47.1,8.1,4\n", "", []string{"lat", "alt", "lon"}},
		"[{Long, Lat 0 3 <nil>} {h 3 1 <nil>}]":       {"Long,Lat,h,y\n0,0,1,3\n150,60,2,4\n", "", []string{"Long", "Lat", "h"}},
		"[{u 0 1 <nil>} {v 1 1 <nil>}]":               {"u,v,y\n0,0,3\n150,60,4\n", "", []string{"u", "v"}},
		"[{column 2 0 1 <nil>} {column 0 1 1 <nil>}]": {"1,7,50,3\n2,8,51,4\n", "no", []string{"2", "0"}},
	} {
		options := &ReadOptions{Target: "y", Header: c.header, Space: &Space{Columns: c.columns}}
		if c.header == "no" {
			options.Target = "3"
		}
		d := must(Read(strings.NewReader(c.text), "wells.csv", options))
		if got := fmt.Sprint(d.SourceColumns()); got != want {
			t.Errorf("%v: %s, want %s", c.columns, got, want)
		}
	}
}
