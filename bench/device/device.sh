#!/bin/bash
# Runs what is measured and tested on a machine with a GPU, and prints a table last:
#
#   bash build/device/device.sh [PART...]
#
# Parts: check instructions verify sanitizer gemm attention elementwise gpt2-start gpt2-time gpt2-time64 gpt2-lean gpt2-roomy gpt2-numbers gpt2-curves
# train-models gpt2-larger, which take one GPU (the last takes all that there are); gpt2 is five of them, without gpt2-roomy: gpt2-start to gpt2-numbers. For
# several GPUs: cluster-exchange cluster-buckets cluster-data cluster-death cluster-scaling cluster-resume cluster-checkpoints cluster-context cluster-dryrun; cluster is
# all of these but the last. Without a part: those for one GPU, in this order. Each has a limit of its own in seconds, given with it if need be
# (gemm=200); DEVICE_LIMIT (570) is that of all together. Logs and raw results go to $OUT, or to device-results; of parts for several GPUs
# into one archive there, $OUT/cluster.tgz. Needs python3 with PyTorch and, for the sanitizer, compute-sanitizer:
# what the parts need and the machine lacks is said at once.
set -u
here=$(cd "$(dirname "$0")" && pwd)
begun=$SECONDS
: "${DEVICE_LIMIT:=570}" "${OUT:=device-results}"
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 1
one="check instructions verify sanitizer gemm attention elementwise gpt2-start gpt2-time gpt2-time64 gpt2-lean gpt2-roomy gpt2-numbers gpt2-curves train-models gpt2-larger"
cluster="cluster-exchange cluster-buckets cluster-data cluster-death cluster-scaling cluster-resume cluster-checkpoints cluster-context" # cheap and important ones first

usage() {
    echo "device.sh: no part $1; there are: $one $cluster cluster-dryrun, and gpt2 and cluster for several of them" >&2
    exit 2
}

[ $# -gt 0 ] || set -- $one

parts_of() { # the parts that a name on the command line stands for
    case $1 in
    gpt2) echo gpt2-start gpt2-time gpt2-time64 gpt2-lean gpt2-numbers ;;
    cluster) echo "$cluster" ;;
    *) echo "$1" ;;
    esac
}

missing() { # ends with what the machine lacks for the parts
    echo "device.sh: $1" >&2
    exit 1
}

seconds() { # ends if what a name has been given isn't a limit
    case $2 in '' | *[!0-9]* | ??????*) echo "device.sh: $1=$2: expected $1=SECONDS, of at most five digits" >&2 && exit 2 ;; esac
}
seconds DEVICE_LIMIT "$DEVICE_LIMIT"

# What can't be run is said before anything is compiled.
needs=0 # GPUs
torch=0 tools=0
for choice in "$@"; do
    [ -n "${choice%%=*}" ] || usage "''"
    case $choice in *=*) seconds "${choice%%=*}" "${choice#*=}" ;; esac
    for part in $(parts_of "${choice%%=*}"); do
        case " $one $cluster cluster-dryrun " in *" $part "*) ;; *) usage "$part" ;; esac
        case $part in check) least=0 ;; cluster-*) least=2 ;; *) least=1 ;; esac
        [ $least -le $needs ] || needs=$least
        case $part in gpt2-lean | gpt2-roomy) ;; gpt2-* | train-models) torch=1 ;; sanitizer) tools=1 ;; esac
    done
done
[ $tools = 0 ] || [ -n "$(command -v compute-sanitizer)" ] || missing "sanitizer needs compute-sanitizer, of the CUDA toolkit; named parts run without it: device.sh check verify, say"
[ $torch = 0 ] || python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' || missing "$* needs python3 with PyTorch"

[ -f "$here/bundle.tar.gz" ] || missing "there is no bundle.tar.gz beside it: make device-bundle puts both into build/device"

# The archive is unpacked, and the models in it are compiled, once for each that there is. Parts for several GPUs compile their own.
root=/tmp/blutrain-device-$(sha256sum "$here/bundle.tar.gz" | cut -c 1-16)
exec 9>"$root.lock" && flock 9 # another of these may run beside this one
if [ ! -f "$root/.unpacked" ]; then
    rm -rf "$root" && mkdir -p "$root" && tar -C "$root" -xzf "$here/bundle.tar.gz" && touch "$root/.unpacked" || exit 1
