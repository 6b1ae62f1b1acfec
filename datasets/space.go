package datasets

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Projection says how coordinates become features.
type Projection string

const (
	// PlaneProjection takes coordinates as they are, so that the distance is √Σ(x−z)².
	PlaneProjection Projection = "plane"
	// AzimuthalProjection maps longitude and latitude to kilometers in a plane by Lambert's azimuthal equal-area
	// projection around the center of the points. Within a radius R of the center, distances are right within a factor
	// of cos(R/2).
	AzimuthalProjection Projection = "azimuthal"
	// ChordProjection maps longitude and latitude to three coordinates in kilometers on a sphere, so that the distance
	// is the length of the chord between two points.
	ChordProjection Projection = "chord"
)

const (
	// earthRadius is the mean radius of the earth in kilometers.
	earthRadius = 6371.0088
	// azimuthalRadius is the largest angle between a point and the center, in radians, for which AzimuthalProjection is
	// chosen: 1,593 km, with distances within 0.8 %. A larger value distorts more; ChordProjection takes about ten
	// times as many Fourier modes.
	azimuthalRadius = 0.25
	// maxCoordinates is the largest number of coordinates.
	maxCoordinates = 3
	// maxCells is the largest number of cells of a grid, a judgment.
	maxCells = 1e8
)

// Space says which columns of a table are coordinates, and how they become features. The other columns are no features.
// Columns that are named as longitude and latitude, and have degrees, are projected (AzimuthalProjection if all points
// are within 1,593 km of their center, else ChordProjection); other coordinates are taken as they are. A stationary
// kernel is positive definite for each projection, because it is a kernel of the features.
type Space struct {
	Columns []string `json:"columns"` // names, or numbers counted from 0 if ByNumber
	// ByNumber says that the file of the fit had no header. The columns of other files are then taken by their numbers,
	// not by their names.
	ByNumber   bool       `json:"by_number,omitempty"`
	Projection Projection `json:"projection"`
	Center     []float64  `json:"center,omitempty"` // longitude and latitude in degrees; nil for PlaneProjection
	// Low and High are the box of the coordinates, in the order of Columns. Longitudes are within 180 degrees of the
	// center, or go from -180 to 180 if the box leaves out less than 10 degrees.
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
}

// lonLatColumns returns the indices in Columns of the longitude and the latitude, which are recognized by their names.
// The index of a missing column is negative; ok reports that both columns exist.
func (s *Space) lonLatColumns() (lon, lat int, ok bool) {
	find := func(names ...string) int {
		return slices.IndexFunc(s.Columns, func(column string) bool {
			return slices.Contains(names,
				strings.ToLower(column))
		})
	}
	lon, lat = find("lon", "long", "lng", "longitude", "decimallongitude"), find("lat", "latitude", "decimallatitude")
	return lon, lat, lon >= 0 && lat >= 0
}

// unprojectedColumns returns the indices of the coordinates that are features as they are.
func (s *Space) unprojectedColumns() (columns []int) {
	lon, lat, _ := s.lonLatColumns()
	for j := range s.Columns {
		if s.Projection == PlaneProjection || j != lon && j != lat {
			columns = append(columns, j)
		}
	}
	return columns
}

// featureNames returns the names of the features, or nil if the columns have no names.
func (s *Space) featureNames() (names []string) {
	if s.ByNumber {
		return nil
	}
	switch s.Projection {
	case AzimuthalProjection:
		names = []string{"east km", "north km"}
	case ChordProjection:
		names = []string{"x km", "y km", "z km"}
	default:
		return s.Columns
	}
	for _, j := range s.unprojectedColumns() {
		names = append(names, s.Columns[j])
	}
	return names
}

// sourceColumns returns the coordinates in the order of the features, with longitude and latitude as one column if they
// are projected.
func (s *Space) sourceColumns() (columns []SourceColumn) {
	lon, lat, _ := s.lonLatColumns()
	feature := 0 // index of the next feature
	if s.Projection != PlaneProjection {
		feature = s.dim() - len(s.Columns) + 2
		columns = append(columns, SourceColumn{Name: s.Columns[lon] + ", " + s.Columns[lat], FeatureCount: feature})
	}
	for _, j := range s.unprojectedColumns() {
		name := s.Columns[j]
		if s.ByNumber {
			name = "column " + name
		}
		columns, feature = append(columns, SourceColumn{Name: name, FirstFeature: feature, FeatureCount: 1}), feature+1
	}
	return columns
}

