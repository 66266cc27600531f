//! The wish to stop, shared by everything that waits.
//!
//! The first Ctrl-C (or SIGTERM, or SIGHUP) asks politely: what runs is ended by a signal that it can
//! handle, and what is complete is saved. The second kills.

use std::io;
use std::sync::Arc;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;

/// How urgent a stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Go on.
    Go,
    /// End children politely, save, leave.
    Polite,
    /// End children at once.
    Kill,
}

#[derive(Debug, Clone, Copy)]
struct State {
    level: StopLevel,
    signal: Option<i32>,
}

/// A shared token; clones are the same token.
#[derive(Debug, Clone)]
pub struct Stop {
    state: Arc<watch::Sender<State>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop::new()
    }
}

impl Stop {
    /// A token that nothing but [`Stop::request`] raises.
    pub fn new() -> Self {
        let (state, _) = watch::channel(State {
            level: StopLevel::Go,
            signal: None,
        });
        Stop {
            state: Arc::new(state),
        }
    }

    /// A token that SIGINT, SIGTERM and SIGHUP raise by one level each. SIGHUP is left alone where it
    /// is ignored already (`nohup`). Listens on a thread of its own, which sleeps until then, so that
    /// a computation in the foreground hears of it too.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Stop::new();
        let theirs = stop.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || listen(&theirs, &ready))?;
        is_ready
            .recv()
            .map_err(|_| io::Error::other("the thread that listens for signals ended"))??;
        Ok(stop)
    }

    /// Raises the level by one step.
    pub fn request(&self) {
        self.raise(None);
    }

    fn raise(&self, signal: Option<i32>) {
        self.state.send_modify(|state| {
            state.level = match state.level {
                StopLevel::Go => StopLevel::Polite,
                StopLevel::Polite | StopLevel::Kill => StopLevel::Kill,
            };
            state.signal = state.signal.or(signal);
        });
    }

    /// The level now.
    pub fn level(&self) -> StopLevel {
        self.state.borrow().level
    }

    /// Whether anybody asked to stop.
    pub fn is_requested(&self) -> bool {
        self.level() > StopLevel::Go
    }

    /// The signal that asked first, if one did: 128 plus it is the exit status.
    pub fn signal(&self) -> Option<i32> {
        self.state.borrow().signal
    }

    /// Waits until the level is `level` or higher.
    pub async fn reached(&self, level: StopLevel) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| state.level >= level)
            .await;
    }
}

/// Body of the listening thread.
fn listen(stop: &Stop, ready: &std::sync::mpsc::Sender<io::Result<()>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return drop(ready.send(Err(error))),
    };
    runtime.block_on(async {
        let streams = (|| {
            let hangup = match hangup_is_ignored() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            };
            Ok((
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                hangup,
            ))
        })();
        let (mut interrupt, mut terminate, mut hangup) = match streams {
            Ok(streams) => streams,
            Err(error) => return drop(ready.send(Err(error))),
        };
        if ready.send(Ok(())).is_err() {
            return;
        }
        loop {
            let hung_up = async {
                match &mut hangup {
                    Some(stream) => stream.recv().await,
                    None => std::future::pending().await,
                }
            };
            let kind = tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                // A lost terminal ends the campaign as a request to terminate does.
                _ = hung_up => SignalKind::terminate(),
            };
            stop.raise(Some(kind.as_raw_value()));
        }
    });
}

fn hangup_is_ignored() -> bool {
    let bit = 1u64 << (SignalKind::hangup().as_raw_value() - 1);
    procfs::process::Process::myself()
        .and_then(|me| me.status())
        .is_ok_and(|status| status.sigign & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_polite_and_the_second_kills() {
        let stop = Stop::new();
        let clone = stop.clone();
        assert_eq!(stop.level(), StopLevel::Go);
        clone.request();
        assert_eq!(stop.level(), StopLevel::Polite);
        clone.raise(Some(2));
        clone.raise(Some(15));
        assert_eq!((stop.level(), stop.signal()), (StopLevel::Kill, Some(2)));
    }
}
