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
	w := make([]float64, len(d.Class))
	for i, c := range d.Class {
		w[i] = d.ClassWeights[c] * d.Weight(i)
	}
	return w
}

// BalanceClasses returns d with ClassWeights n/(k·n_c), where k is the number of classes that have points and n_c the
// number of points of class c, so that all classes contribute equally to a fit. It returns an error for regression.
func (d *Dataset) BalanceClasses() (*Dataset, error) {
	if d.Class == nil {
		return nil, fmt.Errorf("%s: class weights need classes, and the answers are numbers", d.Name)
	}
	out, classes := *d, 0
	rows := d.rowsOfClasses()
	for _, n := range rows {
		classes += min(n, 1)
	}
	out.ClassWeights, out.balanced = make([]float64, len(rows)), true
	for c, n := range rows {
		if n > 0 {
			out.ClassWeights[c] = float64(len(d.Class)) / float64(classes*n)
		}
	}
	return &out, nil
}

// LabelWeight is the weight of the rows with a label.
type LabelWeight struct {
	Label  string
	Weight float64
}

// ParseClassWeights returns the weights of labels in a text such as "yes=10,no=0.5"; none for "", "none" and
// "balanced". It returns an error if a weight is not a positive number or a label occurs twice.
func ParseClassWeights(text string) (weights []LabelWeight, err error) {
	if text == "" || text == "none" || text == "balanced" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		k := strings.LastIndex(word, "=")
		w, err := strconv.ParseFloat(word[k+1:], 64)
		if k < 0 || err != nil || !(w > 0 && isFinite(w)) {
			return nil, fmt.Errorf("class weights %s: want none, balanced, or positive weights, such as yes=10,no=0.5",
				quote(text))
		}
		isLabel := func(l LabelWeight) bool { return l.Label == word[:k] }
		if slices.ContainsFunc(weights, isLabel) {
			return nil, fmt.Errorf("class weights: the label %s has two weights", quote(word[:k]))
		}
		weights = append(weights, LabelWeight{word[:k], w})
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
	count, labels := d.rowsOfClasses(), newWordIndex(d.Labels)
	out.ClassWeights, out.balanced = slices.Repeat([]float64{1}, len(count)), false
	for _, l := range weights {
		c, _ := labels.find(l.Label)
		if c < 0 || count[c] == 0 {
			return nil, fmt.Errorf("class weights: no row has the label %s", quote(l.Label))
		}
		out.ClassWeights[c] = l.Weight
	}
	return out, nil
}
