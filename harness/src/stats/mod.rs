//! The statistics that carry the claims: exactly rounded sums, quantiles, intervals, verdicts and
//! the comparison of two records.
//!
//! Two programs that follow the project's statistics page produce the same digits; the worked
//! example of that page is a test here. `audit` shares none of this code: it recomputes. The only
//! thing not ours is the t distribution (crate `statrs`).

mod compare;
mod describe;
mod fit;
mod sum;
mod timing;

pub use compare::{holm, noise_floor, welch, Welch, WelchError, LEAST_TRIALS};
pub use describe::{mad, median, quantile, sorted, student_t_975, tukey};
pub use fit::{fit, LEAST_SIZES};
pub use sum::exact_sum;
pub use timing::{derive_timing, TimingInput};
