//! The arithmetic of the decision-token estimate, 64 bytes at a time: it runs over everything that is sent.
//!
//! A run of letters costs 1 + (length - 1) div 6 tokens, a digit half a token, any other character that is not
//! white space one token (contract, section 7).

use crate::text::is_whitespace;

const BLOCK: usize = 64;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The classes of the bytes of a block, one bit a byte, the first byte lowest.
#[derive(Default)]
struct Classes {
    letters: u64,
    digits: u64,
    spaces: u64,
    not_ascii: u64,
}

/// The estimate of `json` in half tokens.
pub(super) fn halves(json: &str) -> u64 {
    let bytes = json.as_bytes();
    let (mut halves, mut letter_tokens) = (0, 0);
    // Letters at the end of the bytes so far, whose run may go on.
    let mut open_run = 0;
    let mut start = 0;
    while start < bytes.len() {
        let block = &bytes[start..bytes.len().min(start + BLOCK)];
        let classes = classify(block);
        letter_tokens += tokens_of_runs(classes.letters, &mut open_run);
        let free_or_counted = classes.letters | classes.digits | classes.spaces | classes.not_ascii;
        halves += u64::from(classes.digits.count_ones() + 2 * free_or_counted.count_zeros());
        if classes.not_ascii != 0 {
            halves += 2 * characters_beyond_ascii(json, start, classes.not_ascii);
        }
        start += BLOCK;
    }
    halves + 2 * letter_tokens
}

/// The last block may be short; what is missing is filled with spaces, which cost nothing.
fn classify(bytes: &[u8]) -> Classes {
    match bytes.first_chunk::<BLOCK>() {
        Some(block) => classify_block(block),
        None => {
            let mut block = [b' '; BLOCK];
            block[..bytes.len()].copy_from_slice(bytes);
            classify_block(&block)
        }
    }
}

fn classify_block(block: &[u8; BLOCK]) -> Classes {
    let mut classes = Classes::default();
    for (at, word) in block.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes"));
        let not_ascii = word & HIGH;
        // Without high bits the additions below cannot carry from byte to byte.
        let low = word & !HIGH;
        let at_least = |byte: u8, value: u64| value + repeat(0x80 - byte);
        // Folding the case also moves a few signs, but none of them among the letters.
        let folded = low | repeat(0x20);
        let letters = at_least(b'a', folded) & !at_least(b'z' + 1, folded) & !word & HIGH;
        let digits = at_least(b'0', low) & !at_least(b'9' + 1, low) & !word & HIGH;
        let spaces = at_least(b' ', low) & !at_least(b' ' + 1, low) & !word & HIGH;
        let shift = at * 8;
        classes.letters |= bits(letters) << shift;
        classes.digits |= bits(digits) << shift;
        classes.spaces |= bits(spaces) << shift;
        classes.not_ascii |= bits(not_ascii) << shift;
    }
    classes
}

fn repeat(byte: u8) -> u64 {
    u64::from(byte) * 0x0101_0101_0101_0101
}

/// The high bits of eight bytes as eight bits.
fn bits(high: u64) -> u64 {
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Tokens of the runs of letters in a block. A run that goes on from the block before is charged for what it
/// adds; one that reaches the end of this block stays open.
fn tokens_of_runs(letters: u64, open_run: &mut u64) -> u64 {
    let length_at = |start: u32| u64::from((!(letters >> start)).trailing_zeros()).min(64 - u64::from(start));
    let first = length_at(0);
    let joined = *open_run + first;
    let mut tokens = joined.div_ceil(6) - open_run.div_ceil(6);
    if first == 64 {
        *open_run = joined;
        return tokens;
    }
    *open_run = 0;
    let mut starts = letters & !(letters << 1) & !1;
    while starts != 0 {
        let start = starts.trailing_zeros();
        starts &= starts - 1;
        let length = length_at(start);
        tokens += length.div_ceil(6);
        if start as u64 + length == 64 {
            *open_run = length;
        }
    }
    tokens
}

/// Characters beyond ASCII that begin in the block at `start` and are not white space.
fn characters_beyond_ascii(json: &str, start: usize, mut not_ascii: u64) -> u64 {
    let mut count = 0;
    while not_ascii != 0 {
        let at = start + not_ascii.trailing_zeros() as usize;
        not_ascii &= not_ascii - 1;
        let lead = json.as_bytes()[at];
        if lead & 0xc0 == 0x80 {
            continue;
        }
        // All white space beyond ASCII begins with one of these bytes.
        let may_be_space = matches!(lead, 0xc2 | 0xe1..=0xe3);
        count += u64::from(!(may_be_space && json[at..].chars().next().is_some_and(is_whitespace)));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of the contract, word for word.
    fn plainly(json: &str) -> u64 {
        let mut halves = 0;
        let mut letters = 0u64;
        for character in json.chars().chain(['\n']) {
            if character.is_ascii_alphabetic() {
                letters += 1;
                continue;
            }
            if letters > 0 {
                halves += 2 * (1 + (letters - 1) / 6);
                letters = 0;
            }
            halves += match character {
                '0'..='9' => 1,
                other if is_whitespace(other) => 0,
                _ => 2,
            };
        }
        halves
    }

    #[test]
    fn blocks_give_what_the_rule_says() {
        let piece = "The quick_brown-fox 42 jumps\\n over {\"k\":[1.5e3,null]} @[\\]^_`{|}~\u{7f} café 中文。\u{3000}\u{a0}é😀\u{2028}";
        for repeats in [1, 2, 7] {
            let text = piece.repeat(repeats);
            for start in text.char_indices().map(|(at, _)| at) {
                assert_eq!(halves(&text[start..]), plainly(&text[start..]), "{:?}", &text[start..]);
            }
        }
        for length in 0..200 {
            for text in [
                "a".repeat(length),
                format!(" {}1", "Z".repeat(length)),
                "中".repeat(length),
                "9".repeat(length),
            ] {
                assert_eq!(halves(&text), plainly(&text), "{length}");
            }
        }
    }
}
