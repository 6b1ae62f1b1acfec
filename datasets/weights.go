package datasets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Weight returns the weight of point i, or 1 if there are no weights.
func (d *Dataset) Weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}

// allWeights returns Weights, or ones.
func (d *Dataset) allWeights() []float64 {
	if d.Weights == nil {
		return slices.Repeat([]float64{1}, d.Len())
	}
	return d.Weights
}

// FitWeights returns the weights of the points in a fit, the products of Weights and ClassWeights; nil stands for ones.
func (d *Dataset) FitWeights() []float64 {
	if d.ClassWeights == nil {
		return d.Weights
	}
	weights := make([]float64, len(d.Class))
	for i, class := range d.Class {
		weights[i] = d.ClassWeights[class] * d.Weight(i)
	}
	return weights
}

// BalanceClasses returns d with ClassWeights n/(k·n_c), where k is the number of classes that have points and n_c the
// number of points of class c, so that all classes contribute equally to a fit. It returns an error for regression.
func (d *Dataset) BalanceClasses() (*Dataset, error) {
	if d.Class == nil {
		return nil, fmt.Errorf("%s: class weights need classes, and the answers are numbers", d.Name)
	}
	out, classCount := *d, 0
	rows := d.rowsOfClasses()
	for _, n := range rows {
		classCount += min(n, 1)
	}
	out.ClassWeights, out.hasBalancedWeights = make([]float64, len(rows)), true
	for class, n := range rows {
		if n > 0 {
			out.ClassWeights[class] = float64(len(d.Class)) / float64(classCount*n)
		}
	}
	return &out, nil
}

// LabelWeight is the weight of the rows with a label.
type LabelWeight struct {
	Label  string
	Weight float64
}

// ParseClassWeights returns the weights of labels in a text such as "yes=10,no=0.5"; nil for "", "none" and "balanced".
// It returns an error if a weight is not a positive number or a label occurs twice.
func ParseClassWeights(text string) (weights []LabelWeight, err error) {
	if text == "" || text == "none" || text == "balanced" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		equals := strings.LastIndex(word, "=")
		weight, err := strconv.ParseFloat(word[equals+1:], 64)
		if equals < 0 || err != nil || !(weight > 0 && isFinite(weight)) {
			return nil, fmt.Errorf("class weights %s: want none, balanced, or positive weights, such as yes=10,no=0.5",
				quote(text))
		}
		isLabel := func(l LabelWeight) bool { return l.Label == word[:equals] }
		if slices.ContainsFunc(weights, isLabel) {
			return nil, fmt.Errorf("class weights: the label %s has two weights", quote(word[:equals]))
		}
		weights = append(weights, LabelWeight{word[:equals], weight})
	}
	return weights, nil
}

// WeighClasses returns d with the ClassWeights that text names: "none", "balanced" for those of BalanceClasses, or the
// weights of some labels (ParseClassWeights); other labels have the weight 1. It returns an error if the text is
// invalid, no row has one of the labels, or the answers are numbers.
func (d *Dataset) WeighClasses(text string) (*Dataset, error) {
	weights, err := ParseClassWeights(text)
	if err != nil || text == "" || text == "none" {
		return d, err
	}
	out, err := d.BalanceClasses()
	if err != nil || text == "balanced" {
		return out, err
	}
	rows, labels := d.rowsOfClasses(), newWordIndex(d.Labels)
	out.ClassWeights, out.hasBalancedWeights = slices.Repeat([]float64{1}, len(rows)), false
	for _, labelWeight := range weights {
		class, _ := labels.find(labelWeight.Label)
		if class < 0 || rows[class] == 0 {
			return nil, fmt.Errorf("class weights: no row has the label %s", quote(labelWeight.Label))
		}
		out.ClassWeights[class] = labelWeight.Weight
	}
	return out, nil
}
