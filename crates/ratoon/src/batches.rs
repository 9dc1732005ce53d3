//! Step 5 of 10: what fits a request. Greedy, in order, by adding up estimates; nothing is serialised again.

use crate::count::Estimate;

/// What requests may hold and what their fixed parts cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceilings {
    pub(crate) max_state_tokens: u64,
    pub(crate) max_request_tokens: u64,
    /// A state without units.
    pub(crate) state_frame: Estimate,
    /// Everything around the state and the questions of a request.
    pub(crate) request_frame: Estimate,
    /// A comma between two units or two questions.
    pub(crate) comma: Estimate,
}

/// Tokens that every request is charged on top of its estimate.
const REQUEST_RESERVE: u64 = 256;

/// The costs of one unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) unit: Estimate,
    pub(crate) question: Estimate,
}

/// A planned request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Indices of its units, in order.
    pub(crate) units: Vec<usize>,
    /// Estimate of its state.
    pub(crate) state_tokens: u64,
}

/// Packs units in order. A unit that does not fit behind the current ones closes the batch and begins another
/// if it fits alone; otherwise it is left out for good and the closed batch stays closed.
pub(crate) fn pack(costs: &[Cost], ceilings: &Ceilings) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    // The open batch's sums, without frames.
    let mut open: Option<Cost> = None;
    for (index, cost) in costs.iter().enumerate() {
        let behind = open.map(|sum| Cost {
            unit: sum.unit + ceilings.comma + cost.unit,
            question: sum.question + ceilings.comma + cost.question,
        });
        let joined = behind.and_then(|sum| ceilings.state_tokens(&sum).map(|tokens| (sum, tokens)));
        if let (Some((sum, tokens)), Some(batch)) = (joined, batches.last_mut()) {
            batch.units.push(index);
            batch.state_tokens = tokens;
            open = Some(sum);
            continue;
        }
        open = None;
        if let Some(state_tokens) = ceilings.state_tokens(cost) {
            batches.push(Batch { units: vec![index], state_tokens });
            open = Some(*cost);
        }
    }
    batches
}

impl Ceilings {
    /// The state's tokens if the request fits.
    fn state_tokens(&self, sum: &Cost) -> Option<u64> {
        let state = self.state_frame + sum.unit;
        let request = self.request_frame + state + sum.question;
        let fits = state.tokens() <= self.max_state_tokens
            && request.tokens() + REQUEST_RESERVE <= self.max_request_tokens;
        fits.then(|| state.tokens())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_of(sizes: &[usize], max_state_tokens: u64) -> Vec<Vec<usize>> {
        let none = Estimate::default();
        let costs: Vec<Cost> = sizes
            .iter()
            .map(|&size| Cost { unit: Estimate::of(&"!".repeat(size)), question: none })
            .collect();
        let ceilings = Ceilings {
            max_state_tokens,
            max_request_tokens: u64::MAX,
            state_frame: none,
            request_frame: none,
            comma: Estimate::of(","),
        };
        pack(&costs, &ceilings).into_iter().map(|batch| batch.units).collect()
    }

    #[test]
    fn units_are_packed_greedily_in_order() {
        assert_eq!(units_of(&[4, 4, 4, 4], 9), [vec![0, 1], vec![2, 3]]);
        assert_eq!(units_of(&[4, 4, 4], 8), [vec![0], vec![1], vec![2]]);
        assert_eq!(units_of(&[], 8), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_unit_too_large_for_any_request_closes_the_batch_and_is_left_out() {
        assert_eq!(units_of(&[2, 20, 2, 2], 9), [vec![0], vec![2, 3]]);
        assert_eq!(units_of(&[20], 9), Vec::<Vec<usize>>::new());
    }
}
