#!/bin/sh
# Runs every fuzz target for the given time: test/tools/fuzz.sh 30s
set -eu

mkdir -p build
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . |
	sed -E 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|' | sort >build/fuzz-targets
test -s build/fuzz-targets
while read -r package target; do
	echo "fuzz: $package $target"
	"${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package" </dev/null
done <build/fuzz-targets
