#!/bin/bash
# A whole emulated ARM machine whose kernel counts cycles: the only place where
# the real counter path can be tested exactly on a machine that has no counters.
#
# `prep` makes a kernel and an initial file system from Debian's packages, once;
# `run` boots them with a shared directory. What the counters mean is decided by
# the mode; without a fixed instruction clock their values prove nothing.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
. "$(dirname -- "$0")/lib/common.sh"

usage() {
    cat <<'TEXT'
usage: arm-machine.sh prep [--again]            make the kernel and its file system; print their directory
       arm-machine.sh run [options] SHARE [emulator arguments]
       arm-machine.sh check                     say what is missing; change nothing; status 1 when something is

run: the guest copies SHARE/in to /tmp, runs /tmp/run.sh there as root, and copies what
that left in $OUT to SHARE/out. The status is that of run.sh (SHARE/rc), 125 when none came
back, 2 or 3 when the machine was not started. The guest's console is standard output.

  --mode exact      (default) one CPU and a fixed clock: cycles = instructions x 2^N, the same each time
         affinity   two CPUs, no instruction counter; cycles are noise
         both       two CPUs and both counters; exact for CPU 0 nearly always, for CPU 1 not
         nopmu      one CPU without a counter: every hardware event is ENOENT
  --clock kernel    the guest's programs read the clock by a system call, so that no tick of the
                    kernel's timer makes them read again: their counts are the same each time
  --shift N         the N of `exact` and `both` (default 2 and 0)
  --core MODEL      the emulated core (default neoverse-n1)
  --memory MIB      (default 1024)
  --timeout SECONDS (default 300)
  --append TEXT     more words for the kernel's command line
TEXT
}

misuse() { usage >&2; exit 2; }

# --- what there has to be ---

prep_packages() {
    printf '%s\n' dpkg=dpkg-deb apt=apt-get util-linux=flock cpio=cpio \
        libc6-dev-arm64-cross="$ARM_ROOT/lib/libc.so.6" \
        gcc-aarch64-linux-gnu="$ARM_ROOT/lib/libgcc_s.so.1"
}

run_packages() { printf '%s\n' qemu-system-arm=qemu-system-aarch64 device-tree-compiler=fdtput; }

# The file system holds this script's init and the host's ARM libraries: a change
# of either makes it stale.
recipe() { cat -- "$0" "$ARM_ROOT/lib/libc.so.6" | sha256sum | cut -d ' ' -f 1; }

ready() {
    [ -s "$CROSS/machine/kernel" ] && [ -s "$CROSS/machine/initrd" ] &&
        [ "$(cat -- "$CROSS/machine/RECIPE" 2>/dev/null)" = "$(recipe)" ]
}

check() {
    local list missing status=0
    mapfile -t list < <(prep_packages; run_packages)
    missing=$(missing_packages "${list[@]}" | tr '\n' ' ')
    if [ -n "$missing" ]; then say "missing Debian packages: ${missing% }"; return 1; fi
    ready || { say "no current machine in $CROSS; run: scripts/arm-machine.sh prep"; status=1; }
    return $status
}

# --- prep ---

# Each needs those before it; the kernel has the rest built in.
MODULES=(virtio_mmio netfs fscache 9pnet 9pnet_virtio 9p)

# from_package NAME: the files of a fetched package as a tar stream.
from_package() { dpkg-deb --fsys-tarfile "$WORK/debs/$1"_*.deb; }

# The name of the package carries the kernel's ABI number, so apt is asked for it.
fetch_kernel() {
    local image files
    image=$(dependency linux-image-arm64:arm64 linux-image-)
    image=${image%:arm64}
    [ -n "$image" ] || fail 3 "apt knows no linux-image-arm64 for arm64"
    say "fetching $image and busybox for arm64 (some 60 MB)"
    fetch "$image:arm64" busybox-static:arm64
    files=("${MODULES[@]/%/.ko}")
    # A name that matches nothing is an error of tar's, and so of this script.
    from_package "$image" | tar -x -C "$WORK/tree/modules" --wildcards --transform 's#.*/##' \
        './boot/vmlinuz-*' "${files[@]/#/*/}"
    mv -- "$WORK"/tree/modules/vmlinuz-* "$WORK/kernel"
    printf '%s\n' "$image $(candidate "$image:arm64")" >"$WORK/VERSION"
}

# The libraries that a Rust or C program of ours is linked with.
copy_libraries() {
    local name
    for name in ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1; do
        cp -L -- "$ARM_ROOT/lib/$name" "$WORK/tree/lib/"
    done
}

# Programs run from memory: from the shared mount they were at times many times
# slower, and it lacks shared writable maps. So files are copied in, and out.
# The status file comes last and whole: it says that the copy is complete.
write_init() {
    cat >"$WORK/tree/init" <<TEXT
#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=1777 tmp /tmp
for module in ${MODULES[*]}; do insmod /modules/\$module.ko; done
if mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share; then
    export OUT=/tmp/.out HOME=/tmp
    mkdir -m 1777 \$OUT
    cp -a /share/in/. /tmp && cd /tmp && sh ./run.sh
    status=\$?
    cp -a \$OUT/. /share/out/ || status=125
    echo \$status >/share/rc.part && sync && mv /share/rc.part /share/rc
    cd / && umount /share
fi
poweroff -f
TEXT
    chmod 755 -- "$WORK/tree/init"
}

