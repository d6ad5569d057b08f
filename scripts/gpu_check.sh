#!/usr/bin/env bash
# scripts/gpu_check.sh [-p PART...] BUILD [OUT]: everything that needs a GPU: the tests, the figures of
# docs/performance.md, the sanitizers; -p takes only some of `tests`, `figures`, `sanitizers`. BUILD is a folder of
# `cmake --preset cuda` or release. Logs go to OUT. Exit status 1: a test or a sanitizer failed.
set -u
parts=
while getopts p: option; do
  case $option:$OPTARG in
    p:tests | p:figures | p:sanitizers) parts+=" $OPTARG" ;;
    *) echo "-p: found '$OPTARG', allowed tests, figures, sanitizers" >&2 && exit 2 ;;
  esac
done
shift $((OPTIND - 1))
build=$(readlink -f "${1:-build/cuda}")
out=$(readlink -f -m "${2:-gpu_check}")
mkdir -p "$out"
kernels=$build/src/kernels/kernels_test engine=$build/src/engine/engine_test golden=$build/tests/golden_test
wanted() { [[ -z $parts || " $parts " == *" $1 "* ]]; }
"$build/vitrine" devices

failed=0

# shards N NAME COMMAND...: the tests of a program in N processes.
shards() {
  local n=$1 name=$2 i
  shift 2
  for ((i = 0; i < n; i++)); do
    GTEST_TOTAL_SHARDS=$n GTEST_SHARD_INDEX=$i timeout 300 "$@" --gtest_brief=1 >"$out/$name.$i" 2>&1 &
  done
}

# The tests: with the models on the GPU, and all others on the CPU of the machine.
tests() {
  local name passed all
  shards 9 kernels "$kernels"
  shards 4 golden "$golden"
  shards 4 engine "$engine"
  VITRINE_TEST_BACKEND=cuda shards 4 engine_cuda "$engine"
  wait
  for name in kernels golden engine engine_cuda; do
    all=$(ls "$out/$name".* | wc -l) passed=$(grep -l 'PASSED' "$out/$name".* | xargs -r grep -L 'FAILED' | wc -l)
    echo "$name: $passed of $all parts pass, $(sed -n 's/.*PASSED  \] \([0-9]*\) .*/\1/p' "$out/$name".* | awk '{ n += $1 } END { print n + 0 }') tests"
    [ "$passed" = "$all" ] || failed=1
    grep -hE 'FAILED  \]|fatal|check failed' "$out/$name".* | sort | uniq -c
  done
}

bench() {
  echo "== $*"
  timeout 120 "$build/vitrine" bench --backend cuda "$@" 2>&1 | tee -a "$out/bench" | grep -E '^prefill|^decode|a decode|^speculation|^off|^a seq|error|fatal'
}
figures() {
  local model
  for model in llama-1b:bf16 llama-1b:q8_0 llama-1b:q4_k_m llama-8b:bf16 llama-8b:q8_0 llama-8b:q4_k_m; do
    bench --random $model -p 32 -n 128
  done
  bench --random llama-8b:bf16 -p 2048 -n 16 --step-tokens 2048
  bench --random llama-8b:bf16 -p 128 -n 64 --step-tokens 2048 --sequences 64 -r 1
  bench --random llama-8b:bf16 -p 128 -n 256 --spec-acceptance 0.8 --spec-tokens 4
  bench --random llama-8b:bf16 -p 128 -n 256 --spec-acceptance 0.05 --spec-tokens 4
  bench --random llama-1b:bf16 -p 24576 -n 16 --step-tokens 4096 -r 1
  bench --random llama-1b:bf16 -p 32 -n 64 -r 1 --deterministic
}

# sanitize TOOL PROGRAM FILTER [OPTION...]
sanitize() {
  local tool=$1 program=$2 filter=$3 log=$out/sanitizer.$1
  shift 3
  timeout 500 compute-sanitizer --tool "$tool" "$@" "$program" --gtest_brief=1 --gtest_filter="$filter" >"$log" 2>&1
  echo "$tool: $(grep -E 'PASSED|FAILED' "$log" | head -1) $(grep 'SUMMARY' "$log" || echo 'not finished')"
}
sanitizers() {
  local tool
  command -v compute-sanitizer >/dev/null || { echo 'no compute-sanitizer' && return; }
  for tool in memcheck racecheck initcheck; do
    sanitize $tool "$golden" 'All/QuantizedModel.IsTheSameOnCuda/*:All/GoldenModel.Cuda/qwen3' &
  done
  # Its tables are as large as the barriers are many: a few layers instead of models.
  sanitize synccheck "$kernels" '*Repeat*' --num-cuda-barriers 4096 &
  wait
  for tool in memcheck racecheck initcheck synccheck; do
    grep -qE 'SUMMARY: 0 (errors|hazards)' "$out/sanitizer.$tool" || failed=1
  done
}

for part in tests figures sanitizers; do
  ! wanted $part || $part
done
exit $failed
