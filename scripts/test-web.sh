#!/usr/bin/env bash
# Tests the pages: types, lints, rules, and in Chromium against target/debug/urr with private data.
# Without arguments everything; arguments go to Playwright, for example `scripts/test-web.sh queue`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/node.sh
cd web
if [[ $# -eq 0 ]]; then
    npm run --silent check
    npm run --silent lint
    npm test --silent
fi
npm run --silent test:browser -- "$@"
