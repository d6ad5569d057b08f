#!/usr/bin/env bash
# setup.sh FOLDER MAKE_MODEL: the test files, the npm packages they import and a model, in FOLDER.
# (A module's imports are looked up beside it, so the files move to the packages.)
set -euo pipefail
source=$(dirname "$(readlink -f "$0")")
mkdir -p "$1"
cp "$source"/*.mjs "$source"/package.json "$source"/package-lock.json "$1"
cd "$1"
if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --no-update-notifier
  cp package-lock.json node_modules/.installed
fi
"$2" model
