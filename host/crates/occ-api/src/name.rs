//! The rule for names of resources.

/// Longest name, in code points.
pub const NAME_CHARS_MAX: usize = 200;

/// 1–200 code points, no white space at either end, no C0, DEL or C1 control, no U+2028 or U+2029.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let length = text.chars().count();
    (1..=NAME_CHARS_MAX).contains(&length)
        && text.trim() == text
        && !text
            .chars()
            .any(|character| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}'))
}

/// A DNS label: 1–63 of `a-z`, `0-9`, `-`, no hyphen at either end.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_code_points_and_refuse_controls() {
        assert!(is_name("Klein – 小 🦀"));
        assert!(is_name(&"🦀".repeat(200)));
        for wrong in ["", " a", "a ", "a\u{7f}", "a\u{85}b", "a\u{2028}b", "\u{3000}a", &"x".repeat(201)] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
        assert!(
            is_dns_label("acme-1")
                && !is_dns_label("Acme")
                && !is_dns_label("-a")
                && !is_dns_label(&"a".repeat(64))
        );
    }
}
