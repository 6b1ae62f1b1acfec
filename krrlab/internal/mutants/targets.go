package mutants

// All are the core packages: what an answer or a certificate comes from, and what guards
// the files and sockets that come from outside.
var All = []Target{
	{Package: "krrlab/rng", Share: 6},
	{Package: "krrlab/points", Share: 8},
	{Package: "krrlab/estimate", Share: 4},
	{Package: "krrlab/comm", Files: []string{"fixed.go", "agree.go", "alone.go", "local.go"}, Dependants: []string{"krrlab/gram"}, Share: 8},
	{Package: "krrlab/kernel", Dependants: []string{"krrlab/gram"}, Share: 16},
	{Package: "krrlab/sketch", Share: 12},
	{Package: "datasets", Files: []string{"answers.go", "csv.go", "coding.go", "header.go", "libsvm.go", "idx.go", "separator.go", "scaling.go"}, Share: 16},
	{Package: "krrlab/internal/checkpoint", Share: 6},
	{Package: "krrlab/feature", Share: 16},
	{Package: "krrlab/gram", Share: 28},
	{Package: "krrlab/precond", Share: 24},
	{Package: "krrlab/pcg", Share: 28},
	{Package: "krrlab/lowrank", Share: 14},
	{Package: "krrlab/lanczos", Share: 14},
	{Package: "krrlab/adapt", Dependants: []string{"theory"}, Share: 14},
	{Package: "krrlab/statdim", Share: 18},
	{Package: "krrlab/tune", Share: 10},
	{Package: "krrlab/model", Share: 14},
	{Package: "krrlab/verify", Share: 12},
	{Package: "krrlab/notebook/jupyter", Dependants: []string{"krrlab/notebook"}, Share: 8},
	{Package: "krrlab", Files: []string{"checkpoint.go", "fingerprint.go", "distance.go", "quality.go", "report.go", "solve.go", "steps.go", "verify.go"}, Share: 24},
}
