#!/usr/bin/env bash
# Runs tests that cargo has compiled once more as an ordinary user: one without a name (no entry in passwd, and not
# 65534, which owns things), from a copy of the checkout that everybody may read. To be called by root; an ordinary
# user has run them already. What only root can test says so (`skipped: ... needs root`) and is no failure here
# (CAMPAIGN_WITHOUT_ROOT): root has run it before.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "this is an ordinary user: the tests ran as one already"
    exit 0
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
chmod 755 "$copy"
user=61001
while getent passwd "$user" > /dev/null || getent group "$user" > /dev/null; do
    user=$((user + 1))
done

tar --create --file=- --exclude=./target --exclude=./.git --exclude=./.cross --exclude=./runs \
    --exclude=./harness/tests/browser/node_modules . | tar --extract --file=- --directory="$copy"
mkdir -p "$copy/target/debug/deps" "$copy/target/tmp" "$copy/home"
mapfile -t compiled < <(cargo test --workspace --no-run 2>&1 | sed -n 's/.*Executable .*(\(.*\))$/\1/p')
cp target/debug/campaign target/debug/worker "$copy/target/debug/"
program() { # NAME: the test program of that name
    for path in "${compiled[@]}"; do
        case $(basename "$path") in "$1"-*) cp "$path" "$copy/target/debug/deps/"; basename "$path"; return ;; esac
    done
    echo "no test program $1 among those that cargo compiled" >&2
    exit 1
}
chmod -R a+rX "$copy"
chown -R "$user:$user" "$copy/target/tmp" "$copy/home"

as_user() { # FOLDER COMMAND...: runs it in a folder of the copy as that user
    (cd "$copy/$1" && setpriv --reuid "$user" --regid "$user" --clear-groups \
        env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$copy/home" CAMPAIGN_TEST_ROOT="$copy" CAMPAIGN_TEST_KILLS=20 \
        CAMPAIGN_NO_SKIP="${CAMPAIGN_NO_SKIP:-}" CAMPAIGN_WITHOUT_ROOT=1 "${@:2}")
}

run() { # FOLDER PROGRAM [FILTER...] [OPTION...]: runs a test program as that user
    local folder=$1 name filter filters=() count
    name=$(program "$2")
    chmod a+rx "$copy/target/debug/deps/$name"
    for filter in "${@:3}"; do
        case $filter in -*) break ;; esac
        filters+=("$filter")
    done
    # A filter that matches nothing would pass without a test; no filter at all matches every test.
    for filter in "${filters[@]:-}"; do
        count=$(as_user "$folder" "$copy/target/debug/deps/$name" --list "$filter" | grep -c ': test$') || true
        [ "$count" -gt 0 ] || { echo "no test of $2 matches '$filter'" >&2; exit 1; }
    done
    as_user "$folder" "$copy/target/debug/deps/$name" "${@:3}"
}

run drivers/worker isolation
run drivers/worker library
# The kills inside single phases are left to root: twenty kills at any moment are among the others.
run harness tests zoo:: durability:: process:: run:: --skip a_run_survives_kills
