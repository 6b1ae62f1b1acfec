// Package tree cuts points into leaves of points that lie together and bounds from below how near the points of two
// leaves come, so that a kernel that decreases with the distance is bounded from above without being evaluated.
//
// A node is cut at the feature of largest variance: at the widest gap between its quartiles where that is an eighth of
// its range or more, as at the gap of a feature of 0 and 1, and else at the median, both of at most 512 of the points.
// So the leaves follow the gaps of the data, which leaves of one size do not. Each node has its bounding box and a
// ball:
//
//	‖x−z‖₂² ≥ max( Σ_c max(0, lo_c−hi′_c, lo′_c−hi_c)², max(0, ‖m−m′‖₂−ρ−ρ′)² ),
//	‖x−z‖₁ ≥ Σ_c max(0, lo_c−hi′_c, lo′_c−hi_c),
//
// rounded down. Source: J. L. Bentley, Comm. ACM 18(9), 1975 (k-d trees); A. G. Gray and A. W. Moore, NIPS 13, 2000
// (pairs of nodes).
package tree
