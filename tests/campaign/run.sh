#!/usr/bin/env bash
# run.sh NAME [ARGS]: one part of the reliability campaign, with the program in build/release. What the
# parts do and promise: docs/reliability.md. Everything talks to 127.0.0.1 only.
#
#   fuzz                every fuzzer: 20 million runs for files of weights, 5 million for each other
#   faults              every call of a set of requests fails in turn; then limits of the machine
#   sigterm [N]         SIGTERM under load, N times (100)
#   kill [N]            kill -9 under load and restart on the same port, N times (200)
#   soak [SECONDS]      mixed good and bad traffic (3600)
#   soak-constraints [SECONDS]   the same, every good request with a constraint
set -euo pipefail
root=$(readlink -f "$(dirname "$0")/../..")
build=${VITRINE_BUILD:-$root/build/release}
name=${1:?run.sh fuzz|faults|sigterm|kill|soak|soak-constraints}
shift
if [ "$name" = fuzz ]; then
  "$root/scripts/fuzz.sh" -n 20000000 gguf safetensors
  exec "$root/scripts/fuzz.sh" -n 5000000 $(cd "$root/tests/fuzz/corpus" && ls | grep -vx -e gguf -e safetensors)
fi
if [ "$name" = faults ]; then
  cmake --build "$build" --target vitrine faults_test vt_faults
  VITRINE_FAULT_STRIDE=1 "$build/tests/faults_test" "$@"
  name=machine && set --
fi
exec python3 "$root/tests/campaign/campaign.py" "$build" "$name" "$@"
