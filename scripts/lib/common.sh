# shellcheck shell=bash
# What the scripts that fill the cross directory share: messages, the missing
# packages, the lock, and a private view of Debian's archive.
#
# The cross directory is `.cross` of this checkout (git ignores it), or the
# directory that CAMPAIGN_CROSS_DIR names, so that several checkouts can share one.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
CROSS=${CAMPAIGN_CROSS_DIR:-$ROOT/.cross}
# Debian's libraries for aarch64, as libc6-dev-arm64-cross installs them.
ARM_ROOT=/usr/aarch64-linux-gnu
# A real core: the emulator's default CPU accepts instructions that it has not.
ARM_CPU=neoverse-n1

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
# fail STATUS TEXT: the exit statuses are those of `campaign`.
fail() { local status=$1; shift; say "$*"; exit "$status"; }

# missing_packages PACKAGE=PROBE...: prints the packages whose probe, a command
# or an absolute path, is not there.
missing_packages() {
    local pair probe
    for pair; do
        probe=${pair#*=}
        case $probe in
            /*) [ -e "$probe" ] || printf '%s\n' "${pair%%=*}" ;;
            *) command -v "$probe" >/dev/null || printf '%s\n' "${pair%%=*}" ;;
        esac
    done
}

# require_packages PACKAGE=PROBE...: ends with status 3 and the command to type.
require_packages() {
    local list
    list=$(missing_packages "$@" | sort -u | tr '\n' ' ')
    [ -z "$list" ] || fail 3 "missing Debian packages; run: apt-get install -y --no-install-recommends ${list% }"
}

# lock NAME: waits for the other callers; the lock ends with this process.
lock() {
    mkdir -p -- "$CROSS"
    exec 9>"$CROSS/$1.lock"
    flock -n 9 || { say "waiting for another caller that prepares the $1"; flock 9; }
}

# scratch NAME: sets WORK to a fresh directory beside the result, so that a
# rename completes it. Call it under the lock: it also removes what a killed
# caller left behind.
scratch() {
    rm -rf -- "$CROSS/$1".tmp.*
    WORK=$(mktemp -d -- "$CROSS/$1.tmp.XXXXXX")
    trap 'rm -rf -- "$WORK"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# replace NAME: the finished WORK becomes CROSS/NAME.
replace() {
    chmod 755 -- "$WORK"
    if [ -e "$CROSS/$1" ]; then mv -T -- "$CROSS/$1" "$CROSS/$1.tmp.old"; fi
    mv -T -- "$WORK" "$CROSS/$1"
    rm -rf -- "$CROSS/$1".tmp.*
}

# open_view: an apt view of its own under WORK/apt that knows this machine's
# architecture and arm64. It reads the configured sources and changes nothing
# of the system: status, lists and archives are its own, and the status is empty.
open_view() {
    local view=$WORK/apt native
    native=$(dpkg --print-architecture)
    mkdir -p -- "$view/lists/partial" "$view/archives/partial"
    : >"$view/status"
    VIEW=(-qq
        -o "APT::Architecture=$native" -o "APT::Architectures::=$native" -o APT::Architectures::=arm64
        -o "Dir::State=$view" -o "Dir::State::lists=$view/lists" -o "Dir::State::status=$view/status"
        -o "Dir::Cache=$view" -o "Dir::Cache::archives=$view/archives"
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
    apt-get "${VIEW[@]}" update || fail 3 "apt-get update failed; are the sources of apt reachable?"
}

# candidate PACKAGE[:ARCH]: the version that apt would install, or nothing.
candidate() {
    apt-cache "${VIEW[@]}" policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" {print $2}'
}

# dependency PACKAGE[:ARCH] PREFIX: its first direct dependency of that name.
dependency() {
    apt-cache "${VIEW[@]}" depends "$1" | awk -v prefix="$2" '
        $1 == "Depends:" && index($2, prefix) == 1 && !found {print $2; found = 1}'
}

# fetch PACKAGE[:ARCH]...: into WORK/debs; apt checks the signed digests.
fetch() {
    mkdir -p -- "$WORK/debs"
    (cd -- "$WORK/debs" && apt-get "${VIEW[@]}" download "$@") || fail 3 "could not fetch: $*"
}

# close_view: the archives and lists are not kept.
close_view() { rm -rf -- "$WORK/apt" "$WORK/debs"; }
