//! Runs of bytes that need no escape in a JSON string. The inner loop of reading and writing.

/// A stretch of a string in which every byte stands for itself.
#[derive(Debug, Default)]
pub(super) struct PlainRun {
    pub(super) bytes: usize,
    pub(super) code_points: u64,
}

/// The run of bytes at the start that mean themselves, and the byte that ends it: a quote, a backslash or a
/// control character. Eight bytes at a time, since nearly all of a history is inside strings.
pub(super) fn plain_run(bytes: &[u8]) -> (PlainRun, Option<u8>) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut run = PlainRun::default();
    let mut words = bytes.chunks_exact(8);
    for chunk in words.by_ref() {
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk of eight bytes"));
        let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = has_zero(word ^ (ONES * u64::from(b'"')));
        let backslash = has_zero(word ^ (ONES * u64::from(b'\\')));
        let ends = below_space | quote | backslash;
        if ends != 0 {
            // The lowest hit is exact; borrows can only raise false hits above a true one.
            let length = ends.trailing_zeros() as usize / 8;
            run.bytes += length;
            run.code_points += count_code_points(&chunk[..length]);
            return (run, Some(chunk[length]));
        }
        run.bytes += 8;
        run.code_points += 8;
        if word & HIGH != 0 {
            // Continuation bytes are 10xxxxxx: high bit set, the next one clear.
            run.code_points -= u64::from(((word & HIGH) & !(word << 1)).count_ones());
        }
    }
    for &byte in words.remainder() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            return (run, Some(byte));
        }
        run.bytes += 1;
        run.code_points += u64::from(!is_continuation(byte));
    }
    (run, None)
}

fn count_code_points(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| !is_continuation(byte)).count() as u64
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
