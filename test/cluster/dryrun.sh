#!/bin/sh
# The whole job of several ranks: what they exchange, data parallelism with and without ZeRO-1, context parallelism, checkpoints beside
# the steps, going on with another number of ranks, and the end of one of them. Small and on CPUs as it stands; on GPUs
#
#   test/cluster/dryrun.sh --target cuda --arch sm_90a --ranks 1,2,4,8 --precisions fp32,tf32,bf16 --model 124m
#
# The raw numbers are JSON lines in --out (build/cluster); a table of them is printed last. Where Go isn't installed, bin/ must have been built.
set -eu
cd "$(dirname "$0")/../.."
if command -v go > /dev/null; then
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/... ./test/cluster/job
fi
exec bin/job --bin bin "$@"
