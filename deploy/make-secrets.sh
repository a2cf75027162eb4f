#!/usr/bin/env bash
# Makes the secrets of compose.yaml, a file each, in deploy/secrets. Files that exist are kept: keep
# copies of auth_data_key and ticket_signing_key, without which stored data cannot be read. An argument is added to the
# address of PostgreSQL, such as ?sslmode=verify-full.
set -euo pipefail
umask 077
cd "$(dirname "$0")"
mkdir -p secrets

# Containers run as other users, so files are readable; the folder is not.
put() {
    [[ -s secrets/$1 ]] && return
    printf '%s' "$2" >"secrets/$1"
    chmod 444 "secrets/$1"
    echo "made deploy/secrets/$1"
}

random() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }

# Who calls a service; a test compares it with crates/urr/src/call_graph.rs.
callers_of() {
    case $1 in
    auth) echo gateway catalog ticket mail community ;;
    catalog) echo gateway ;;
    queue) echo gateway catalog ticket ;;
    ticket) echo gateway auth catalog queue payment mail community ;;
    payment) echo gateway auth catalog queue ticket ;;
    stats) echo gateway queue ;;
    mail) echo gateway auth catalog ticket ;;
    community) echo gateway auth ;;
    esac
}

# The login of a service on PostgreSQL; the same test compares it.
database_user_of() {
    case $1 in
    auth) echo user_svc_user ;;
    catalog) echo event_svc_user ;;
    queue) echo queue_svc_user ;;
    ticket) echo reservation_svc_user ;;
    payment) echo payment_svc_user ;;
    stats) echo stats_svc_user ;;
    mail) echo mail_svc_user ;;
    community) echo community_svc_user ;;
    esac
}

# What follows from a secret for a purpose.
derive() { printf '%s' "$2" | openssl dgst -sha256 -hmac "$(<"secrets/$1")" | sed 's/.* //'; }

# What a caller proves itself with to a service, as `urr credentials` prints it.
credential() {
    printf '%s=' "$1"
    derive "internal_token_$1" "urr-internal-call:$1:$2"
}

services=(auth catalog queue ticket payment stats mail community)
for name in auth_data_key auth_jwt_secret database_role_secret entry_token_secret grafana_password \
    postgres_password redis_password ticket_signing_key \
    internal_token_gateway "${services[@]/#/internal_token_}"; do
    put "$name" "$(random)"
done
for service in "${services[@]}"; do
    put "internal_accepted_$service" "$(for caller in $(callers_of "$service"); do
        credential "$caller" "$service"
    done | paste -sd, -)"
    # As `urr credentials --database` prints it. Only `urr migrate` has the secret of all passwords.
    put "database_password_$service" \
        "$(derive database_role_secret "urr-database-role:$(database_user_of "$service")")"
done
put database_admin_url "postgres://postgres:$(<secrets/postgres_password)@postgres:5432/urr${1:-}"
