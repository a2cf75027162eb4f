//! Searching: what texts and questions have in common, letter by letter.
//!
//! Texts are normalized (lower case, full-width letters, separate Hangul letters put together), and
//! every letter and every two neighbours within a word are kept in an index. A search is split
//! into words; all pairs of all its words must be in the index of a text, and each word must
//! stand somewhere in its text. Initial consonants are kept too: "ㅎㄱ" finds 한강.

use std::collections::BTreeSet;

pub const WORDS_MAX: usize = 6;
pub const GRAMS_MAX: usize = 16;
pub const QUERY_CHARS_MAX: usize = 100;

const SYLLABLE_FIRST: u32 = 0xAC00;
const SYLLABLE_LAST: u32 = 0xD7A3;
const VOWELS: u32 = 21;
const FINALS: u32 = 28;
/// The initial consonants as they are typed, in the order of the syllables.
const INITIALS: [char; 19] = [
    'ㄱ', 'ㄲ', 'ㄴ', 'ㄷ', 'ㄸ', 'ㄹ', 'ㅁ', 'ㅂ', 'ㅃ', 'ㅅ', 'ㅆ', 'ㅇ', 'ㅈ', 'ㅉ', 'ㅊ', 'ㅋ',
    'ㅌ', 'ㅍ', 'ㅎ',
];

/// What is stored of a text to find it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchText {
    /// The normalised words, and their initial consonants after a line break.
    pub text: String,
    pub grams: BTreeSet<String>,
}

impl SearchText {
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> SearchText {
        let normalized: Vec<String> = texts.into_iter().map(normalize).collect();
        let normalized = normalized.join("\n");
        let initials: String = normalized.chars().map(initial).collect();
        let text = format!("{normalized}\n{initials}");
        let grams = text.split_whitespace().flat_map(grams).collect();
        SearchText { text, grams }
    }
}

/// A parsed search text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// Normalised, and at least one.
    words: Vec<String>,
    grams: Vec<String>,
}

impl SearchQuery {
    /// `None` if the text has no words.
    pub fn parse(text: &str) -> Option<SearchQuery> {
        let normalized = normalize(text);
        let words: Vec<String> =
            normalized.split_whitespace().take(WORDS_MAX).map(str::to_owned).collect();
        if words.is_empty() {
            return None;
        }
        let distinct: BTreeSet<String> = words.iter().flat_map(|word| query_grams(word)).collect();
        // A few grams narrow the search down enough, because whole words are compared anyway.
        Some(SearchQuery { words, grams: distinct.into_iter().take(GRAMS_MAX).collect() })
    }

    pub fn grams(&self) -> &[String] {
        &self.grams
    }

    /// The words as patterns of SQL's `like … escape '\'`, with its special characters escaped.
    pub fn patterns(&self) -> Vec<String> {
        let escape = |word: &String| {
            let word = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{word}%")
        };
        self.words.iter().map(escape).collect()
    }

    /// The same text for all queries that mean the same, as a key of the cache.
    pub fn canonical(&self) -> String {
        self.words.join(" ")
    }
}

/// Every letter of a word and every pair of neighbours.
fn grams(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let ones = letters.iter().map(char::to_string);
    ones.chain(letters.windows(2).map(|pair| pair.iter().collect())).collect()
}

/// The grams to search a word by: its pairs, or its only letter.
fn query_grams(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    match letters.len() {
        1 => vec![word.to_owned()],
        _ => letters.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}

/// Maps different spellings that look the same to one.
fn normalize(text: &str) -> String {
    let wide = |c: char| match c {
        '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(c) - 0xFF01 + 0x21).expect("it is ASCII")
        }
        c => c,
    };
    let lower = text.chars().map(wide).flat_map(char::to_lowercase);
    let mut normalized = String::with_capacity(text.len());
    for letter in lower {
        push_letter(&mut normalized, letter);
    }
    normalized
}

/// Appends a letter, and composes Hangul that some file systems and keyboards decompose.
fn push_letter(normalized: &mut String, letter: char) {
    let code = u32::from(letter);
    let composed = normalized.chars().next_back().and_then(|last| compose(last, code));
    if let Some(composed) = composed {
        normalized.pop();
        normalized.push(composed);
    } else if let Some(initial) = code.checked_sub(0x1100).filter(|index| *index < 19) {
        normalized.push(INITIALS[usize::try_from(initial).expect("below 19")]);
    } else {
        normalized.push(letter);
    }
}

