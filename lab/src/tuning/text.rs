//! Texts of settings: which word of one counts, and whether it is what was written.

/// The word that counts of a text: of a choice, the one in brackets or parentheses.
pub fn active(text: &str) -> &str {
    let text = text.trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    between('[', ']').or_else(|| between('(', ')')).unwrap_or(text)
}

/// Whether a text says what was written: the same, the same mask in other digits, or a list that
/// has what was added to it.
pub(super) fn says(text: &str, value: &str) -> bool {
    let mask = |text: &str| {
        let digits: String = text.chars().filter(|c| *c != ',').collect();
        let is_mask = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    if let Some(controller) = value.strip_prefix('+') {
        return text.split_whitespace().any(|word| word == controller);
    }
    let text = active(text);
    text == value || mask(text).is_some_and(|text| Some(text) == mask(value))
}
