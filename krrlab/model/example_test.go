package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// This model is made by hand. It is f(x) = 2k(0, x) − k(3, x) with a Gaussian kernel.
func ExampleModel_Decision() {
	m := &model.Model{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1,
		X: points.NewDense(2, 1, []float64{0, 3}), C: mat.NewDense(2, 1, []float64{2, -1}),
	}
	f, err := m.Decision(context.Background(), points.NewDense(2, 1, []float64{0, 3}), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", mat.Formatted(f))
	// Output:
	// ⎡ 1.9889⎤
	// ⎣-0.9778⎦
}

// A server reads rows in the way the fit read them. Columns are found by their names, other columns are ignored, and
// answers may be missing.
func ExampleModel_ReadOptions() {
	m := &model.Model{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Labels: []string{"cold", "warm"}, Columns: []string{"a", "b"},
		X: points.NewDense(2, 2, []float64{0, 0, 30, 30}), C: mat.NewDense(2, 1, []float64{-1, 1}),
		Origin: model.Origin{Target: "weather", Drop: []string{"id"}},
	}
	o := m.ReadOptions(datasets.ReadOptions{})
	for _, body := range []string{"b,id,a\n30,17,30\n0,18,0\n", "a,b,weather,id\n30,30,warm,19\n"} {
		rows, err := datasets.Read(strings.NewReader(body), "request", &o)
		if err != nil {
			log.Fatal(err)
		}
		p, err := m.Predict(context.Background(), rows, nil)
		if err != nil {
			log.Fatal(err)
		}
		text, err := json.Marshal(p)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"decision":[[1],[-1]],"label":["warm","cold"],"labels":["cold","warm"]} <nil>
	// {"decision":[[1]],"label":["warm"],"labels":["cold","warm"]} <nil>
}
