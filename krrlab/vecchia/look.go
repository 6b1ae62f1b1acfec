package vecchia

import (
	"context"

	"github.com/krrlab/lab/krrlab/gram"
)

// Look chooses k and ω as New does without a factor, and makes no M. Of k nothing is read but the columns that its
// Exact forms.
func Look(ctx context.Context, k *gram.Matrix, o *Options) (neighbors int, damping float64, err error) {
	b := begin(k, nil, o)
	err = b.settle(ctx)
	return b.Inverse.k, b.damping, err
}
