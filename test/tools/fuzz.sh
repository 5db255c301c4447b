#!/bin/sh
# Runs every fuzz target for the given time: test/tools/fuzz.sh 30s
#
# When the time is over, Go up to 1.26 at times fails a target that found nothing, with "context deadline exceeded" alone
# (golang/go#75804). Only that is tried again; with a failing input, or a second message, it is a failure like any other.
set -eu

mkdir -p build
grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . |
	sed -E 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|' | sort >build/fuzz-targets
test -s build/fuzz-targets

# What follows the line of the failure is only the tool's own error, and what `go test` says of the package.
lateEnd() {
	! grep -q 'Failing input' "$1" &&
		sed -n '/^--- FAIL: /,$p' "$1" | sed 1d | grep -qx '    context deadline exceeded' &&
		! sed -n '/^--- FAIL: /,$p' "$1" | sed 1d | grep -qvE '^(    context deadline exceeded|FAIL|exit status 1|FAIL	.*)$'
}

fuzz() { # package target time
	echo "fuzz: $1 $2"
	for try in 1 2 3; do
		if "${GO:-go}" test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 5x "$1" </dev/null >build/fuzz-log 2>&1; then
			cat build/fuzz-log
			return 0
		fi
		cat build/fuzz-log
		lateEnd build/fuzz-log || return 1
	done
	return 1
}

while read -r package target; do
	fuzz "$package" "$target" "$1"
done <build/fuzz-targets
