#!/usr/bin/env bash
# Tests what is deployed beside the program: container file, compose file, Kubernetes manifests, alerts,
# dashboards and scripts. Each check must accept our file and refuse one that was broken.
#
# It needs target/debug/urr (URR_PROGRAM names another program), whose settings and metrics are compared,
# and the tools that scripts/install-test-servers.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${URR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/urr-test}"
python="$cache/deploy-tools/bin/python"
if [[ ! -x $python ]] || ! command -v promtool >/dev/null; then
    if [[ ${CI:-} == true ]]; then
        echo "the tests of deploy may not be skipped with CI=true: run scripts/install-test-servers.sh" >&2
        exit 1
    fi
    echo "skipped: the tests of deploy need tools; run scripts/install-test-servers.sh" >&2
    exit 0
fi
PATH="$cache/deploy-tools/bin:$PATH" exec "$python" scripts/test_deploy.py
