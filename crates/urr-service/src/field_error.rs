//! What is wrong with a field of a request, in the words of people.
//!
//! serde describes a mistake in the words of the parser and with the names of Rust types. Here its
//! text is read and said again: which field, and what is expected.

use std::borrow::Cow;

use urr_kernel::Language;

/// Where in a request a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPart {
    Body,
    Query,
    Path,
}

impl RequestPart {
    fn name(self, language: Language) -> &'static str {
        match (self, language) {
            (RequestPart::Body, Language::English) => "The body",
            (RequestPart::Body, Language::Korean) => "요청 본문은",
            (RequestPart::Query, Language::English) => "The query of the address",
            (RequestPart::Query, Language::Korean) => "조회 조건은",
            (RequestPart::Path, Language::English) => "A part of the path",
            (RequestPart::Path, Language::Korean) => "주소의 값은",
        }
    }
}

/// A mistake in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// `items[2].name`; none if the whole is meant.
    field: Option<String>,
    problem: FieldProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldProblem {
    Missing,
    Unknown,
    Repeated,
    Wrong(ExpectedValue),
}

/// What a field must be: the end of a sentence in each language.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExpectedValue {
    english: Cow<'static, str>,
    korean: Cow<'static, str>,
}

impl FieldError {
    /// Reads what serde says: `seatIds[1]: invalid type: string "x", expected u32 at line 1 column 17`.
    pub fn read(text: &str) -> FieldError {
        let text = text.rfind(" at line ").map_or(text, |end| &text[..end]);
        let is_path = |path: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.[]?".contains(c);
            !path.is_empty() && path.chars().all(is_part)
        };
        match text.split_once(": ").filter(|(path, _)| is_path(path)) {
            Some((path, message)) => FieldError::at(Some(path), message),
            None => FieldError::at(None, text),
        }
    }

    /// Reads what serde says of a field, or of the whole.
    pub fn at(path: Option<&str>, message: &str) -> FieldError {
        // The path of an error about a field's name ends before it, or at it.
        let path = path.map(|path| path.trim_end_matches(".?"));
        let path = path.filter(|path| !path.is_empty() && *path != "." && *path != "?");
        let named = [
            ("missing field", FieldProblem::Missing),
            ("unknown field", FieldProblem::Unknown),
            ("duplicate field", FieldProblem::Repeated),
        ];
        for (words, problem) in named {
            let Some(name) = message.strip_prefix(words).and_then(quoted) else { continue };
            let field = match path {
                Some(path) if path == name || path.ends_with(&format!(".{name}")) => {
                    path.to_owned()
                }
                Some(path) => format!("{path}.{name}"),
                None => name.to_owned(),
            };
            return FieldError { field: Some(field), problem };
        }
        let problem = FieldProblem::Wrong(ExpectedValue::read(message));
        FieldError { field: path.map(str::to_owned), problem }
    }

    /// The sentence about a mistake in this part of a request.
    pub fn sentence(&self, language: Language, part: RequestPart) -> String {
        let is_english = language == Language::English;
        let pick = |english: String, korean: String| if is_english { english } else { korean };
        let field = self.field.as_deref().unwrap_or_default();
        match &self.problem {
            FieldProblem::Missing => pick(
                format!("The field `{field}` is missing."),
                format!("`{field}` 항목이 빠졌습니다."),
            ),
            FieldProblem::Unknown => pick(
                format!("There is no field `{field}` here."),
                format!("`{field}` 항목은 사용할 수 없습니다."),
            ),
            FieldProblem::Repeated => pick(
                format!("The field `{field}` is there twice."),
                format!("`{field}` 항목이 두 번 들어 있습니다."),
            ),
            FieldProblem::Wrong(ExpectedValue { english, korean }) => {
                let subject = match &self.field {
                    Some(field) => pick(format!("`{field}`"), format!("`{field}` 값은")),
                    None => part.name(language).to_owned(),
                };
                pick(format!("{subject} must be {english}."), format!("{subject} {korean}."))
            }
        }
    }
}

/// The first text in backquotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

impl ExpectedValue {
    const ANY_WHOLE_NUMBER: ExpectedValue = ExpectedValue::of("a whole number", "정수여야 합니다");
    const BOOLEAN: ExpectedValue = ExpectedValue::of("true or false", "true 또는 false여야 합니다");
    const UUID: ExpectedValue = ExpectedValue::of("a UUID", "UUID여야 합니다");
    const TIME: ExpectedValue = ExpectedValue::of(
        "a time such as 2027-05-01T19:00:00+09:00",
        "2027-05-01T19:00:00+09:00 형식의 일시여야 합니다",
    );
    /// serde says nothing that helps.
    const VALID: ExpectedValue = ExpectedValue::of("a valid value", "올바른 값이어야 합니다");

    const fn of(english: &'static str, korean: &'static str) -> ExpectedValue {
        ExpectedValue { english: Cow::Borrowed(english), korean: Cow::Borrowed(korean) }
    }

