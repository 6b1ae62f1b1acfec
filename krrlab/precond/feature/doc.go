// Package feature provides distributions over random feature maps φ: R^d → R^s with
//
//	E[φ(x)ᵀφ(z)] = k(x, z).
//
// With the rows φ(x_i)ᵀ, Z, n×s, satisfies ZZᵀ ≈ K (Avron, Clarkson and Woodruff, section 2.2). A Dist is a
// distribution; a Map is a draw from it: immutable, safe for concurrent use, a pure function of (Dist, d, s, stream).
//
//	dist, err := feature.For(kernel.Gaussian{Sigma: 8.5})
//	m, err := dist.Sample(784, 6000, rng.New(seed).Sub("features"))
//	z, err := feature.Matrix(ctx, m, x, nil)
//
// # Which map
//
// For returns the distribution that the paper uses for a kernel:
//
//	kernel                        map            one point x costs    rows of σW
//	Gaussian                      Fourier        2s·nnz(x)            normal N(0, I)
//	Matern32, Matern52            Fourier        2s·nnz(x)            Student t with 3 and 5 degrees of freedom
//	Laplacian                     Fourier        2s·nnz(x)            independent Cauchy
//	user-defined kernel.Mixture   Fourier        2s·nnz(x)            s·N(0, I), s by Spread
//	user-defined kernel.Spectral  Fourier        2s·nnz(x)            by Frequency
//	Polynomial                    TensorSketch   q(nnz(x) + s·log s)
//
// Chain applies sketches after any of these maps: Algorithm 2 of the paper. If s_λ is small relative to s₁, the
// resulting narrow Z is nearly as good as a much wider Z. For the choice of the sketches see package sketch.
//
// The error |φ(x)ᵀφ(z) − k(x, z)| decreases as 1/√s only. A preconditioner does not require a small error; see package
// precond.
//
// # Prefixes
//
// Frequency j and phase j of a Fourier map depend on (stream, j) only. The first s features of a map with 2s features
// are therefore the features of the map with s, times √½. A TensorSketch has no such property: wider maps are obtained
// by stacking independent ones.
//
// # Precision
//
// W is stored once, in float32. Its entries are rounded when they are drawn, so all code uses the same W. MapTo
// computes in float64. MapTo32, which Matrix uses, computes the phases Wx+b by float32 products if ‖w_j‖·‖x_i‖ ≤ 1024,
// and in float64 otherwise. A float32 product has an error of about 2⁻²⁴·‖w_j‖·‖x_i‖. The rule therefore bounds the
// error of a phase by about 1e-4 (1e-6 for MNIST at σ = 8.5), and the error of a feature by √(2/s) times as much. It
// matters for the heavy tails of Cauchy and Student t frequencies. TensorSketch computes in float64 and rounds once.
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
