//! Progress as typed events, and their readers: bars on a terminal, plain lines elsewhere, nothing
//! under `--quiet`.
//!
//! Phases say what happened and how much of the planned time it was; how that looks is decided here.
//! Readers write to standard error and only when an event comes, and no event comes while the only
//! timed loop runs: there is no clock that redraws.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Duration;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A phase begins; planned time of all its steps.
    Begin {
        /// Which.
        phase: &'a str,
        /// Number of steps.
        steps: usize,
        /// Planned time.
        planned: Duration,
    },
    /// A step ended.
    Step {
        /// What it was about.
        label: &'a str,
        /// Its part of the planned time.
        planned: Duration,
        /// What to say of it.
        end: StepEnd<'a>,
    },
    /// A phase has ended.
    End {
        /// Which.
        phase: &'a str,
        /// How long it took.
        took: Duration,
    },
    /// Something to know.
    Note(&'a str),
    /// Something that is wrong.
    Problem(&'a str),
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEnd<'a> {
    /// One of many alike.
    Silent,
    /// Worth a line.
    Good(&'a str),
    /// Worth a line on any reader.
    Bad(&'a str),
}

/// A reader of events; the build phase tells of its own from several threads.
pub trait Progress: Sync {
    /// Hears of one event.
    fn event(&self, event: Event);
}

/// The reader for this process: `quiet` as asked for, bars on a terminal, lines elsewhere.
pub fn reader(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Quiet)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bars::default())
    } else {
        Box::new(Lines)
    }
}

/// Says nothing; problems are in the summary and in the exit status.
#[derive(Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _: Event) {}
}

/// One line for each thing worth one.
#[derive(Debug)]
pub struct Lines;

impl Progress for Lines {
    fn event(&self, event: Event) {
        if let Some(line) = line(&event) {
            // A closed standard error must not end a campaign.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// The line of an event; `None` for what is one of many alike.
fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Begin {
            phase, steps: 0, ..
        } => format!("{phase}: nothing to do"),
        Event::Begin {
            phase,
            steps,
            planned,
        } if planned.is_zero() => format!("{phase}: {steps} to do"),
        Event::Begin {
            phase,
            steps,
            planned,
        } => format!("{phase}: {steps} to do, about {}", rough(*planned)),
        Event::Step { label, end, .. } => match end {
            StepEnd::Silent => return None,
            StepEnd::Good(text) | StepEnd::Bad(text) => format!("  {label}: {text}"),
        },
        Event::End { phase, took } => format!("{phase}: done in {}", rough(*took)),
        Event::Note(text) => (*text).to_owned(),
        Event::Problem(text) => format!("problem: {text}"),
    })
}

/// A duration as one says it.
pub fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60, seconds) {
        (0, 0, 0..=9) => format!("{:.1} s", duration.as_secs_f64()),
        (0, 0, _) => format!("{seconds} s"),
        (0, minutes, _) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes, _) => format!("{hours} h {} min", minutes % 60),
    }
}

/// A bar for the phase that runs, and lines above it for what is worth one.
#[derive(Debug, Default)]
pub struct Bars {
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress for Bars {
    fn event(&self, event: Event) {
        match &event {
            Event::Begin {
                phase,
                steps,
                planned,
            } => self.begin(phase, *steps, *planned),
            Event::Step {
                label,
                planned,
                end,
            } => self.step(label, *planned, *end, &event),
            Event::End { .. } => {
                if let Some(bar) = self.replace(None) {
                    bar.finish_and_clear();
                }
                self.print(&event);
            }
            Event::Note(_) | Event::Problem(_) => self.print(&event),
        }
    }
}

impl Bars {
    /// The bar now; clones are the same bar.
    fn bar(&self) -> Option<ProgressBar> {
        self.bar.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn replace(&self, bar: Option<ProgressBar>) -> Option<ProgressBar> {
        std::mem::replace(
            &mut *self.bar.lock().unwrap_or_else(|e| e.into_inner()),
            bar,
        )
    }

    fn begin(&self, phase: &str, steps: usize, planned: Duration) {
        if steps == 0 {
            return;
        }
        // Steps of unknown length count one each.
        let length = match planned.is_zero() {
            true => steps as u64,
            false => planned.as_millis() as u64,
        };
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let style = ProgressStyle::with_template(
            "{prefix:>9} [{bar:30}] {percent:>3} %  {eta} left  {wide_msg}",
        )
        .expect("the template is fixed")
        .progress_chars("=> ");
        bar.set_style(style);
        bar.set_prefix(phase.to_owned());
        self.replace(Some(bar));
    }

    fn step(&self, label: &str, planned: Duration, end: StepEnd, event: &Event) {
        if let Some(bar) = self.bar() {
            bar.set_message(label.to_owned());
            bar.inc((planned.as_millis() as u64).max(1));
        }
        if let StepEnd::Bad(_) = end {
            self.print(event);
        }
    }

    fn print(&self, event: &Event) {
        let Some(line) = line(event) else { return };
        match self.bar() {
            Some(bar) => bar.println(line),
            None => {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_worth_one() {
        let step = |end| Event::Step {
            label: "sign-09/a/ref/reference/sign",
            planned: Duration::ZERO,
            end,
        };
        let begin = |steps, seconds| Event::Begin {
            phase: "measure",
            steps,
            planned: Duration::from_secs(seconds),
        };
        let cases = [
            (begin(0, 0), Some("measure: nothing to do")),
            (begin(270, 95), Some("measure: 270 to do, about 1 min 35 s")),
            (begin(18, 0), Some("measure: 18 to do")),
            (step(StepEnd::Silent), None),
            (
                step(StepEnd::Bad("CRASH")),
                Some("  sign-09/a/ref/reference/sign: CRASH"),
            ),
            (Event::Problem("x"), Some("problem: x")),
        ];
        for (event, expected) in cases {
            assert_eq!(line(&event).as_deref(), expected);
        }
    }

    #[test]
    fn durations_are_rough() {
        let text = |ms| rough(Duration::from_millis(ms));
        let cases = [
            (0, "0.0 s"),
            (1_250, "1.2 s"),
            (9_999, "10.0 s"),
            (10_000, "10 s"),
            (59_999, "59 s"),
            (60_000, "1 min 0 s"),
            (3_600_000, "1 h 0 min"),
            (90_061_000, "25 h 1 min"),
        ];
        for (ms, expected) in cases {
            assert_eq!(text(ms), expected, "{ms}");
        }
    }
}
