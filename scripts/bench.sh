#!/usr/bin/env bash
# Prints every benchmark in one table: what was measured, the baseline of the same run, the ratio. It
# takes some minutes; BENCH=full also runs the long ones.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=(storage logins rate_limit throughput overload reservations seat_map recovery purchases)
long=(expiry polls redis_room estimate lag)
packages=(urr-test urr-e2e urr-gateway urr-ticket urr-queue urr-room urr-stats)
names=("${quick[@]}")
if [[ "${BENCH:-}" == full ]]; then names+=("${long[@]}"); fi

arguments=()
for package in "${packages[@]}"; do arguments+=(-p "$package"); done
output=$(mktemp)
trap 'rm -f "$output"' EXIT
cargo bench --locked --no-run "${arguments[@]}"
outcome=0
for name in "${names[@]}"; do
	echo "== $name" >&2
	cargo bench --locked --quiet "${arguments[@]}" --bench "$name" > "$output.one" 2> "$output.error" || {
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
echo "$(nproc) cores of ${processor:-an unknown processor}, $memory, Linux $(uname -r), $(rustc --version)"
{
	printf 'what\tmeasured\tbaseline\tratio\ttarget\t\n'
	cut -f2- "$output"
} | column -t -s "$(printf '\t')"
exit "$outcome"
