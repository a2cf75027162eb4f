#!/usr/bin/env bash
# Runs all tests in Rust. With CI=true up to three tests that failed are run once more, alone; those
# that pass then are listed as flaky, as in the browser tests.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=(cargo test --workspace --locked)
if [[ "${CI:-}" != true ]]; then
    exec "${tests[@]}"
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
if "${tests[@]}" --no-fail-fast 2>&1 | tee "$output"; then
    exit 0
fi

# A line for each failed test: the options that choose its target, and its name.
failed=$(awk '
    /^     Running / {
        target = $2 == "unittests" ? ($3 ~ /main.rs$/ ? "--bins" : "--lib") : ""
        if (match($2, /^tests\/[^\/.]+/)) target = "--test " substr($2, 7, RLENGTH - 6)
    }
    /^   Doc-tests / { target = "--doc" }
    /^failures:$/ { in_list = 1; next }
    in_list && /^    [^ ]+$/ { print target, $1; next }
    in_list && !/^$/ { in_list = 0 }
' "$output" | sort -u)
# A target that failed without naming a test has crashed.
targets=$(grep -cE '^    .-p .*' "$output" || true)
named=$(grep -c '^test result: FAILED' "$output" || true)
count=$(grep -c . <<< "$failed" || true)
if [[ $targets -eq 0 || $named -lt $targets || $count -eq 0 || $count -gt 3 ]]; then
    exit 1
fi
while read -r -a test; do
    name=${test[-1]}
    echo "== once more: ${test[*]}"
    "${tests[@]}" "${test[@]:0:${#test[@]}-1}" -- --exact "$name" < /dev/null 2>&1 | tee "$output"
    # That no test had the name would be a success too.
    grep -qxF "test $name ... ok" "$output"
done <<< "$failed"
echo "flaky, passed at the second try:"
echo "$failed"