// dim returns the number of features.
func (s *Space) dim() int {
	if s.Projection == ChordProjection {
		return len(s.Columns) + 1
	}
	return len(s.Columns)
}

// positions returns the numbers of the coordinates among the columns of a file of the given width, counted from 0; s
// must be ByNumber. A file with no more columns than coordinates has the coordinates alone, in their order in the file
// of the fit.
func (s *Space) positions(width int) (columns []string) {
	if width != len(s.Columns) {
		return s.Columns
	}
	for _, column := range s.Columns {
		number, _ := strconv.Atoi(column)
		position := 0 // number of coordinates to the left of column
		for _, coordinate := range s.Columns {
			if k, _ := strconv.Atoi(coordinate); k < number {
				position++
			}
		}
		columns = append(columns, strconv.Itoa(position))
	}
	return columns
}

// spherePoint returns the point of the unit sphere at a longitude and latitude in degrees.
func spherePoint(lon, lat float64) r3.Vec {
	sinLon, cosLon := math.Sincos(lon * math.Pi / 180)
	sinLat, cosLat := math.Sincos(lat * math.Pi / 180)
	return r3.Vec{X: cosLat * cosLon, Y: cosLat * sinLon, Z: sinLat}
}

// appendFeatures appends the features of a point to dst and returns the extended slice. row has the coordinates of the
// point in the order of Columns.
func (s *Space) appendFeatures(dst, row []float64) []float64 {
	lon, lat, _ := s.lonLatColumns()
	switch s.Projection {
	case PlaneProjection:
		return append(dst, row...)
	case ChordProjection:
		point := r3.Scale(earthRadius, spherePoint(row[lon], row[lat]))
		dst = append(dst, point.X, point.Y, point.Z)
	default: // AzimuthalProjection, by fit and validate
		sinLat, cosLat := math.Sincos(row[lat] * math.Pi / 180)
		sinCenter, cosCenter := math.Sincos(s.Center[1] * math.Pi / 180)
		sinLon, cosLon := math.Sincos((row[lon] - s.Center[0]) * math.Pi / 180)
		cosine := sinCenter*sinLat + cosCenter*cosLat*cosLon          // of the angle to the center
		scale := earthRadius * math.Sqrt(2/math.Max(1+cosine, 1e-12)) // finite even opposite to the center
		dst = append(dst, scale*cosLat*sinLon, scale*(cosCenter*sinLat-sinCenter*cosLat*cosLon))
	}
	for j, v := range row {
		if j != lon && j != lat {
			dst = append(dst, v)
		}
	}
	return dst
}

// sameFeatures reports whether s and otherSpace compute the same features from the same columns. The boxes may differ.
// nil means that there are no coordinates.
func (s *Space) sameFeatures(otherSpace *Space) bool {
	if s == nil || otherSpace == nil {
		return s == otherSpace
	}
	return slices.Equal(s.Columns, otherSpace.Columns) && s.Projection == otherSpace.Projection &&
		slices.Equal(s.Center, otherSpace.Center)
}

// fit chooses the projection for the coordinates x, and sets Projection and, for longitude and latitude, Center. It
// returns a description of the choice, or an error if a longitude or latitude is impossible.
func (s *Space) fit(x points.Points) (note string, err error) {
	lon, lat, hasLonLat := s.lonLatColumns()
	s.Projection = PlaneProjection
	if !hasLonLat {
		return s.planeNote(), nil
	}
	if err := s.checkDegrees(x); err != nil {
		return "", fmt.Errorf("%w: rename it if it is a coordinate in a plane", err)
	}

	// The center is the direction of the sum of the points on the unit sphere.
	var sum r3.Vec
	visitRows(x, func(row []float64) { sum = r3.Add(sum, spherePoint(row[lon], row[lat])) })
	norm := math.Sqrt(r3.Norm2(sum))
	s.Center = []float64{math.Atan2(sum.Y, sum.X) * 180 / math.Pi, math.Asin(sum.Z/cmp.Or(norm, 1)) * 180 / math.Pi}
	center, cosine := spherePoint(s.Center[0], s.Center[1]), 1.0
	visitRows(x, func(row []float64) { cosine = min(cosine, r3.Dot(spherePoint(row[lon], row[lat]), center)) })
	names := nameList([]string{s.Columns[lon], s.Columns[lat]})
	s.Projection = ChordProjection
	unprojectedNote := ""
	for _, j := range s.unprojectedColumns() {
		unprojectedNote += fmt.Sprintf("; %s is the next feature, as it is: give it in km, or a length scale of its own",
			quote(s.Columns[j]))
	}
	n, _ := x.Dims()
	radius := math.Acos(min(max(cosine, -1), 1))
	// If the mean of the points is short, they surround the globe, and the center has no meaning.
	if radius > azimuthalRadius || norm < float64(n)/2 {
		return names + " are degrees on a sphere: features are x, y, z in km, so that the distance is the chord" +
			unprojectedNote, nil
	}
	s.Projection = AzimuthalProjection
	return fmt.Sprintf("%s are degrees: projected to km around %.4g, %.4g (Lambert azimuthal equal-area), distances "+
		"within %.2g %%%s", names, s.Center[0], s.Center[1], 100*(1-math.Cos(radius/2)), unprojectedNote), nil
}

