#!/usr/bin/env bash
# scripts/gpu_check.sh BUILD [OUT]: everything that needs a GPU, in one go: the tests, the figures of
# docs/performance.md, the sanitizers. BUILD is a folder of `cmake --preset cuda` or release. Logs go to OUT.
set -u
build=$(readlink -f "${1:-build/cuda}")
out=$(readlink -f -m "${2:-gpu_check}")
mkdir -p "$out"
kernels=$build/src/kernels/kernels_test engine=$build/src/engine/engine_test golden=$build/tests/golden_test
"$build/vitrine" devices

# shards N NAME COMMAND...: the tests of a program in N processes.
shards() {
  local n=$1 name=$2 i
  shift 2
  for ((i = 0; i < n; i++)); do
    GTEST_TOTAL_SHARDS=$n GTEST_SHARD_INDEX=$i timeout 300 "$@" --gtest_brief=1 >"$out/$name.$i" 2>&1 &
  done
}
shards 9 kernels "$kernels"
shards 4 golden "$golden" --gtest_filter='*Cuda*'
VITRINE_TEST_BACKEND=cuda shards 4 engine "$engine"
wait
for name in kernels golden engine; do
  echo "$name: $(cat "$out/$name".* | grep -c PASSED) parts done"
  grep -hE 'FAILED  \]|fatal|check failed' "$out/$name".* | sort | uniq -c
done

bench() {
  echo "== $*"
  timeout 120 "$build/vitrine" bench --backend cuda "$@" 2>&1 | tee -a "$out/bench" | grep -E '^prefill|^decode|a decode|error|fatal'
}
for model in llama-1b:bf16 llama-1b:q8_0 llama-1b:q4_k_m llama-8b:bf16 llama-8b:q8_0 llama-8b:q4_k_m; do
  bench --random $model -p 32 -n 128
done
bench --random llama-8b:bf16 -p 2048 -n 16 --step-tokens 2048
bench --random llama-8b:bf16 -p 128 -n 64 --step-tokens 2048 --sequences 64 -r 1
bench --random llama-1b:bf16 -p 24576 -n 16 --step-tokens 4096 -r 1
bench --random llama-1b:bf16 -p 32 -n 64 -r 1 --deterministic

if command -v compute-sanitizer >/dev/null; then
  # sanitize TOOL PROGRAM FILTER [OPTION...]
  sanitize() {
    local tool=$1 program=$2 filter=$3 log=$out/sanitizer.$1
    shift 3
    timeout 500 compute-sanitizer --tool "$tool" "$@" "$program" --gtest_brief=1 --gtest_filter="$filter" >"$log" 2>&1
    echo "$tool: $(grep -E 'PASSED|FAILED' "$log" | head -1) $(grep 'SUMMARY' "$log" || echo 'not finished')"
  }
  for tool in memcheck racecheck initcheck; do
    sanitize $tool "$golden" 'All/QuantizedModel.IsTheSameOnCuda/*:All/GoldenModel.Cuda/qwen3' &
  done
  # Its tables are as large as the barriers are many: a few layers instead of models.
  sanitize synccheck "$kernels" '*Repeat*' --num-cuda-barriers 4096 &
  wait
fi
