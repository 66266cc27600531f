//! What a machine runs under, as far as its files tell.
//!
//! Virtual machines come before containers: a container shares its kernel and its processor with
//! the machine that it is on, a virtual machine shares the processor with others.

use super::cpuinfo::CpuInfo;
use super::root::Root;

/// Words in the vendor or product name of the firmware, and what they stand for
/// (the names are those of `systemd-detect-virt`).
const FIRMWARE: [(&str, &str); 11] = [
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("VirtualBox", "oracle"),
    ("innotek", "oracle"),
    ("Amazon EC2", "amazon"),
    ("Google Compute", "google"),
    ("OpenStack", "kvm"),
    ("Parallels", "parallels"),
    ("Virtual Machine", "microsoft"),
];

/// `none`, the name of a hypervisor, or `container:KIND` on a machine that is none.
pub(super) fn kind(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    let machine = machine(root, cpuinfo);
    match machine {
        Some(kind) if kind != "none" => Some(kind),
        machine => container(root)
            .map(|kind| format!("container:{kind}"))
            .or(machine),
    }
}

fn machine(root: &Root, cpuinfo: &CpuInfo) -> Option<String> {
    let release = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    if release.to_lowercase().contains("microsoft") {
        return Some("wsl".into());
    }
    let dmi = |name: &str| root.text(&format!("sys/class/dmi/id/{name}"));
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let names = [vendor.as_deref(), product.as_deref()];
    let firmware = FIRMWARE
        .iter()
        .find(|(word, _)| names.iter().flatten().any(|name| name.contains(word)));
    if let Some((_, kind)) = firmware {
        // A machine of Amazon's or the like whose processor is not virtual is rented as a whole.
        if !cpuinfo.is_x86() || cpuinfo.is_virtual() {
            return Some((*kind).into());
        }
    }
    if let Some(kind) = root.text("sys/hypervisor/type") {
        return Some(kind);
    }
    if let Some(compatible) = root.text("proc/device-tree/compatible") {
        return Some(match compatible.contains("dummy-virt") {
            true => "qemu".into(),
            false => "none".into(),
        });
    }
    match (cpuinfo.is_x86(), cpuinfo.is_virtual()) {
        (true, true) => Some("unknown hypervisor".into()),
        // An x86 processor says when it is virtual.
        (true, false) => Some("none".into()),
        // Elsewhere a firmware that names its maker says so; silence proves nothing.
        (false, _) => vendor.map(|_| "none".into()),
    }
}

fn container(root: &Root) -> Option<String> {
    if let Some(kind) = root.text("run/systemd/container") {
        return Some(kind);
    }
    [(".dockerenv", "docker"), ("run/.containerenv", "podman")]
        .into_iter()
        .find(|(file, _)| root.exists(file))
        .map(|(_, kind)| kind.to_owned())
}