/// Composes an initial with a vowel, or an open syllable with a final consonant.
fn compose(last: char, code: u32) -> Option<char> {
    if let Some(vowel) = code.checked_sub(0x1161).filter(|index| *index < VOWELS) {
        let initial = INITIALS.iter().position(|initial| *initial == last)?;
        let initial = u32::try_from(initial).expect("below 19");
        return char::from_u32(SYLLABLE_FIRST + (initial * VOWELS + vowel) * FINALS);
    }
    let final_consonant = code.checked_sub(0x11A7).filter(|index| (1..FINALS).contains(index))?;
    let syllable = u32::from(last);
    let is_open = (SYLLABLE_FIRST..=SYLLABLE_LAST).contains(&syllable)
        && (syllable - SYLLABLE_FIRST).is_multiple_of(FINALS);
    is_open.then(|| char::from_u32(syllable + final_consonant)).flatten()
}

/// The initial consonant of a syllable; other characters stay as they are.
fn initial(letter: char) -> char {
    let code = u32::from(letter);
    if !(SYLLABLE_FIRST..=SYLLABLE_LAST).contains(&code) {
        return letter;
    }
    let index = (code - SYLLABLE_FIRST) / (VOWELS * FINALS);
    INITIALS[usize::try_from(index).expect("below 19")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an index over the text has all that the search asks for, and the text has it.
    fn finds(text: &str, search: &str) -> bool {
        let searchable = SearchText::new([text]);
        let Some(search) = SearchQuery::parse(search) else { return false };
        search.grams.iter().all(|gram| searchable.grams.contains(gram))
            && search.words.iter().all(|word| searchable.text.contains(word))
    }

    #[test]
    fn korean_and_english_are_found_by_any_part() {
        for search in
            ["한강", "강", "밴드", "한강 밴드", "밴드 한강", "LIVE", "live", "iv", "ＬＩＶＥ"]
        {
            assert!(finds("한강 밴드 Live 2026", search), "{search}");
        }
        for search in ["강밴", "한 강남", "lives", "", " ", "한강x"] {
            assert!(!finds("한강 밴드 Live 2026", search), "{search}");
        }
    }

    #[test]
    fn initial_consonants_find_their_syllables() {
        for search in ["ㅎㄱ", "ㅂㄷ", "ㅎ", "ㅎㄱ ㅂㄷ", "ㅎㄱ 밴드"] {
            assert!(finds("한강 밴드", search), "{search}");
        }
        assert!(!finds("한강 밴드", "ㄱㅎ"));
        assert!(!finds("한강 밴드", "ㄱㅂ"), "not over the end of a word");
    }

    #[test]
    fn hangul_that_was_taken_apart_is_put_together() {
        let apart = "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1161}\u{11bc}";
        assert_eq!(normalize(apart), "한강");
        assert!(finds(apart, "한강") && finds("한강", apart));
        assert_eq!(normalize("\u{1112}"), "ㅎ");
        assert_eq!(normalize("각\u{11a8}"), "각\u{11a8}", "a syllable has one tail");
    }

    #[test]
    fn signs_of_the_pattern_are_signs_of_the_text() {
        let patterns = |text: &str| SearchQuery::parse(text).map(|search| search.patterns());
        assert_eq!(patterns(r"100%_a\'"), Some(vec![r"%100\%\_a\\'%".to_owned()]));
        assert_eq!(patterns(" a  b "), Some(vec!["%a%".to_owned(), "%b%".to_owned()]));
        assert_eq!(patterns("\t"), None);
    }

    #[test]
    fn a_question_is_bounded() {
        let long: String = (0..100).map(|i| char::from_u32(0xAC00 + i * 31).unwrap()).collect();
        assert_eq!(SearchQuery::parse(&long).unwrap().grams.len(), GRAMS_MAX);
        assert_eq!(SearchQuery::parse(&"a ".repeat(50)).unwrap().words.len(), WORDS_MAX);
    }
}
