#!/usr/bin/env bash
# run.sh FILE: a test in a browser, which is $VITRINE_CHROMIUM or Debian's. Without one: 77, left out.
set -euo pipefail
export VITRINE_CHROMIUM=${VITRINE_CHROMIUM:-$(command -v chromium || true)}
if [ -z "$VITRINE_CHROMIUM" ]; then
  echo "left out: there is no chromium, and VITRINE_CHROMIUM does not name one" >&2
  exit 77
fi
exec node --test --test-reporter=spec "$1"
