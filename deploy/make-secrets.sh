#!/usr/bin/env bash
# Makes the secrets of compose.yaml, a file each, in deploy/secrets. Files that exist are kept: keep
# copies of auth_data_key and ticket_signing_key, without which stored data cannot be read.
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

for name in auth_data_key auth_jwt_secret database_role_secret entry_token_secret grafana_password \
    internal_token postgres_password redis_password ticket_signing_key; do
    put "$name" "$(random)"
done
put database_admin_url "postgres://postgres:$(<secrets/postgres_password)@postgres:5432/urr"
