#!/bin/sh
# Runs the tests of the packages that start goroutines under the race detector.
set -eu

packages=$(grep -rlE --include='*.go' '^\s*go (func\(|[A-Za-z_.]+\()|errgroup\.|sync\.WaitGroup' . | xargs -n1 dirname | sort -u)
test -n "$packages"
echo "race:" $packages
# shellcheck disable=SC2086 # a list
CGO_ENABLED=1 "${GO:-go}" test -race -short -count=1 -timeout 15m $packages