// planeNote describes coordinates that are not projected.
func (s *Space) planeNote() string {
	lon, lat, _ := s.lonLatColumns()
	switch knownColumn := max(lon, lat); {
	case len(s.Columns) == 1:
		return nameList(s.Columns) + " is a coordinate as it is (two columns named lon and lat would be projected)"
	case knownColumn >= 0:
		return fmt.Sprintf("%s are coordinates as they are, with one unit: only %s is known by its name as degrees, and "+
			"nothing is projected (two columns named lon and lat would be)", nameList(s.Columns),
			quote(s.Columns[knownColumn]))
	}
	return nameList(s.Columns) + " are coordinates as they are, with one unit (columns named lon and lat would be " +
		"projected)"
}

// distantRowsNote describes rows of x that are too far from the center for AzimuthalProjection; "" if there are none.
func (s *Space) distantRowsNote(x points.Points) string {
	lon, lat, _ := s.lonLatColumns()
	center, count, largest := spherePoint(s.Center[0], s.Center[1]), 0, 0.0
	visitRows(x, func(row []float64) {
		if angle := math.Acos(min(max(r3.Dot(spherePoint(row[lon], row[lat]), center), -1), 1)); angle > azimuthalRadius {
			count, largest = count+1, max(largest, angle)
		}
	})
	if count == 0 {
		return ""
	}
	n, _ := x.Dims()
	return fmt.Sprintf("%d of %s up to %.0f km from the center of the fit, %.4g, %.4g, where its projection to a plane "+
		"is off by up to %.2g %%: a fit that has such rows from the start is on a sphere", count,
		plural(n, "row"), earthRadius*largest, s.Center[0], s.Center[1], 100*(1-math.Cos(largest/2)))
}

// checkDegrees returns an error if a longitude or latitude of x is impossible.
func (s *Space) checkDegrees(x points.Points) error {
	lon, lat, _ := s.lonLatColumns()
	lows, highs := FeatureRanges(x)
	for _, bounds := range []struct {
		kind      string
		column    int
		low, high float64
	}{{"longitude", lon, -360, 360}, {"latitude", lat, -90, 90}} {
		if low, high := lows[bounds.column], highs[bounds.column]; !(low >= bounds.low && high <= bounds.high) {
			return fmt.Errorf("%s goes from %g to %g, and a %s in degrees from %g to %g",
				quote(s.Columns[bounds.column]), low, high, bounds.kind, bounds.low, bounds.high)
		}
	}
	return nil
}

// setBox sets Low and High to the smallest and largest coordinates x. Longitudes are taken within 180 degrees of the
// center.
func (s *Space) setBox(x points.Points) {
	s.Low, s.High = FeatureRanges(x)
	if s.Projection == PlaneProjection {
		return
	}
	lon, _, _ := s.lonLatColumns()
	s.Low[lon], s.High[lon] = math.Inf(1), math.Inf(-1)
	visitRows(x, func(row []float64) {
		longitude := s.Center[0] + math.Remainder(row[lon]-s.Center[0], 360)
		s.Low[lon], s.High[lon] = min(s.Low[lon], longitude), max(s.High[lon], longitude)
	})
	s.roundBox()
}

// roundBox lets the longitudes go from -180 to 180 degrees if the box leaves out less than 10 degrees.
func (s *Space) roundBox() {
	const nearlyGlobe = 360 - 10 // degrees
	if lon, _, _ := s.lonLatColumns(); s.Projection != PlaneProjection && s.High[lon]-s.Low[lon] > nearlyGlobe {
		s.Low[lon], s.High[lon] = -180, 180
	}
}

