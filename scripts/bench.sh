#!/usr/bin/env bash
# Prints every benchmark in one table: what was measured, the baseline of the same run, the ratio. It
# takes some minutes; BENCH=full also runs the long ones.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=(storage logins rate_limit throughput overload reservations seat_map recovery purchases)
long=(expiry polls redis_room lag history)
names=("${quick[@]}")
if [[ "${BENCH:-}" == full ]]; then names+=("${long[@]}"); fi

# The whole workspace at once: a selection has other features, and everything is built again.
arguments=(--workspace --locked)
for name in "${names[@]}"; do arguments+=(--bench "$name"); done
output=$(mktemp)
trap 'rm -f "$output"' EXIT
cargo bench --no-run "${arguments[@]}"
outcome=0
begun=$SECONDS
for name in "${names[@]}"; do
	echo "== $name" >&2
	cargo bench --workspace --locked --quiet --bench "$name" > "$output.one" 2> "$output.error" || {
		outcome=1
		tail -3 "$output.error" >&2
	}
	grep -v '^figure' "$output.one" >&2 || true
	grep '^figure' "$output.one" >> "$output" || true
	rm -f "$output.one" "$output.error"
done

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
memory=$(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)
echo
echo "$((SECONDS - begun)) s of measuring"
echo "$(nproc) cores of ${processor:-an unknown processor}, $memory, Linux $(uname -r), $(rustc --version)"
{
	printf 'what\tmeasured\tbaseline\tratio\ttarget\t\n'
	cut -f2- "$output"
} | column -t -s "$(printf '\t')"
exit "$outcome"
