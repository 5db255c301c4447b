#!/bin/sh
# Puts all that a machine with a GPU needs into one folder, build/device: device.sh, and an archive with programs, models,
# tests and Python scripts. Nothing there needs Go or a network. The models are compiled on arrival: a compiler is smaller
# than what it makes of them. That they compile is found out here. Run by `make device-bundle`.
set -eu
cd "$(dirname "$0")/../.."
: "${GO:=go}" "${ARCH:=sm_90a}" "${CURVES_STEPS:=1000}" "${CURVES_BATCH:=4}" "${CURVES_TOKENS:=256}" # the last three are of bench/gpt2/curves.py
out=build/device stage=build/device.stage
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/models" "$stage/bench/cluster" "$out"
export CGO_ENABLED=0 GOOS=linux GOARCH=amd64

doing() {
    echo "device-bundle: $*"
}

doing "building programs"
for program in cmd/bluc cmd/blurun bench/gemm bench/attention bench/elementwise test/cluster/job test/cluster/join test/cluster/exchange; do
    $GO build -trimpath -ldflags="-s -w" -o "$stage/bin/$(basename $program)" "./$program"
done
$GO test -c -trimpath -ldflags="-s -w" -o "$stage/bin/instructions.test" ./test/gpu/instructions
unset GOOS GOARCH # what follows runs here
$GO build -trimpath -o build/ ./cmd/bluc ./cmd/blurun
$GO build -trimpath -o build/batches ./bench/gpt2

# Name, model, settings and flags of each.
for precision in fp32 fp32-strict tf32 bf16; do
    for batch in 16 64; do
        echo "gpt2-$precision-$batch gpt2 --precision $precision --set B=$batch"
    done
    small="gpt2 --precision $precision --set V=256,T=80,L=2,H=2,C=64,B=2,S=80"
    echo "small-gpt2-$precision $small"
    echo "small-gpt2-$precision-stores $small --thread-stores" # for initcheck
    echo "small-llama-$precision llama --precision $precision --set V=256,L=2,H=4,K=2,C=64,F=144,B=2,S=72"
    echo "small-mlp-$precision mlp --precision $precision --set V=13,W=3,E=8,M=24,B=3,S=10"
    echo "small-convnet-$precision convnet --precision $precision --set IN=2,N=12,CLASSES=5,C=3,M=18,B=3"
    echo "small-vit-$precision vit --precision $precision --set N=12,P=4,CLASSES=5,L=1,H=2,C=24,B=2"
done >"$stage/models/list"
# Less memory, for more time. A budget is about the whole plan; a process has 0.5 GiB more in use.
for lean in bf16=5.2 fp32=7.2 tf32=7.0 fp32-strict=7.1; do
    echo "lean/gpt2-${lean%=*}-16 gpt2 --precision ${lean%=*} --set B=16 --memory-budget ${lean#*=}GiB"
done >>"$stage/models/list"
# As much memory as the goals leave: 0.7 of what torch.compile's process uses (bench/RESULTS.md). In fp32 it was no gain (bench/NOTES.md).
for roomy in bf16-16=6.45 bf16-64=23.7; do
    model=${roomy%=*}
    echo "roomy/gpt2-$model gpt2 --precision ${model%-*} --set B=${model#*-} --memory-budget ${roomy#*=}GiB"
done >>"$stage/models/list"
# The rate is half the example's, since steps are so small; warmup a tenth of the run.
for precision in fp32 bf16; do
    echo "gpt2-$precision-curves gpt2 --precision $precision --set B=$CURVES_BATCH,S=$CURVES_TOKENS,LR=3e-4,WARMUP=$((CURVES_STEPS / 10)),STEPS=$CURVES_STEPS"
done >>"$stage/models/list"
# Larger models: the batch that PyTorch is given too, then the largest that fit an H200 by plan (bluc inspect --memory: 138.6 GiB with what kernels work in), and a little less.
llama_1b=V=32000,L=16,H=32,K=8,C=2048,F=8192,S=2048,theta=500000
while read -r name precision batches model settings; do
    for batch in $(echo "$batches" | tr , ' '); do
        echo "larger/$name-$precision-$batch $model --precision $precision --set B=$batch,$settings"
    done
