#!/usr/bin/env bash
# units.sh TESTS: types, accessibility and unit tests of the page, in the folder where the build made it.
set -euo pipefail
rm -rf test
cp -r "$1" test
npm run check
npm test
