#!/usr/bin/env bash
# setup.sh FOLDER: the test files, the npm packages they import and the plain page, in FOLDER.
set -euo pipefail
source=$(dirname "$(readlink -f "$0")")
mkdir -p "$1/plain"
cp "$source"/*.mjs "$source"/../api/server.mjs "$source"/package.json "$source"/package-lock.json "$1"
cp "$source"/../../ui/plain/* "$1/plain"
cd "$1"
if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --no-update-notifier
  cp package-lock.json node_modules/.installed
fi