done >"$stage/models/list-larger" <<END
gpt2-355m bf16 16,218,226 gpt2 L=24,H=16,C=1024
gpt2-774m bf16 16,110,115 gpt2 L=36,H=20,C=1280
llama-1b bf16 8,57,60 llama $llama_1b
gpt2-355m fp32 16,128,132 gpt2 L=24,H=16,C=1024
gpt2-774m fp32 16,66,68 gpt2 L=36,H=20,C=1280
END
# Models of other kinds, to be trained beside PyTorch: a Llama of 153 million weights, and the perceptron.
for precision in fp32 fp32-strict tf32 bf16; do
    echo "train/llama-$precision-16 llama --precision $precision --set B=16"
    echo "train/mlp-$precision-8 mlp --precision $precision"
done >"$stage/models/list-train"
cp examples/*.blu bench/device/models.sh "$stage/models/"
mkdir -p "$stage/models/lean" "$stage/models/roomy" "$stage/models/larger" "$stage/models/train"
rm -rf build/device.models
cp -r "$stage/models" build/device.models
{
    cat "$stage/models/list" "$stage/models/list-train"
    grep -E -e '-(8|16) ' "$stage/models/list-larger" # other batches differ little
} >build/device.models/all
doing "compiling $(wc -l <build/device.models/all) models, to see that they do: minutes"
sh bench/device/models.sh build/bluc examples build/device.models/all build/device.models 2 "$ARCH"
rm -r build/device.models

doing "preparing the standard library's text as tokens"
# The standard library's own text, about two million tokens; of other files, what is held out.
find "$($GO env GOROOT)/src/" -name '*.go' -size -60k ! -path '*/testdata/*' | sort >"$stage/files"
awk 'NR % 8 == 0' "$stage/files" | head -n 700 | xargs build/blurun data prepare -o "$stage/models/tokens.bin" --tokenizer gpt2
awk 'NR % 80 == 4' "$stage/files" | head -n 70 | xargs build/blurun data prepare -o "$stage/models/held.bin" --tokenizer gpt2
rm "$stage/files"
build/batches -data "$stage/models/tokens.bin" -o "$stage/models/batches.u16" -seed 7 -batch 16 -tokens 1024 -steps 50
build/batches -data "$stage/models/tokens.bin" -o "$stage/models/curves.u16" -seed 7 -batch "$CURVES_BATCH" -tokens "$CURVES_TOKENS" -steps "$CURVES_STEPS"
build/batches -data "$stage/models/held.bin" -o "$stage/models/held.u16" -eval -batch "$CURVES_BATCH" -tokens "$CURVES_TOKENS" -steps 64
echo "--steps $CURVES_STEPS --batch $CURVES_BATCH --tokens $CURVES_TOKENS --val-batches 64" >"$stage/models/curves"
# Bytes of text, for the small models.
build/blurun data prepare README.md -o "$stage/models/small.bin" --tokenizer byte
build/batches -data "$stage/models/small.bin" -o "$stage/models/small.u16" -seed 7 -vocabulary 256 -batch 8 -tokens 64 -steps 50

cp bench/gpt2/*.py "$stage/bench/"
cp bench/cluster/*.py "$stage/bench/cluster/"
git describe --always --dirty --abbrev=12 >"$stage/commit" 2>/dev/null || echo unknown >"$stage/commit"
echo "$ARCH" >"$stage/arch"
doing "packing"
tar -C "$stage" -czf "$out/bundle.tar.gz" .
cp bench/device/device.sh "$out/device.sh"
rm -rf "$stage"
bytes=$(du -cb "$out"/* | tail -n 1 | cut -f 1)
echo "$out: $((bytes / 1048576)) MiB"
if [ "$bytes" -gt $((60 * 1048576)) ]; then
    echo "device-bundle: more than 60 MiB" >&2
    exit 1
fi