// enlarged returns s with the smallest box that contains the boxes of s and otherSpace, which have the same columns and
// projection.
func (s *Space) enlarged(otherSpace *Space) *Space {
	out := *s
	out.Low, out.High = slices.Clone(s.Low), slices.Clone(s.High)
	for j := range out.Low {
		out.Low[j], out.High[j] = min(s.Low[j], otherSpace.Low[j]), max(s.High[j], otherSpace.High[j])
	}
	out.roundBox()
	return &out
}

// validate returns an error if s cannot be the result of a fit.
func (s *Space) validate() error {
	_, _, hasLonLat := s.lonLatColumns()
	projections := []Projection{PlaneProjection, AzimuthalProjection, ChordProjection}
	d, isKnown := len(s.Columns), slices.Contains(projections, s.Projection)
	lacksLonLat := s.Projection != PlaneProjection && (!hasLonLat || len(s.Center) != 2)
	if !isKnown || lacksLonLat || d > maxCoordinates || len(s.Low) != d || len(s.High) != d {
		return fmt.Errorf("the projection %q of the coordinates %s is damaged", s.Projection, nameList(s.Columns))
	}
	return nil
}

// project returns d, whose features are the coordinates, with the features that s makes of them. The Space of the
// result is a copy of s with the box of the points of d. If s has no projection yet, one is chosen for these points.
func (s *Space) project(d *Dataset, r *ReadReport) (*Dataset, error) {
	fitted, note, err := *s, "", error(nil)
	if s.Projection == "" && d.Columns != nil {
		fitted.Columns = d.Columns
	} else if s.Projection == "" {
		fitted.Columns, fitted.ByNumber = nil, true
		for _, j := range d.fileColumns {
			fitted.Columns = append(fitted.Columns, strconv.Itoa(j))
		}
	}
	n, columns := d.X.Dims()
	if columns != len(s.Columns) || columns > maxCoordinates {
		return nil, fmt.Errorf("--space: %d columns of coordinates: want 1 to %d", columns, maxCoordinates)
	}
	visitRows(d.X, func(row []float64) {
		if slices.ContainsFunc(row, math.IsNaN) {
			err = fmt.Errorf("--space: a coordinate is missing: remove such rows")
		}
	})
	if s.Projection == "" && err == nil {
		note, err = fitted.fit(d.X)
	} else if err == nil {
		if err = fitted.validate(); err == nil && s.Projection != PlaneProjection {
			err = fitted.checkDegrees(d.X)
		}
		if err == nil && s.Projection == AzimuthalProjection {
			note = fitted.distantRowsNote(d.X)
		}
	}
	if err != nil {
		return nil, err
	}
	if note != "" {
		r.note("%s", note)
	}
	fitted.setBox(d.X)
	out := *d
	out.Space, out.fileColumns = &fitted, nil
	out.Columns = fitted.featureNames()
	data := make([]float64, 0, n*fitted.dim())
	visitRows(d.X, func(row []float64) { data = fitted.appendFeatures(data, row) })
	out.X = points.NewDense(n, fitted.dim(), data)
	return &out, nil
}

// Grid returns the centers of the cells of a grid over the box of the coordinates: the values of each coordinate, and
// the points with their features, without a scaling. sizes are the numbers of cells; nil means 200 along the longer
// side of a plane, 500 on a line, and 40 along each axis of a volume. A coordinate that all points share has one cell,
// whatever its size. The first coordinate changes fastest. It is an error if there are not as many sizes as
// coordinates, more than 10⁸ cells, or less memory free than a map of these cells takes. Longitudes that go from
// below -180 to at most 0 are given from 0 to 360.
func (s *Space) Grid(sizes []int, memory accel.Budget) (values [][]float64, cells *Dataset, err error) {
	if err := s.validate(); err != nil {
		return nil, nil, err
	}
	if sizes == nil {
		sizes = s.defaultSizes()
	}
	sizes = slices.Clone(sizes)
	total := 1.0
	for j, size := range sizes {
		if j < len(s.Columns) && size > 1 && s.isShared(j) {
			sizes[j], size = 1, 1
		}
		total *= float64(size)
	}
	sizeTexts := make([]string, len(sizes))
	for j, size := range sizes {
		sizeTexts[j] = strconv.Itoa(size)
	}
	grid := fmt.Sprintf("a grid of %s cells", strings.Join(sizeTexts, "×"))
	switch {
	case len(sizes) != len(s.Columns) || slices.Min(sizes) < 1:
		return nil, nil, fmt.Errorf("%s for the coordinates %s: want a number from 1 on for each, such as %s", grid,
			nameList(s.Columns), strings.Join(slices.Repeat([]string{"50"}, len(s.Columns)), "x"))
	case total > maxCells:
		return nil, nil, fmt.Errorf("%s: want at most 10⁸", grid)
	}
	// Bytes of memory for a cell and for a feature of a cell, measured for maps with standard deviations.
	const cellBytes, featureBytes = 50, 16
	if err := memory.Check(int64(total)*int64(cellBytes+featureBytes*s.dim()), grid,
		"take fewer cells, or allow more by --memory"); err != nil {
		return nil, nil, err
	}
	for j, size := range sizes {
		axis, low := make([]float64, size), s.Low[j]
		if lon, _, _ := s.lonLatColumns(); j == lon && s.Projection != PlaneProjection && low < -180 && s.High[j] <= 0 {
			low += 360
		}
		for i := range axis {
			axis[i] = low + (float64(i)+0.5)*(s.High[j]-s.Low[j])/float64(size)
		}
		values = append(values, axis)
	}
	return values, s.gridPoints(values, int(total)), nil
}