    fn whole_number(min: i128, max: i128) -> ExpectedValue {
        ExpectedValue {
            english: format!("a whole number from {min} to {max}").into(),
            korean: format!("{min} 이상 {max} 이하의 정수여야 합니다").into(),
        }
    }

    fn one_of(names: &str) -> ExpectedValue {
        ExpectedValue {
            english: format!("one of {names}").into(),
            korean: format!("다음 중 하나여야 합니다: {names}").into(),
        }
    }

    fn read(message: &str) -> ExpectedValue {
        // What std says of a number in a query.
        if message.starts_with("invalid digit") || message.starts_with("cannot parse integer") {
            return ExpectedValue::ANY_WHOLE_NUMBER;
        }
        if message.starts_with("number too ") {
            let korean = "허용된 범위의 숫자여야 합니다";
            return ExpectedValue::of("a number within the allowed range", korean);
        }
        if message.contains("was not `true` or `false`") {
            return ExpectedValue::BOOLEAN;
        }
        if message.starts_with("UUID parsing failed") {
            return ExpectedValue::UUID;
        }
        let Some((found, expected)) = message.split_once(", expected ") else {
            let is_time = ["datetime", "timestamp", "date", "offset", "failed to parse"];
            return match is_time.iter().any(|word| message.contains(word)) {
                true => ExpectedValue::TIME,
                false => ExpectedValue::VALID,
            };
        };
        if found.starts_with("unknown variant") {
            let names = expected.split('`').skip(1).step_by(2);
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            return ExpectedValue::one_of(&names.join(", "));
        }
        ExpectedValue::of_type(expected)
    }

    /// By the name that serde has for a type.
    fn of_type(expected: &str) -> ExpectedValue {
        let (of, whole) = (ExpectedValue::of, ExpectedValue::whole_number);
        match expected {
            "u8" => whole(0, u8::MAX.into()),
            "u16" => whole(0, u16::MAX.into()),
            "u32" => whole(0, u32::MAX.into()),
            "u64" | "u128" | "usize" => {
                of("a whole number of at least 0", "0 이상의 정수여야 합니다")
            }
            "i8" => whole(i8::MIN.into(), i8::MAX.into()),
            "i16" => whole(i16::MIN.into(), i16::MAX.into()),
            "i32" => whole(i32::MIN.into(), i32::MAX.into()),
            "i64" | "i128" | "isize" => ExpectedValue::ANY_WHOLE_NUMBER,
            "f32" | "f64" => of("a number", "숫자여야 합니다"),
            "a boolean" => ExpectedValue::BOOLEAN,
            "a string" | "a borrowed string" | "string" | "str" => {
                of("a text", "문자열이어야 합니다")
            }
            "a character" => of("one character", "한 글자여야 합니다"),
            _ if expected.contains("UUID") => ExpectedValue::UUID,
            _ if expected.contains("timestamp") || expected.contains("datetime") => {
                ExpectedValue::TIME
            }
            _ if expected.starts_with("a sequence") || expected.contains("array") => {
                of("a list", "배열이어야 합니다")
            }
            _ if expected.contains("map") || expected.starts_with("struct") => {
                of("an object", "객체여야 합니다")
            }
            _ => ExpectedValue::VALID,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_says_is_said_in_both_languages() {
        for (text, english, korean) in [
            (
                "missing field `seatIds` at line 1 column 2",
                "The field `seatIds` is missing.",
                "`seatIds` 항목이 빠졌습니다.",
            ),
            (
                "items[2]: missing field `name` at line 1 column 2",
                "The field `items[2].name` is missing.",
                "`items[2].name` 항목이 빠졌습니다.",
            ),
            (
                "seatIds[1]: invalid type: string \"x: y\", expected u32 at line 1 column 17",
                "`seatIds[1]` must be a whole number from 0 to 4294967295.",
                "`seatIds[1]` 값은 0 이상 4294967295 이하의 정수여야 합니다.",
            ),
            (
                "colour: unknown variant `green`, expected `red` or `blue` at line 1 column 9",
                "`colour` must be one of `red`, `blue`.",
                "`colour` 값은 다음 중 하나여야 합니다: `red`, `blue`.",
            ),
            (
                "seats: unknown field `seats`, expected one of `a`, `b` at line 1 column 9",
                "There is no field `seats` here.",
                "`seats` 항목은 사용할 수 없습니다.",
            ),
            (
                "year: invalid digit found in string",
                "`year` must be a whole number.",
                "`year` 값은 정수여야 합니다.",
            ),
            (
                "eventId: UUID parsing failed: invalid length: expected 32, found 3",
                "`eventId` must be a UUID.",
                "`eventId` 값은 UUID여야 합니다.",
            ),
            (
                "invalid type: sequence, expected struct HoldBody at line 1 column 0",
                "The body must be an object.",
                "요청 본문은 객체여야 합니다.",
            ),
        ] {
            let error = FieldError::read(text);
            assert_eq!(error.sentence(Language::English, RequestPart::Body), english);
            assert_eq!(error.sentence(Language::Korean, RequestPart::Body), korean);
        }
    }
}
