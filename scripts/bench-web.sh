#!/usr/bin/env bash
# Prints how fast the pages are: in Chromium, against target/release/urr with demo data.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/node.sh
export URR_PROGRAM="${URR_PROGRAM:-$PWD/target/release/urr}"
cd web
npm run --silent bench