build_tree() {
    mkdir -p -- "$WORK"/tree/{bin,lib,modules,proc,sys,dev,tmp,share,etc}
    fetch_kernel
    from_package busybox-static | tar -xO ./bin/busybox >"$WORK/tree/bin/busybox"
    chmod 755 -- "$WORK/tree/bin/busybox"
    ln -s busybox "$WORK/tree/bin/sh"
    copy_libraries
    # An ordinary user, for what the counters refuse to one.
    printf '%s\n' 'root:x:0:0::/tmp:/bin/sh' 'user:x:1000:1000::/tmp:/bin/sh' >"$WORK/tree/etc/passwd"
    printf '%s\n' 'root:x:0:' 'user:x:1000:' >"$WORK/tree/etc/group"
    write_init
}

pack_tree() {
    (cd -- "$WORK/tree" && find . | LC_ALL=C sort |
        cpio --quiet -o -H newc --reproducible -R 0:0) >"$WORK/initrd"
    rm -rf -- "$WORK/tree"
}

prep() {
    local list
    mapfile -t list < <(prep_packages)
    require_packages "${list[@]}"
    lock machine
    if [ "$1" != --again ] && ready; then return; fi
    scratch machine
    open_view
    build_tree
    close_view
    pack_tree
    recipe >"$WORK/RECIPE"
    replace machine
}

# --- run ---

mode=exact clock=vdso shift='' core=$ARM_CPU memory=1024 limit=300 append='' share=''

parse_run() {
    while [ $# -gt 0 ]; do
        case $1 in
            --mode | --clock | --shift | --core | --memory | --timeout | --append)
                [ $# -gt 1 ] || misuse
                case $1 in
                    --mode) mode=$2 ;;
                    --clock) clock=$2 ;;
                    --shift) shift=$2 ;;
                    --core) core=$2 ;;
                    --memory) memory=$2 ;;
                    --timeout) limit=$2 ;;
                    --append) append=$2 ;;
                esac
                shift 2
                ;;
            -*) misuse ;;
            *) break ;;
        esac
    done
    [ $# -gt 0 ] || misuse
    share=$1
    shift
    more=("$@")
}

# Sets `cpus`: the emulator's arguments that make the mode.
choose_mode() {
    case $mode in
        exact) cpus=(-smp 1 -icount "shift=${shift:-2}") ;;
        affinity) cpus=(-smp 2) ;;
        both) cpus=(-smp 2 -icount "shift=${shift:-0}") ;;
        nopmu) cpus=(-smp 1) core=$core,pmu=off ;;
        *) misuse ;;
    esac
    case $clock in vdso | kernel) ;; *) misuse ;; esac
}

# emulator MACHINE ARGUMENT...
emulator() {
    local machine=$1
    shift
    timeout --kill-after=10 "$limit" qemu-system-aarch64 -M "$machine" -cpu "$core" "${cpus[@]}" -m "$memory" \
        -nodefaults -nographic -fsdev "local,id=share,path=${share//,/,,},security_model=none" \
        -device virtio-9p-device,fsdev=share,mount_tag=share "${more[@]}" "$@" </dev/null
}

# A machine whose timer is said to have an erratum for which the kernel reads it twice and more: programs
# may then not read it themselves (linux/drivers/clocksource/arm_arch_timer.c, FSL_ERRATUM_A008585).
distrust_timer() {
    tree=$(mktemp)
    trap 'rm -f -- "$tree"' EXIT
    emulator "virt,dumpdtb=$tree" >&2 || fail 125 "the emulator gave no device tree"
    fdtput -- "$tree" /timer fsl,erratum-a008585
    more+=(-dtb "$tree")
}

# Address space randomisation moves instruction counts a little, hence norandmaps.
# The emulator's own status says nothing of run.sh.
boot() {
    local made=$CROSS/machine
    [ "$clock" != kernel ] || distrust_timer
    emulator virt -serial stdio -no-reboot -kernel "$made/kernel" -initrd "$made/initrd" \
        -append "console=ttyAMA0 quiet panic=-1 norandmaps $append"
}

run() {
    local list status=0
    parse_run "$@"
    choose_mode
    mapfile -t list < <(run_packages)
    require_packages "${list[@]}"
    ready || fail 3 "no current machine in $CROSS; run: scripts/arm-machine.sh prep"
    [ -f "$share/in/run.sh" ] || fail 2 "the guest runs in/run.sh, and there is none in $share"
    share=$(cd -- "$share" && pwd -P)
    rm -rf -- "$share/out" "$share/rc" "$share/rc.part"
    mkdir -- "$share/out"
    boot || status=$?
    [ -f "$share/rc" ] && exit "$(cat -- "$share/rc")"
    [ "$status" != 124 ] || say "the machine was stopped after $limit s"
    fail 125 "no status came back from the guest (the emulator ended with $status)"
}

case ${1:-} in
    prep)
        case $#:${2:-} in 1: | 2:--again) ;; *) misuse ;; esac
        prep "${2:-}"
        printf '%s\n' "$CROSS/machine"
        ;;
    run) shift; run "$@" ;;
    check) check ;;
    -h | --help) usage ;;
    *) misuse ;;
esac
