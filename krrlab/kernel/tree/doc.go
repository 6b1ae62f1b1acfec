// Package tree divides points into leaves of nearby points and computes lower bounds of the distances between two
// leaves. A kernel that decreases with the distance can then be bounded from above without evaluating it.
//
// A node is divided along the feature of largest variance. If the widest gap between the quartiles of the feature is at
// least an eighth of its range, such as the gap of a feature with the values 0 and 1, the node is divided there,
// otherwise at the median. Both are computed from at most 512 of the points. The leaves therefore follow the gaps of
// the data, which leaves of equal size would not. Each node has its bounding box and a ball with center m and radius ρ:
//
//	‖x−z‖₂² ≥ max( Σ_c max(0, lo_c−hi′_c, lo′_c−hi_c)², max(0, ‖m−m′‖₂−ρ−ρ′)² ),
//	‖x−z‖₁ ≥ Σ_c max(0, lo_c−hi′_c, lo′_c−hi_c),
//
// rounded down. Source: J. L. Bentley, Comm. ACM 18(9), 1975 (k-d trees); A. G. Gray and A. W. Moore, NIPS 13, 2000
// (pairs of nodes).
package tree
