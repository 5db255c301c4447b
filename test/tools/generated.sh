#!/bin/sh
# Fails if generating the generated files changes the work tree.
set -eu

state() {
	git diff HEAD
	git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum
}
before=$(state)
"${GO:-go}" generate ./...
if [ "$before" != "$(state)" ]; then
	git status --short
	echo "generated: files were stale; 'make generate' has renewed them: commit them" >&2
	exit 1
fi
