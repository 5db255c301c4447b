#!/bin/sh
# Fails if there are functions that no program and no test reaches.
set -eu

dead=$("${GO:-go}" run golang.org/x/tools/cmd/deadcode -test ./...)
if [ -n "$dead" ]; then
	echo "$dead"
	echo "deadcode: remove these functions, or test them if they are for users of a package" >&2
	exit 1
fi
