#!/usr/bin/env bash
# The journeys on a cluster with two processes of each role and TLS on every connection, the public ones too:
# the smoke test, the journeys in a browser, a rush with faults, and the audit. It takes some minutes and is
# not a part of `make test`. URR_PROGRAM names the program; arguments go to Playwright instead of the journeys.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${URR_PROGRAM:-target/debug/urr}")
source scripts/node.sh
# PostgreSQL runs as another user, who must be able to pass through.
work=$(mktemp -d) && chmod 755 "$work"
folder="$work/cluster"
trap '"$program" cluster down --remove --folder "$folder" || true; rm -rf "$work"' EXIT

settings=(
    gateway.rate_limit_auth_rpm=60000 gateway.rate_limit_queue_rpm=60000 gateway.rate_limit_booking_rpm=60000
    gateway.rate_limit_login_address_rpm=60000 gateway.rate_limit_login_account_rpm=60000
    auth.bot_check_bits=10 auth.identity_provider=sandbox queue.draw_beacon=offline
    queue.admission_interval_ms=200 catalog.event_status_interval_ms=200 payments.timeout_seconds=1
    alerts.sale_lead_seconds=86400 alerts.head_start_seconds=4
)
arguments=()
for setting in "${settings[@]}"; do arguments+=(--set "$setting"); done
"$program" cluster up --detach --tls --folder "$folder" "${arguments[@]}"
"$program" cluster smoke --folder "$folder"
"$program" doctor --config "$folder/operator.toml"

secret='an organiser has a long secret'
"$program" seed --config "$folder/operator.toml"
"$program" admin create --email organiser@example.com --config "$folder/operator.toml" <<< "$secret"
URR_URL=$("$program" cluster status --folder "$folder" | sed -n 's/^site //p')
export URR_URL URR_TEST_MAILS="$folder/mails" NODE_EXTRA_CA_CERTS="$folder/certificates/authority.pem"
export URR_TEST_ADMIN="{\"email\": \"organiser@example.com\", \"password\": \"$secret\"}"
journeys=("$@")
if [[ ${#journeys[@]} -eq 0 ]]; then journeys=(journey admin-journey booking reservation queue); fi
(cd web && npm run --silent test:browser -- "${journeys[@]}")

"$program" rush chaos --cluster "$folder" --fans 1000 --seats 300 --kills 24 --within 60 --until-sold-out \
    --report "$work/report"
"$program" audit --config "$folder/operator.toml"
