package datasets_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/krrlab/lab/datasets"
)

// By default the last column of a CSV file with a header is the target.
func ExampleRead() {
	file := "area,rooms,price\n50,2,100\n80,3,170\n120,4,260\n"
	d, err := datasets.Read(strings.NewReader(file), "flats.csv", &datasets.ReadOptions{Task: "regression"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Len(), d.Dim(), d.Columns, d.Target)
	// Output: 3 2 [area rooms] [100 170 260]
}
