# SPDX-License-Identifier: Apache-2.0
#
# Everything that CI does is a target here. `make test` needs Go and nothing
# else; `make servers` and `make e2e` need npm.

GO         ?= go
FUZZTIME   ?= 20s
BENCH      ?= .
TESTFLAGS  ?= -timeout 30m
BENCHFLAGS ?=
SOAKFLAGS  ?= -soak 1m
LIVESFLAGS ?= -lives 10m

# Tools are pinned and built into a folder of their version, so that a new
# version is a new file and an old one is never taken for it.
GOFUMPT_VERSION     := v0.12.0
STATICCHECK_VERSION := v0.8.2
GOFUMPT     := bin/tools/$(GOFUMPT_VERSION)/gofumpt
STATICCHECK := bin/tools/$(STATICCHECK_VERSION)/staticcheck

GOFILES = $(shell find . -name node_modules -prune -o -name '*.go' -print)
RIGS    := test/servers test/clients
STAMPS  := $(RIGS:%=%/node_modules/.installed)
PEERS   := test/bench/peers

.PHONY: build test check bench bench-peers microbench e2e soak lives servers fuzz fmt lint vet clean
.DEFAULT_GOAL := build

## build: bin/garra, static and reproducible
build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/garra ./cmd/garra

## test: unit, script and house rule tests
test:
	$(GO) test $(TESTFLAGS) ./...

## check: everything that must hold before a commit
check: lint vet
	$(GO) test -race -shuffle=on -count=1 $(TESTFLAGS) ./...

## lint: formatting and static analysis; the house rules are policy_test.go
lint: $(GOFUMPT) $(STATICCHECK)
	@unformatted="$$($(GOFUMPT) -l $(GOFILES))"; \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags e2e ./test/...

## vet: go vet, as compiled for each system
vet:
	GOOS=linux $(GO) vet ./...
	GOOS=linux $(GO) vet -tags e2e ./test/...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...

## fmt: format all Go files
fmt: $(GOFUMPT)
	$(GOFUMPT) -w $(GOFILES)

## bench: what garra costs, as ratios (docs/performance.md); BENCHFLAGS=-quick
bench:
	$(GO) run ./test/bench $(BENCHFLAGS)

## bench-peers: garra beside other gateways, which npm installs
bench-peers:
	@$(MAKE) --no-print-directory $(PEERS)/node_modules/.installed || echo 'npm could not install the peers'
	$(GO) run ./test/bench -peers $(PEERS) $(BENCHFLAGS)

## microbench: benchmarks of packages; BENCH=pattern chooses
microbench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

## fuzz: every fuzz target for FUZZTIME each
# A target whose time is over while an input runs is sometimes told to have failed,
# with "context deadline exceeded" and no input (go.dev/issue/75804): it runs once more.
fuzz:
	@set -e; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	run() { $(GO) test -run '^$$' -fuzz "^$$2\$$" -fuzztime $(FUZZTIME) $$1 >"$$out" 2>&1; }; \
	for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    run $$package $$target || { cat "$$out"; ! grep -q 'Failing input' "$$out" && \
	      grep -q '^    context deadline exceeded$$' "$$out" && run $$package $$target; } || { cat "$$out"; exit 1; }; \
	    cat "$$out"; \
	  done; \
	done

## e2e: tests against real servers and clients, with the Node.js of the rig
# What measures has nothing beside it.
e2e: build servers
	PATH="$(CURDIR)/test/clients/node_modules/.bin:$$PATH" \
	  $(GO) test -tags e2e -count=1 -timeout 30m $(TESTFLAGS) $$($(GO) list -tags e2e ./test/... | grep -v /chaos$$)
	$(GO) test -tags e2e -count=1 -timeout 30m $(TESTFLAGS) ./test/chaos

## lives: random lives of servers with real processes for ten minutes; LIVESFLAGS="-lives 1h"
lives:
	$(GO) test -count=1 -v -timeout 0 -run "^TestRealLives$$" ./supervisor $(LIVESFLAGS)

## soak: many clients while a server crashes each second; SOAKFLAGS='-soak 1h'
soak: build servers
	PATH="$(CURDIR)/test/clients/node_modules/.bin:$$PATH" $(GO) test -tags e2e -count=1 -v \
	  $(TESTFLAGS) -timeout 0 -run '^TestSoak$$' ./test/e2e -soak-clients 50 $(SOAKFLAGS)

## servers: install the pinned servers and clients, only when a lock changed
servers: $(STAMPS)

test/%/node_modules/.installed: test/%/package-lock.json test/%/package.json test/%/.npmrc
	cd test/$* && npm ci
	@touch $@

$(GOFUMPT):
	GOBIN=$(CURDIR)/$(@D) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)

$(STATICCHECK):
	GOBIN=$(CURDIR)/$(@D) $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)

## clean: remove what was built; installed servers stay
clean:
	rm -rf bin