// gridPoints returns the points of a grid with the given values of the coordinates.
func (s *Space) gridPoints(values [][]float64, total int) *Dataset {
	row := make([]float64, len(values))
	data := make([]float64, 0, total*s.dim())
	for k := range total {
		for j, axis := range values {
			row[j], k = axis[k%len(axis)], k/len(axis)
		}
		data = s.appendFeatures(data, row)
	}
	return &Dataset{Name: "grid", Source: "grid", X: points.NewDense(total, s.dim(), data), Columns: s.featureNames(),
		Space: s}
}

// isShared reports whether all points have the same coordinate j, up to rounding.
func (s *Space) isShared(j int) bool {
	lon, lat, _ := s.lonLatColumns()
	rounding := 1e-14 * max(math.Abs(s.Low[j]), math.Abs(s.High[j])) // at least 45 units in the last place
	if s.Projection != PlaneProjection && (j == lon || j == lat) {
		rounding = 1e-12 // degrees, also of longitudes that were shifted by 360
	}
	return !(s.High[j]-s.Low[j] > rounding)
}

// Aspect returns the width of a map of the first two coordinates divided by its height, as distances: a degree of
// longitude is shorter than one of latitude. It is 1 for one coordinate, and if the box is flat.
func (s *Space) Aspect() float64 {
	if len(s.Columns) == 1 {
		return 1
	}
	width, height := s.High[0]-s.Low[0], s.High[1]-s.Low[1]
	if lon, lat, _ := s.lonLatColumns(); s.Projection != PlaneProjection && lon == 0 && lat == 1 {
		width *= math.Cos((s.Low[lat] + s.High[lat]) / 2 * math.Pi / 180)
	}
	if !(width > 0 && height > 0) {
		return 1
	}
	return width / height
}

// defaultSizes returns the default numbers of cells of Grid.
func (s *Space) defaultSizes() []int {
	switch len(s.Columns) {
	case 1:
		return []int{500}
	case 2:
		if s.isShared(0) || s.isShared(1) { // a line
			return []int{500, 500}
		}
		const longerSide = 200.0
		aspect := s.Aspect()
		return []int{max(10, int(math.Round(longerSide*min(1, aspect)))), max(10, int(math.Round(longerSide*min(1,
			1/aspect))))}
	}
	return []int{40, 40, 40}
}

// Set appends columns from a list of names or numbers, separated by commas and quoted as in a csv file.
func (s *Space) Set(text string) error {
	columns, err := csv.NewReader(strings.NewReader(text)).Read()
	errColumns := fmt.Errorf("want the names or numbers of 1 to %d different columns, such as lon,lat", maxCoordinates)
	if err != nil {
		return errColumns
	}
	*s = Space{Columns: slices.Concat(s.Columns, columns)}
	for j, name := range s.Columns {
		s.Columns[j] = strings.TrimSpace(name)
		if s.Columns[j] == "" || slices.Contains(s.Columns[:j], s.Columns[j]) || j >= maxCoordinates {
			return errColumns
		}
	}
	if lon, lat, ok := s.lonLatColumns(); ok && lat < lon { // maps have the first coordinate as x-axis
		s.Columns[lon], s.Columns[lat] = s.Columns[lat], s.Columns[lon]
	}
	return nil
}

// Type describes the values of Set.
func (Space) Type() string { return "columns" }

// String returns the columns, separated by commas.
func (s *Space) String() string {
	if s == nil {
		return ""
	}
	return safe.Line(joinNames(s.Columns))
}