fi
gpus=${DEVICE_GPUS:-$("$root/bin/blurun" devices 2>/dev/null | grep -c '^cuda')} # DEVICE_GPUS=2: have every part try, whatever is there
[ "$gpus" -ge "$needs" ] || missing "$* needs $needs NVIDIA GPU(s), 'blurun devices' lists $gpus (DEVICE_GPUS=$needs: try all the same)"
# Where NVIDIA's assembler is found, the driver need not assemble the models' kernels, which it does one after the other.
for ptxas in "$(command -v ptxas)" /usr/local/cuda*/bin/ptxas "$(dirname "$(command -v python3)")"/../lib/python3*/site-packages/nvidia/*/bin/ptxas ""; do
    [ -x "$ptxas" ] && break
done
if [ -n "$ptxas" ]; then
    echo "assembler: $ptxas"
elif "$root/bin/blurun" devices 2>&1 | grep -q 'no NVIDIA driver'; then
    echo "assembler: none, since there is neither ptxas nor an NVIDIA driver"
else
    echo "assembler: that of the driver"
fi
uses=0 # models that are for several parts
for choice in "$@"; do
    case ${choice%%=*} in check | cluster* | gpt2-larger | train-models) ;; *) uses=1 ;; esac
done
if [ ! -f "$root/.whole" ] && [ $uses = 1 ]; then
    from=$SECONDS
    sh "$root/models/models.sh" "$root/bin/bluc" "$root/models" "$root/models/list" "$root/models" "$(nproc)" "$(cat "$root/arch")" "$ptxas" && touch "$root/.whole" || exit 1
    echo "models compiled in $((SECONDS - from)) s"
fi
exec 9>&-
cd "$root" || exit 1
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
models=$root/models blurun=$root/bin/blurun work=$root/results-cluster
mkdir -p "$work"
: "${CLUSTER_FLAGS:=}" "${CURVES_FLAGS:=}" # for bench/cluster/bench.py and bench/gpt2/curves.py

small() { # a small model trains for some steps, under what comes first
    local precision=$1 steps=$2
    shift 2
    "$@" "$blurun" train "$models/small-gpt2-$precision.blx" --data "$models/small.bin" --steps "$steps" --json --val-every 0
}

part_check() { # programs start, scripts compile
    local failed=0 f
    for f in "$root"/bench/*.py "$root"/bench/cluster/*.py; do
        python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$f" || failed=1
    done
    python3 "$root/bench/bench.py" --help >/dev/null && python3 "$root/bench/cluster/bench.py" --help >/dev/null || failed=1
    "$blurun" devices || failed=1
    if python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))'; then
        python3 -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda)' || failed=1
    else
        echo "no PyTorch for $(command -v python3)" && failed=1
    fi
    [ -n "$(command -v compute-sanitizer)" ] || { echo "no compute-sanitizer, of the CUDA toolkit, in PATH" && failed=1; }
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
    return $failed
}

part_instructions() {
    "$root/bin/instructions.test" -test.run OnGPU -test.v >"$OUT/instructions-table.log" 2>&1
    local failed=$?
    grep -E 'WRONG|SKIP|^panic|Error:' "$OUT/instructions-table.log" | head -n 20
    grep -c ' ok$' "$OUT/instructions-table.log" | sed 's/$/ instructions as emulated/'
    [ $failed = 0 ] && ! grep -q SKIP "$OUT/instructions-table.log"
}

part_verify() { # every kernel and function of small models, and the same bits twice, and with --debug-memory
    local failed=0 model precision way
    for precision in fp32 fp32-strict tf32 bf16; do
        for model in gpt2 llama mlp convnet vit; do
            if "$blurun" verify "$models/small-$model-$precision.blx" >"$OUT/verify-$model-$precision.log" 2>&1; then
                echo "verify $model $precision: ok"
            else
                echo "verify $model $precision: FAILED: $(tail -n 1 "$OUT/verify-$model-$precision.log")"
                failed=$((failed + 1))
            fi
        done
        for way in once again guarded; do
            rm -rf "/tmp/bits-$way"
            "$blurun" train "$models/small-gpt2-$precision.blx" --data "$models/small.bin" --steps 5 --json --val-every 0 --checkpoint-dir "/tmp/bits-$way" \
                $([ $way != guarded ] || echo --debug-memory) >"$OUT/bits-$way-$precision.log" 2>&1 || echo "train $way $precision: $(tail -n 1 "$OUT/bits-$way-$precision.log")"
        done
        for way in again guarded; do
            if cmp -s /tmp/bits-once/step-00000005/rank-00000.safetensors "/tmp/bits-$way/step-00000005/rank-00000.safetensors"; then
                echo "bits $precision $way: the same"
            else
                echo "bits $precision $way: FAILED"
                failed=$((failed + 1))
            fi
        done
    done
    echo "$failed of 28 comparisons failed"
    [ $failed = 0 ]
}

# initcheck doesn't follow what the copy engine writes to global memory: reads of that are uninitialized to it. So it gets models whose results
# threads store. In the usual ones that nothing is read which nobody wrote is found by the emulator, which follows such stores and runs
# whole steps (test/gpu, TestProgramsInTheEmulator).
part_sanitizer() { # a precision's tools one after the other, the precisions beside each other
    local failed=0 tool precision stores
    for precision in bf16 fp32 tf32 fp32-strict; do
        for tool in memcheck racecheck initcheck synccheck; do
            stores=
            [ $tool != initcheck ] || stores=-stores
            small $precision$stores 2 compute-sanitizer --tool $tool --error-exitcode 9 >"$OUT/sanitizer-$tool-$precision.log" 2>&1
            echo $? >"$OUT/sanitizer-$tool-$precision.status"
        done &
    done
    wait
    for precision in bf16 fp32 tf32 fp32-strict; do
        for tool in memcheck racecheck initcheck synccheck; do
            if [ "$(cat "$OUT/sanitizer-$tool-$precision.status")" = 0 ]; then
                echo "$tool $precision: clean"
            else
                echo "$tool $precision: FAILED: $(grep -E 'ERROR SUMMARY|=========.*(error|hazard|Invalid|Uninit)' "$OUT/sanitizer-$tool-$precision.log" | tail -n 2 | tr '\n' ' ')"
                failed=$((failed + 1))
            fi
        done
    done
    echo "$failed of 16 runs are not clean"
    [ $failed = 0 ]
}

part_gemm() { "$root/bin/gemm" -checks -times -json "$OUT/gemm.json"; }
part_attention() { "$root/bin/attention" -json "$OUT/attention.json"; }
part_elementwise() { "$root/bin/elementwise" -json "$OUT/elementwise.json"; }

gpt2() { # the name of its results, seconds, what the bench is asked
    local name=$1 limit=$2
    shift 2
    python3 "$root/bench/bench.py" --blurun "$blurun" --artifacts "$models" --json "$OUT/gpt2-$name.json" --limit $((limit * 9 / 10 - 15)) "$@"
}
part_gpt2-start() { gpt2 start "$1" --parts start --batches 16; }
part_gpt2-time() { gpt2 time "$1" --parts time --batches 16 --rounds 2; }
part_gpt2-time64() { gpt2 time64 "$1" --parts time --batches 64 --rounds 1; }
# Models that were compiled with less memory, without PyTorch.
part_gpt2-lean() { gpt2 lean "$1" --parts time --batches 16 --rounds 1 --artifacts "$models/lean" --modes ""; }
# Models that were compiled with as much memory as the goals leave, in turn with the usual ones.
part_gpt2-roomy() { gpt2 roomy "$1" --parts time --batches 16,64 --precisions bf16 --rounds 2 --beside roomy --modes ""; }
part_gpt2-numbers() { gpt2 numbers "$1" --parts gradients,train --batches 16; }
part_gpt2-curves() {
    python3 "$root/bench/curves.py" --blurun "$blurun" --artifacts "$models" --json "$OUT/gpt2-curves.json" --plot "$OUT/gpt2-curves.png" --limit $(($1 - 15)) \
        $(cat "$models/curves") $CURVES_FLAGS
}

part_gpt2-larger() {
    compiled larger || return 1
    python3 "$root/bench/larger.py" --blurun "$blurun" --artifacts "$models/larger" --json "$OUT/gpt2-larger.json" --limit $(($1 - 20))
}
part_train-models() { # two models beside each other, since the perceptron's steps are mostly launches
    compiled train || return 1
    local failed=0 other
    beside() { # the model, and what it is trained with
        local model=$1
        shift
        python3 "$root/bench/bench.py" --blurun "$blurun" --artifacts "$models/train" --parts gradients,train --perturbed 2 --limit $((limit - 20)) --model "$model" --json "$OUT/train-$model.json" "$@"
    }
    limit=$1 beside mlp --batches 8 --tokens 64 --vocabulary 256 --data ../small.bin --windows ../small.u16 >"$OUT/train-mlp.log" 2>&1 &
    other=$!
    limit=$1 beside llama --batches 16 --train-steps 30 --data ../tokens.bin --windows ../batches.u16 \
        --size '{"layers": 12, "heads": 12, "groups": 4, "channels": 768, "inner": 2048}' || failed=1
    wait $other || failed=1
    cat "$OUT/train-mlp.log"
    return $failed
}

compiled() { # the models of a part that has a list of its own
    [ -f "$models/$1/.whole" ] && return
    local from=$SECONDS
    sh "$models/models.sh" "$root/bin/bluc" "$models" "$models/list-$1" "$models" "$(nproc)" "$(cat "$root/arch")" "$ptxas" && touch "$models/$1/.whole" || return 1
    echo "models compiled in $((SECONDS - from)) s"
}

cluster() { # the part, seconds
    python3 "$root/bench/cluster/bench.py" --bin "$root/bin" --models "$models" --tokens "$models/tokens.bin" --held "$models/held.bin" --out "$work" --ranks "$gpus" --ptxas "$ptxas" \
        --arch "$(cat "$root/arch")" --limit $(($2 - 8)) $CLUSTER_FLAGS "$1"
}
part_cluster-exchange() { cluster exchange "$1"; }
part_cluster-buckets() { cluster buckets "$1"; }
part_cluster-data() { cluster data "$1"; }
part_cluster-scaling() { cluster scaling "$1"; }
part_cluster-context() { cluster context "$1"; }
part_cluster-checkpoints() { cluster checkpoints "$1"; }
part_cluster-resume() { cluster resume "$1"; }
part_cluster-death() { cluster death "$1"; }
part_cluster-dryrun() { # everything that several ranks do, with small models, each loss beside one rank's
    export NCCL_NVLS_ENABLE=0 BLUTRAIN_NCCL_LIBRARY
    BLUTRAIN_NCCL_LIBRARY=$(cd "$root/bench/cluster" && python3 -c 'import bench; print(bench.nccl() or "")')
    "$root/bin/job" --bin "$root/bin" --target cuda --arch "$(cat "$root/arch")" --ptxas "$ptxas" --model tiny --ranks "1,$gpus" --precisions fp32,bf16 \
        --models "$models" --data "$models/small.bin" --out "$work/dryrun"
}

limit_of() {
    case $1 in
    check) echo 60 ;;
    instructions) echo 90 ;;
    verify) echo 180 ;;
    sanitizer) echo 400 ;;
    gemm) echo 420 ;;
    attention) echo 200 ;;
    elementwise) echo 60 ;;
    gpt2-start) echo 300 ;;
    gpt2-time) echo 300 ;;
    gpt2-time64) echo 320 ;;
    gpt2-lean) echo 60 ;;
    gpt2-roomy) echo 60 ;;
    gpt2-numbers) echo 300 ;;
    gpt2-curves) echo 240 ;;
    train-models) echo 180 ;;
    gpt2-larger) echo 320 ;;
    cluster-exchange) echo 70 ;;
    cluster-buckets) echo 90 ;;
    cluster-data) echo 270 ;;
    cluster-scaling) echo 53 ;;
    cluster-death) echo 40 ;;
    cluster-resume) echo 45 ;;
    cluster-checkpoints) echo 80 ;;
    cluster-context) echo 150 ;;
    cluster-dryrun) echo 240 ;;
    esac
}

table=""
failures=0
for choice in "$@"; do
    name=${choice%%=*}
    for part in $(parts_of "$name"); do
        limit=$(limit_of "$part")
        [ "$choice" = "$name" ] || limit=${choice#*=}
        left=$((DEVICE_LIMIT - (SECONDS - begun)))
        [ "$left" -lt "$limit" ] && limit=$left
        log=$OUT/$part.log shown=25
        case $part in cluster-*) log=$work/$part.log shown=30 ;; esac
        from=$SECONDS
        if [ "$limit" -lt 15 ]; then
            echo "no time left" >"$log"
            status="no time"
        else
            export -f "part_$part" small gpt2 compiled cluster
            export models blurun root OUT gpus ptxas work CLUSTER_FLAGS CURVES_FLAGS
            timeout -k 10 "$limit" bash -c "part_$part $limit" >"$log" 2>&1
            case $? in
            0) status=ok ;;
            124 | 137) status="cut short at $limit s" ;;
            *) status=FAILED ;;
            esac
        fi
        [ "$status" = ok ] || failures=$((failures + 1))
        echo "== $part: $status"
        tail -n "$shown" "$log" | cut -c 1-150
        table+=$(printf '%-20s %5d s  %-20s %s' "$part" $((SECONDS - from)) "$status" "$(tail -n 1 "$log" | cut -c 1-100)")$'\n'
        case $part in cluster-*) tar -C "$work" --exclude '*.blx' --exclude '*.safetensors' -czf "$OUT/cluster.tgz" . ;; esac # after each, since the next may be the last
    done
done
echo
echo "commit $(cat "$root/commit"), $(date -u +%Y-%m-%d), logs in $OUT"
printf '%s' "$table"
[ "$failures" -eq 0 ]
