#!/usr/bin/env bash
# Builds the pages into web/build, which the program carries. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/node.sh

cd web
if [[ ! -e node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
    npm ci --no-audit --no-fund --loglevel=error
    # The program takes the fonts of its documents from here.
    touch ../crates/urr-eticket/build.rs
fi
npm run --silent build
# The program looks for the first build only when its build script changes.
touch ../crates/urr-web/build.rs
