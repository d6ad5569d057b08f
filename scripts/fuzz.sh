#!/usr/bin/env bash
# scripts/fuzz.sh [-s SECONDS | -n RUNS] [TARGET...]: builds the targets of tests/fuzz with libFuzzer, ASan and
# UBSan and runs each (default: 60 seconds), as many at a time as there are CPUs. `./test fuzz` calls it. What
# it learns stays in build/fuzz/corpus; what fails goes to build/fuzz/found. Exit status 1: something was found.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. scripts/setup.sh
limit=-max_total_time=60
while getopts s:n: option; do
  case $option in
    s) limit=-max_total_time=$OPTARG ;;
    n) limit=-runs=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- $(cd tests/fuzz/corpus && echo *)
vt_install $(vt_test_packages) $(vt_fuzz_packages)
vt_configure fuzz
vt_build fuzz "${@/#/fuzz_}"

# one TARGET: its closing lines, and whether it found something.
one() {
  local name=$1 limit=$2 corpus=build/fuzz/corpus/$1 log=build/fuzz/$1.log
  mkdir -p "$corpus" build/fuzz/found
  local options=()
  [ -f "tests/fuzz/$name.dict" ] && options=("-dict=tests/fuzz/$name.dict")
  # The leak check after each input would take most of the time where threads hold memory; at the end there
  # is one for all of them. Small inputs, no entropic schedule, a small quarantine: five times the runs.
  [ "$name" = http ] && options+=(-detect_leaks=0)
  local status=0
  ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=8 \
    build/fuzz/tests/fuzz/fuzz_"$name" "$limit" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=2048 \
    -entropic=0 -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=1 "${options[@]}" \
    "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ $status -eq 0 ]; then
    echo "ok      $name: $runs runs, $(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | tail -1) edges"
  else
    echo "FAILED  $name: see $log and build/fuzz/found"
    grep -m 5 -E 'ERROR|SUMMARY|check failed|runtime error' "$log" || tail -5 "$log"
    return 1
  fi
}
export -f one
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c "one {} $limit"
