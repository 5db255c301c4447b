#!/bin/sh
# Compiles a list of models: models.sh BLUC FOLDER-OF-MODELS LIST OUT JOBS ARCH [PTXAS]
set -eu
bluc=$1 from=$2 list=$3 out=$4 jobs=$5 arch=$6 assemble=${7:+--ptxas $7}
export bluc from out arch assemble
xargs -P "$jobs" -L 1 sh -c 'name=$0 model=$1; shift; "$bluc" compile "$from/$model.blu" --target cuda --arch "$arch" $assemble "$@" -o "$out/$name.blx"' <"$list"
