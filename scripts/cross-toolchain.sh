#!/bin/bash
# A Rust compiler for aarch64 on another Debian machine, without changing the system.
#
# The toolchain of rustup has no aarch64 standard library here, and fetching one
# is not a dependency that the project may have. Debian's rustc-web has one for
# both architectures; it is unpacked into the cross directory. Cargo stays as it
# is: an environment points it to this compiler, linker and emulator.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
. "$(dirname -- "$0")/lib/common.sh"

TARGET=aarch64-unknown-linux-gnu
TOOLCHAIN=$CROSS/toolchain
ENV_FILE=$CROSS/env
TOOLS=(rustc rustdoc)

usage() {
    cat <<'TEXT'
usage: cross-toolchain.sh [setup [--again]]   set up what is not there; print the path of the environment file
       cross-toolchain.sh check               say what is missing; change nothing; status 1 when something is
       cross-toolchain.sh exec COMMAND...     set up, then run COMMAND in that environment
TEXT
}

# The compiler is the only part that is fetched; these come from the system.
packages() {
    printf '%s\n' dpkg=dpkg-deb apt=apt-get util-linux=flock \
        gcc-aarch64-linux-gnu=aarch64-linux-gnu-gcc \
        libc6-dev-arm64-cross="$ARM_ROOT/lib/crt1.o" \
        qemu-user-static=qemu-aarch64-static
}

# Proves more than the presence of files: both standard libraries are found by
# the compiler, which prints the library path of a target it knows only then.
toolchain_works() {
    local tool host dir
    for tool in "${TOOLS[@]}"; do
        "$TOOLCHAIN/bin/$tool" --version >/dev/null 2>&1 || return 1
    done
    host=$("$TOOLCHAIN/bin/rustc" -vV 2>/dev/null | awk '$1 == "host:" {print $2}')
    [ -n "$host" ] || return 1
    for dir in "$host" "$TARGET"; do
        dir=$("$TOOLCHAIN/bin/rustc" --print target-libdir --target "$dir" 2>/dev/null) || return 1
        compgen -G "$dir/libstd-*.rlib" >/dev/null || return 1
    done
}

# The libraries that the compiler needs and this machine has not: LLVM always,
# on a small system also some of LLVM's own.
absent_libraries() {
    local name
    apt-cache "${VIEW[@]}" depends --recurse --important "$1" | grep '^[a-z]' | sort -u |
        while read -r name; do
            case $name in *:*) continue ;; esac
            [ "$name" != "$1" ] || continue
            dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' ||
                printf '%s\n' "$name"
        done
}

