//! In which order trials are run, and on which CPU.
//!
//! Round by round, every operation has one trial a round, in an order that a recorded seed gives: so
//! drift of the machine hits all alike, and an interrupted run has something of everything. The order
//! depends on nothing but seed, round and key, so a resume goes on where it was.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What is scheduled: one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its key in the seeded order; different for different records.
    pub key: String,
    /// Planned slots.
    pub trials: u32,
    /// Comes after everything that is not.
    pub deferred: bool,
}

/// One planned slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Index of the item.
    pub item: usize,
    /// Index of the trial.
    pub trial: u32,
}

/// All slots of all items in order.
pub fn schedule(seed: &str, items: &[Item]) -> Vec<Slot> {
    let mut slots: Vec<(bool, u32, [u8; 32], Slot)> = items
        .iter()
        .enumerate()
        .flat_map(|(item, of)| {
            (0..of.trials).map(move |trial| {
                let place = place(seed, trial, &of.key);
                (of.deferred, trial, place, Slot { item, trial })
            })
        })
        .collect();
    slots.sort();
    slots.into_iter().map(|(_, _, _, slot)| slot).collect()
}

fn place(seed: &str, trial: u32, key: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.as_bytes());
    hash.update([0]);
    hash.update(trial.to_le_bytes());
    hash.update(key.as_bytes());
    hash.finalize().into()
}

/// A CPU for each group (all operations of an instance go to one): the most expensive first, each to
/// the CPU with the least to do. `fixed` are groups that have a CPU already, from before a resume.
pub fn assign(
    costs: &BTreeMap<String, f64>,
    fixed: &BTreeMap<String, u32>,
    cpus: &[u32],
) -> BTreeMap<String, u32> {
    let mut load: Vec<(f64, u32)> = cpus.iter().map(|&cpu| (0.0, cpu)).collect();
    let mut assigned = BTreeMap::new();
    let mut give = |group: &str, cpu: u32, load: &mut Vec<(f64, u32)>| {
        assigned.insert(group.to_owned(), cpu);
        if let Some(entry) = load.iter_mut().find(|(_, c)| *c == cpu) {
            entry.0 += costs.get(group).copied().unwrap_or(0.0);
        }
    };
    for (group, &cpu) in fixed {
        give(group, cpu, &mut load);
    }
    let mut open: Vec<(&String, f64)> = costs
        .iter()
        .filter(|(group, _)| !fixed.contains_key(*group))
        .map(|(group, &cost)| (group, cost))
        .collect();
    open.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    for (group, _) in open {
        let least = load
            .iter()
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|&(_, cpu)| cpu);
        if let Some(cpu) = least {
            give(group, cpu, &mut load);
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(deferred: &[usize]) -> Vec<Item> {
        (0..20)
            .map(|n| Item {
                key: format!("c/l{n}/ref/reference/sign"),
                trials: 5,
                deferred: deferred.contains(&n),
            })
            .collect()
    }

    #[test]
    fn each_round_has_each_item_once_in_an_order_of_its_own() {
        let slots = schedule("seed", &items(&[]));
        assert_eq!(slots.len(), 100);
        let rounds: Vec<Vec<usize>> = slots
            .chunks(20)
            .enumerate()
            .map(|(round, slots)| {
                assert!(slots.iter().all(|s| s.trial == round as u32));
                slots.iter().map(|s| s.item).collect()
            })
            .collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(rounds.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(slots, schedule("seed", &items(&[])));
        assert_ne!(slots, schedule("another", &items(&[])));
    }

    #[test]
    fn what_is_deferred_comes_last_in_all_its_rounds() {
        let slots = schedule("seed", &items(&[3, 4]));
        let first = slots.iter().position(|s| [3, 4].contains(&s.item)).unwrap();
        assert_eq!(first, 90);
    }

    #[test]
    fn groups_are_spread_by_cost_and_keep_their_cpu() {
        let costs: BTreeMap<String, f64> = [("a", 9.0), ("b", 5.0), ("c", 4.0), ("d", 1.0)]
            .map(|(g, c)| (g.to_owned(), c))
            .into();
        let to = |pairs: &[(&str, u32)]| -> BTreeMap<String, u32> {
            pairs.iter().map(|&(g, c)| (g.to_owned(), c)).collect()
        };
        assert_eq!(
            assign(&costs, &BTreeMap::new(), &[2, 6]),
            to(&[("a", 2), ("b", 6), ("c", 6), ("d", 2)])
        );
        assert_eq!(
            assign(&costs, &to(&[("c", 2), ("d", 2)]), &[2, 6]),
            to(&[("a", 6), ("b", 2), ("c", 2), ("d", 2)])
        );
    }
}
