#!/usr/bin/env bash
# The journeys on a cluster with two processes of each role and TLS on every connection, the public ones too:
# by the API, in a browser, a rush with faults, and the audit. It takes some minutes and is not a part of
# `make test`. URR_PROGRAM names the program; arguments go to Playwright instead of the journeys.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${URR_PROGRAM:-target/debug/urr}")
# The program refuses settings that it does not know.
unset URR_PROGRAM
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

# The doctor names connections that are not encrypted or not verified: no process has one.
"$program" doctor --config "$folder/operator.toml"
for file in "$folder"/*.toml; do
    # Who does not listen, or not to browsers, cannot do so without TLS.
    case $(basename "$file" .toml) in
        gateway) absent='nothing' ;;
        operator) absent='browsers, where|our other processes on' ;;
        *) absent='browsers, where' ;;
    esac
    # A process cannot do all that an operator can, and the doctor fails for that.
    said=$("$program" doctor --config "$file" 2>&1 || true)
    grep --quiet 'the configuration is complete' <<< "$said" || { echo "$file: $said"; exit 1; }
    weak=$(grep --extended-regexp 'not encrypted|not verified' <<< "$said" || true)
    weak=$(grep --extended-regexp --invert-match "$absent" <<< "$weak" || true)
    if [[ -n $weak ]]; then
        echo "$file: $weak"
        exit 1
    fi
done

secret='an organiser has a long secret'
"$program" admin create --email organiser@example.com --config "$folder/operator.toml" <<< "$secret"
site=$("$program" cluster status --folder "$folder" | sed -n 's/^site //p')
tested=(
    URR_PROGRAM="$program" URR_URL="$site" URR_TEST_MAILS="$folder/mails"
    URR_TEST_ADMIN="{\"email\": \"organiser@example.com\", \"password\": \"$secret\"}"
    NODE_EXTRA_CA_CERTS="$folder/certificates/authority.pem"
)
journeys() { (cd web && env "${tested[@]}" npm run --silent test:browser -- "$@"); }
if [[ $# -eq 0 ]]; then
    # It compares the ledger with its sale, and reads all halls: it comes first, and alone.
    URR_TEST_CONFIG="$folder/operator.toml" journeys admin-journey
    set -- /journey booking reservation queue
fi
"$program" cluster smoke --folder "$folder"
"$program" seed --config "$folder/operator.toml"
journeys "$@"

"$program" rush chaos --cluster "$folder" --fans 1000 --seats 300 --kills 24 --within 60 --until-sold-out \
    --report "$work/report"
"$program" audit --config "$folder/operator.toml"
