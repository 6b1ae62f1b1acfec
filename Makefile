# krrlab: two commands do everything.
#
#   make demo    install what is useful, build, solve the built-in problems (and MNIST if it is found)
#   make test    install what the tests can use, vet, build, test
#
# Nothing that is installed is needed: without it everything works, slower, or a
# test says why it was skipped.

GO  ?= go
BIN := bin/krrlab
# The version: the tag, and beyond it the commit; devel-COMMIT where there is no tag.
VERSION := $(shell git describe --tags --match 'v[0-9]*' --dirty --abbrev=12 2>/dev/null || \
  git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null | sed s/^/devel-/)
OUT ?= out

.PHONY: all build program demo figures pictures lab gophernotes test test-long test-machines mutants kills test-ui fuzz bench bench-peers bench-plan release release-check clean help

all: build

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -7
	@echo "  make build      bin/krrlab"
	@echo "  make figures    tables and figures of the results kept in experiments/results, and the table of docs/results.md"
	@echo "  make pictures   every picture that docs and theory keep (KRRLAB_DATA; docs/pictures.txt)"
	@echo "  make lab        install the Jupyter kernel, and Jupyter, and open notebooks/"
	@echo "  make gophernotes  bin/gophernotes: the upstream kernel with the same packages"
	@echo "  make test-long  the tests on real data too (KRRLAB_DATA), and the long statistical ones"
	@echo "  make test-machines  the tests on every instruction set, BLAS, number of threads, and arm64 (ROW=avx2: one of them)"
	@echo "  make mutants    core packages broken in many small ways: does a test notice? (PACKAGES=krrlab/kernel/gram)"
	@echo "  make kills      runs killed at random times and resumed (N=200)"
	@echo "  make test-ui    the Notebook UI in a real browser; screenshots in $(OUT)"
	@echo "  make fuzz       every fuzz target for FUZZTIME (10s)"
	@echo "  make bench        the inner loops against their floors (BENCH=MulTo, REPEAT=5)"
	@echo "  make bench-peers  against NumPy and scikit-learn on MNIST (KRRLAB_DATA; N=20000, REPEAT=1)"
	@echo "  make bench-plan   auto against the best of its candidates (KRRLAB_DATA; PLAN='mnist:5000 curve:8000'; PLAN=refit: fit its rule)"
	@echo "  make release      archives, .deb, SBOMs and checksums of the commit in $(OUT)/release (TARGETS=linux/amd64: one system)"
	@echo "  make release-check  two clean clones at two paths give the same bytes (TARGETS)"

# What Shift-Tab shows in a notebook, embedded in the program; git ignores it. Without it the program asks the go command.
DOCS := krrlab/notebook/bindings/docs/docs.json.gz
$(DOCS): $(wildcard $(shell git ls-files '*.go' go.mod 2>/dev/null))
	@CGO_ENABLED=0 $(GO) test -trimpath -count=1 -run '^TestDocs$$' ./krrlab/notebook/bindgen -update >/dev/null || \
	  echo "the comments of packages could not be collected; notebooks ask the go command for them"

build: $(DOCS) program

program:
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.tag=$(VERSION)" -o $(BIN) ./krrlab/cmd/krrlab

demo:
	@.ci/install libopenblas0
	@$(MAKE) --no-print-directory program
	@$(BIN) demo --dir $(OUT)

# The paper's tables and figures of the results kept, and the table of docs/results.md; no data needed.
figures: build
	@$(BIN) reproduce all --from experiments/results --page docs/results.md

# The pictures of docs/pictures.txt, of theory and of notebook 10; ONLY=compare: those whose name has this.
pictures: build
	@.ci/install libopenblas0
	@.ci/pictures $(BIN) $(ONLY)

