# `make help` lists what can be made. make, make test and make demo need Go, git and a network for modules, nothing else.

GO ?= go
FUZZTIME ?= 30s
export CGO_ENABLED := 0
export GO

.NOTPARALLEL:
.PHONY: build test check vet tidy generated deadcode race fuzz alltests demo bench device-bundle generate clean help

build: ## compile bin/bluc and bin/blurun (the default)
	$(GO) build -trimpath -o bin/ ./cmd/...

# Tests run programs built from files that Go's test cache doesn't watch, so every result is made anew.
test: vet ## what to run before a commit: 10 minutes at most on 2 cores; tests whose tools aren't installed are skipped
	$(GO) test -short -count=1 -timeout 10m ./...

check: build vet tidy generated deadcode race ## all there is: what CI runs, 45 minutes at most on 2 cores; needs the tools that .ci/run installs (Debian packages; ptxas and others from PyPI, .ci/requirements.txt)
	$(MAKE) fuzz FUZZTIME=15s
	$(MAKE) alltests

alltests: ## every test at full length, the comparisons with tools of other projects included
	BLUTRAIN_REQUIRE_TOOLS=1 $(GO) test -count=1 -timeout 30m ./...

vet: ## go vet
	$(GO) vet ./...

tidy: ## fail if go.mod or go.sum would change
	$(GO) mod tidy -diff

generated: ## fail if generated files are stale
	test/tools/generated.sh

deadcode: ## fail if there is code that no program and no test reaches
	test/tools/deadcode.sh

race: ## the tests of packages with goroutines under the race detector, which needs a C compiler
	test/tools/race.sh

fuzz: ## run every fuzz target for FUZZTIME (30s)
	test/tools/fuzz.sh $(FUZZTIME)

demo: build ## train a small model and show what comes out
	@test -f examples/demo/main.go || { echo "make demo: examples/demo/main.go does not exist" >&2; exit 1; }
	$(GO) run -trimpath ./examples/demo

bench: ## the benchmarks that need nothing but Go; bench/ has those with baselines
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

device-bundle: ## build/device: all that a machine with a GPU needs to measure and test what is compiled for it
	bench/device/bundle.sh

generate: ## write the generated files anew
	$(GO) generate ./...
	BLUTRAIN_UPDATE=1 $(GO) test -count=1 -run '^TestReferenceIsCurrent$$' ./frontend/... ./cmd/...

clean: ## remove what was built
	rm -rf bin build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
