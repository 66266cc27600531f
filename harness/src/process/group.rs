//! Signals to a child's whole process group and session.
//!
//! All functions take the number of the child that was started. The kernel does not give it to anybody
//! else before the child has been reaped, nor while its group or session has members, and goes through
//! all other numbers first.

use nix::errno::Errno;
use nix::sys::signal::{kill, killpg, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use std::io;
use std::time::Duration;

/// Time for killed processes to vanish from the process table.
const VANISH: Duration = Duration::from_secs(5);
/// Pause between two looks at the process table.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Whether the child has ended; it stays a zombie.
pub fn has_ended(child: Pid) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(child), flags) {
            Ok(status) => return Ok(status != WaitStatus::StillAlive),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Sends `signal` to the child's group, or to the child alone while it leads no group yet (the worker
/// before its `setsid`), and to members of its session in other groups.
pub fn signal_all(child: Pid, signal: Signal) {
    // A process that is gone in the meantime is what we want: errors carry no news.
    if killpg(child, signal).is_err() {
        let _ = kill(child, signal);
    }
    for member in members(child)
        .into_iter()
        .filter(|m| m.group != child.as_raw())
    {
        let _ = kill(Pid::from_raw(member.pid), signal);
    }
}

/// Whether the group of a reaped child has members. One call, where a look at the process table takes
/// milliseconds on a busy machine.
pub fn has_members(child: Pid) -> bool {
    killpg(child, None) != Err(Errno::ESRCH)
}

/// The child, which has not ended, and the living members of its group and session.
pub fn alive(child: Pid) -> Vec<i32> {
    let members = members(child).into_iter().map(|member| member.pid);
    std::iter::once(child.as_raw()).chain(members).collect()
}

/// Kills what the ended child left in its group and session; returns how many there were, and the numbers
/// of those that could not be ended.
pub async fn sweep(child: Pid) -> (usize, Vec<i32>) {
    sweep_with(child, VANISH, signal_all).await
}

async fn sweep_with(child: Pid, vanish: Duration, kill: fn(Pid, Signal)) -> (usize, Vec<i32>) {
    let found = members(child).len();
    if found == 0 {
        return (0, Vec::new());
    }
    let give_up = tokio::time::Instant::now() + vanish;
    loop {
        kill(child, Signal::SIGKILL);
        let left: Vec<i32> = members(child).iter().map(|member| member.pid).collect();
        if left.is_empty() || tokio::time::Instant::now() >= give_up {
            return (found - left.len().min(found), left);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    /// No process can be made that outlives SIGKILL, so a signal that does nothing stands for one.
    #[tokio::test(flavor = "current_thread")]
    async fn what_a_kill_does_not_end_is_named() {
        let mut leader = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let group = Pid::from_raw(leader.id() as i32);
        let mut text = String::new();
        let mut pipe = leader.stdout.take().unwrap();
        std::io::Read::read_to_string(&mut pipe, &mut text).unwrap();
        let sleeper: i32 = text.trim().parse().unwrap();
        leader.wait().unwrap();
        let deaf = sweep_with(group, Duration::ZERO, |_, _| {}).await;
        assert_eq!(deaf, (0, vec![sleeper]));
        assert_eq!(alive(group), [group.as_raw(), sleeper]);
        assert_eq!(sweep(group).await, (1, Vec::new()));
    }
}

#[derive(Debug, Clone, Copy)]
struct Member {
    pid: i32,
    group: i32,
}

/// Living processes of the child's group or session, without the child itself. A dead one that its
/// parent has not reaped is nothing to wait for: in a container, nobody may ever reap it.
fn members(child: Pid) -> Vec<Member> {
    let Ok(processes) = procfs::process::all_processes() else {
        return Vec::new();
    };
    let leader = child.as_raw();
    processes
        .filter_map(|process| process.ok()?.stat().ok())
        .filter(|stat| stat.pid != leader && (stat.pgrp == leader || stat.session == leader))
        .filter(|stat| !matches!(stat.state, 'Z' | 'X' | 'x'))
        .map(|stat| Member {
            pid: stat.pid,
            group: stat.pgrp,
        })
        .collect()
}