# Debian's Jupyter and its Python; the kernel is installed for the user, and the notebooks are signed
# as trusted, so that they open with their pictures as they are kept.
lab:
	@.ci/install libopenblas0 jupyter-notebook fonts-liberation
	@$(MAKE) --no-print-directory build
	@$(BIN) notebook install --user
	@$(PYTHON) -m nbformat.sign notebooks/*.ipynb >/dev/null
	@$(PYTHON) -m notebook --notebook-dir notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(LABFLAGS)

# The kernel gophernotes as released, with the same packages linked in.
gophernotes:
	@mkdir -p bin
	GO=$(GO) .ci/gophernotes bin/gophernotes

# One build mode for all that the tests build, vet's findings among their failures. The packages that take longest come
# first, so that none is left alone at the end.
test: export CGO_ENABLED = 0
test: export GOFLAGS += -trimpath
test:
	@.ci/install python3-nbclient python3-nbconvert jupyter-client libopenblas0 python3-numpy python3-sklearn python3-pandas iproute2 util-linux
	$(GO) test -vet=all -ldflags=-s -timeout 30m ./krrlab/cmd/krrlab ./krrlab/notebook/golang ./notebooks ./krrlab ./...

test-long: export GOFLAGS += -trimpath
test-long:
	@.ci/install python3-nbclient python3-nbconvert jupyter-client libopenblas0 python3-numpy python3-sklearn python3-pandas python3-pip python3-venv openmpi-bin libopenmpi3 mpich libmpich12 iproute2 util-linux
	KRRLAB_LONG=1 $(GO) test -timeout 120m ./...

# The tests on every arithmetic this machine has: a table of what ran and what could not. Rows that
# passed are kept until the sources change; AGAIN=1 runs them again. `.ci/machines list` names them.
test-machines:
	@.ci/install libopenblas0 qemu-user gcc libc6-dev openmpi-bin libopenmpi3 mpich libmpich12 iproute2 util-linux
	@GO=$(GO) OUT=$(OUT) .ci/machines $(or $(ROW),all)

# Mutants of packages that answers and certificates come from: nine of ten of those that their own tests reach are to be killed.
MUTATED := base/rng kernel/points kernel/tree base/schema krylov/estimate kernel precond/sketch precond/feature kernel/gram precond krylov/pcg precond/lowrank krylov/lanczos stage/sketchsize stage/statdim stage/lambdap stage/quality stage/solve model krylov/bound stage/verify krylov/direct model/leaveout model/interval stage/tune stage/plan krylov/pencil stage/compare precond/vecchia precond/process stage
mutants:
	@failed=; for p in $(or $(PACKAGES),$(addprefix krrlab/,$(MUTATED))); do \
	  $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --output-statuses l --threshold-efficacy 89.99 ./$$p || failed="$$failed $$p"; \
	done; [ -z "$$failed" ] || { echo "mutants live in:$$failed"; exit 1; }

# Runs killed at random and resumed, until N kills are made: the coefficients of an unbroken run.
kills:
	@.ci/install openmpi-bin libopenmpi3 mpich libmpich12
	KRRLAB_LONG=suite KRRLAB_KILLS=$(or $(N),200) $(GO) test -count 1 -timeout 120m -v -run TestKills ./krrlab/cmd/krrlab

# The Notebook UI in a real browser; says so and does nothing where that cannot be had.
test-ui:
	@.ci/install libopenblas0 jupyter-notebook fonts-liberation chromium
	@command -v npm >/dev/null || .ci/install nodejs npm
	@$(MAKE) --no-print-directory build
	@PYTHON=$(PYTHON) .ci/test-ui $(BIN) $(OUT)

FUZZTIME ?= 10s
fuzz:
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p || exit 1; \
	  done; \
	done

# The inner loops; the metric x-floor is the time over the least the machine could take (docs/benchmarks.md).
LOOPS := ./krrlab/accel/simd ./krrlab/kernel/gram ./krrlab/precond/feature ./krrlab/precond ./krrlab/krylov/pcg ./krrlab/krylov/direct
bench:
	@.ci/install libopenblas0
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -count $(or $(REPEAT),1) -timeout 60m $(LOOPS)

# The interpreter that Debian's python3-numpy and python3-sklearn are for.
PYTHON ?= /usr/bin/python3
bench-peers:
	@.ci/install libopenblas0 python3-numpy python3-sklearn
	@$(MAKE) --no-print-directory build
	@$(PYTHON) experiments/peers/bench_peers.py --krrlab $(BIN) --dir $(OUT) $(if $(N),--n $(N)) $(if $(REPEAT),--repeat $(REPEAT))

# auto beside the best of the candidates, on sixteen problems or those that PLAN names.
bench-plan:
	@.ci/install libopenblas0
	@KRRLAB_PLAN="$(or $(PLAN),all)" $(GO) test -count 1 -timeout 90m -v -run 'TestAuto|TestRefit' ./experiments/testbed

# The systems of a release; packaging/README.md says on which it was tried.
TARGETS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
release:
	@.ci/install jq zip xz-utils python3
	@GO=$(GO) packaging/release $(OUT)/release '$(VERSION)' $(TARGETS)

# The second clone has a path and a build cache of its own.
release-check:
	@d=$$(mktemp -d) && t=$$d/another/place && git clone -q . $$d/one && git clone -q . $$t && \
	  $(MAKE) --no-print-directory -C $$d/one release OUT=out TARGETS='$(TARGETS)' && \
	  GOCACHE=$$d/cache $(MAKE) --no-print-directory -C $$t release OUT=out TARGETS='$(TARGETS)' && \
	  cat $$d/one/out/release/SHA256SUMS && cmp $$d/one/out/release/SHA256SUMS $$t/out/release/SHA256SUMS && \
	  echo "the same bytes from two clones" && rm -rf $$d

clean:
	rm -rf bin $(OUT) $(DOCS)
