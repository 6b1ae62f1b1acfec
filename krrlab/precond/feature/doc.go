// Package feature holds distributions over random feature maps φ: R^d → R^s with
//
//	E[φ(x)ᵀφ(z)] = k(x, z),
//
// so that Z, n×s with rows φ(x_i)ᵀ, gives ZZᵀ ≈ K (Avron, Clarkson and Woodruff,
// section 2.2). A Dist is a distribution, a Map is one draw: immutable, safe for
// concurrent use, a pure function of (Dist, d, s, stream).
//
//	dist, err := feature.For(kernel.Gaussian{Sigma: 8.5})
//	m, err := dist.Sample(784, 6000, rng.New(seed).Sub("features"))
//	z, err := feature.Matrix(ctx, m, x, nil)
//
// # Which map
//
// For returns the paper's pairing:
//
//	kernel                        map            one point x costs    rows of σW
//	Gaussian                      Fourier        2s·nnz(x)            normal N(0, I)
//	Matern32, Matern52            Fourier        2s·nnz(x)            Student t with 3 and 5 degrees of freedom
//	Laplacian                     Fourier        2s·nnz(x)            independent Cauchy
//	user-defined kernel.Mixture   Fourier        2s·nnz(x)            s·N(0, I), s by Spread
//	user-defined kernel.Spectral  Fourier        2s·nnz(x)            by Frequency
//	Polynomial                    TensorSketch   q(nnz(x) + s·log s)
//
// Chain puts sketches behind any of them: Algorithm 2 of the paper. It gives a Z as narrow as
// asked for that is nearly as good as a much wider one where s_λ is small against s₁; see
// package sketch for which sketch.
//
// The error |φ(x)ᵀφ(z) − k(x, z)| falls as 1/√s only. A map that is to precondition
// need not be that good; see package precond.
//
// # Prefixes
//
// Frequency j and phase j of a Fourier map depend on (stream, j) alone: the first s features of a map with 2s are those
// of the map with s, times √½. A TensorSketch has no such property: wider ones are made by stacking independent ones.
//
// # Precision
//
// W is kept once, in float32: its numbers are rounded when they are drawn, so that
// all paths see the same W. MapTo computes in float64. Matrix, and MapTo32
// below it, form the phases Wx+b by float32 products where
// ‖w_j‖·‖x_i‖ ≤ 1024, and in float64 where not: a float32 product has an error of about
// 2⁻²⁴·‖w_j‖·‖x_i‖, so that the rule bounds the error of a phase by some 1e-4 (1e-6 for
// MNIST at σ = 8.5) and that of a feature by √(2/s) times as much. It matters for
// the heavy tails of Cauchy and Student t frequencies. TensorSketch is computed in
// float64 and rounded once.
//
// # References
//
// A. Rahimi and B. Recht, Random features for large-scale kernel machines, NIPS
// 2007. N. Pham and R. Pagh, Fast
// and scalable polynomial kernels via explicit feature maps, KDD 2013,
// doi:10.1145/2487575.2487591. H. Avron, H. L. Nguyễn, D. P. Woodruff, Subspace
// embeddings for the polynomial kernel, NIPS 2014. C. E. Rasmussen and C. K. I.
// Williams, Gaussian Processes for Machine Learning, MIT Press 2006, section 4.2.
package feature