# The wrappers find their files from their own place, so the rename does not hurt.
# rustdoc compiles the examples in comments, so it has to be of the same version.
write_wrappers() {
    local name
    mkdir -p -- "$WORK/bin"
    for name in "${TOOLS[@]}"; do
        cat >"$WORK/bin/$name" <<TEXT
#!/bin/sh
# Written by scripts/cross-toolchain.sh: the unpacked program with its libraries.
here=\$(readlink -f -- "\$0")
here=\${here%/bin/$name}/unpacked
for dir in "\$here"/usr/lib/*-linux-gnu "\$here"/lib/*-linux-gnu; do
    [ -d "\$dir" ] && path="\${path:+\$path:}\$dir"
done
LD_LIBRARY_PATH="\$path\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$here/usr/bin/$name" "\$@"
TEXT
        chmod 755 -- "$WORK/bin/$name"
    done
}

# The package moves with security updates, so no version is written here; but
# compiler and both standard libraries must be of one.
agreed_version() {
    local name version first=
    for name in rustc-web libstd-rust-web-dev libstd-rust-web-dev:arm64; do
        version=$(candidate "$name")
        [ -n "$version" ] || fail 3 "apt knows no $name; Debian 12 or later with its security archive has it"
        [ "${first:=$version}" = "$version" ] ||
            fail 3 "$name is $version, rustc-web is $first: wait until the archive has both, then try again"
    done
    printf '%s\n' "$first"
}

install_toolchain() {
    local version runtime deb
    scratch toolchain
    say "fetching Debian's rustc-web for $TARGET (some 130 MB)"
    open_view
    version=$(agreed_version)
    runtime=$(dependency libstd-rust-web-dev libstd-rust-web-)
    # shellcheck disable=SC2046 # one package a word
    fetch rustc-web "$runtime" libstd-rust-web-dev libstd-rust-web-dev:arm64 $(absent_libraries "$runtime")
    mkdir -p -- "$WORK/unpacked"
    for deb in "$WORK"/debs/*.deb; do dpkg-deb -x "$deb" "$WORK/unpacked"; done
    rm -rf -- "$WORK/unpacked/usr/share/doc" "$WORK/unpacked/usr/share/man"
    close_view
    write_wrappers
    printf '%s\n' "$version" >"$WORK/VERSION"
    replace toolchain
    toolchain_works || fail 3 "the unpacked compiler does not run: $("$TOOLCHAIN/bin/rustc" -vV 2>&1 | head -n 1)"
}

# One `export NAME='VALUE'` a line: a shell sources it, a program parses it.
print_env() {
    local variable
    variable=$(printf '%s' "$TARGET" | tr 'a-z-' 'A-Z_')
    printf "export %s='%s'\n" \
        RUSTC "$TOOLCHAIN/bin/rustc" \
        RUSTDOC "$TOOLCHAIN/bin/rustdoc" \
        "CARGO_TARGET_${variable}_LINKER" aarch64-linux-gnu-gcc \
        "CARGO_TARGET_${variable}_RUNNER" "qemu-aarch64-static -cpu $ARM_CPU -L $ARM_ROOT" \
        "CC_${TARGET//-/_}" aarch64-linux-gnu-gcc \
        "AR_${TARGET//-/_}" aarch64-linux-gnu-ar
}

write_env() {
    case $CROSS in *\'*) fail 2 "the cross directory has a quotation mark in its name: $CROSS" ;; esac
    [ "$(print_env)" = "$(cat -- "$ENV_FILE" 2>/dev/null)" ] && return
    print_env >"$ENV_FILE.tmp"
    mv -f -- "$ENV_FILE.tmp" "$ENV_FILE"
}

setup() {
    local again=$1 list
    [ "$(uname -m)" != aarch64 ] || fail 2 "this machine is aarch64: its own toolchain builds what it runs"
    mapfile -t list < <(packages)
    require_packages "${list[@]}"
    lock toolchain
    if [ "$again" = --again ] || ! toolchain_works; then install_toolchain; fi
    write_env
    # A command that is run afterwards must not hold the lock.
    exec 9>&-
}

check() {
    local list missing status=0
    mapfile -t list < <(packages)
    missing=$(missing_packages "${list[@]}" | tr '\n' ' ')
    if [ -n "$missing" ]; then say "missing Debian packages: ${missing% }"; status=1; fi
    if ! toolchain_works; then say "no compiler in $TOOLCHAIN; run: scripts/cross-toolchain.sh"; status=1; fi
    return $status
}

# Build scripts are compiled by the cross compiler too: a target directory of its
# own keeps the two compilers from rebuilding each other's work.
run_in_environment() {
    # shellcheck disable=SC1090 # written above
    . "$ENV_FILE"
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target/cross}
    exec "$@"
}

case ${1:-setup} in
    setup)
        case $#:${2:-} in [01]:* | 2:--again) ;; *) usage >&2; exit 2 ;; esac
        setup "${2:-}"
        printf '%s\n' "$ENV_FILE"
        ;;
    check) check ;;
    exec) shift; [ $# -gt 0 ] || { usage >&2; exit 2; }; setup ''; run_in_environment "$@" ;;
    -h | --help) usage ;;
    *) usage >&2; exit 2 ;;
esac
