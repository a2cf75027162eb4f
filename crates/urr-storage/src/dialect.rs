//! From PostgreSQL's words to SQLite's.
//!
//! All SQL in the project is PostgreSQL's. For SQLite a few things are rewritten in statements:
//! `$1` becomes `?1` (in SQLite `$1` is a name, numbered by first appearance), a cast `::type` is
//! dropped (SQLite's values carry their types), and `for update [skip locked]` is dropped (SQLite's
//! writer is alone). `collate "C"` is dropped too: comparing bytes is what SQLite does anyway, and
//! what PostgreSQL does not unless told. In table definitions the types are mapped and the table becomes `strict`.
//! Anything else must be valid in both, which the contract tests show.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Word,
    /// A literal or a quoted name, quotes included.
    Quoted,
    /// `$1`
    Parameter,
    /// White space or a comment.
    Blank,
    /// `::`
    Cast,
    Symbol,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: TokenKind,
    text: &'a str,
}

impl Token<'_> {
    fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn is_blank(&self) -> bool {
        self.kind == TokenKind::Blank
    }
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let token = next_token(rest, first);
        tokens.push(token);
        rest = &rest[token.text.len()..];
    }
    tokens
}

fn next_token(rest: &str, first: char) -> Token<'_> {
    let until = |is_end: fn(char) -> bool| rest.find(is_end).unwrap_or(rest.len());
    let (kind, length) = match first {
        '\'' | '"' => (TokenKind::Quoted, quoted_length(rest, first)),
        '-' if rest.starts_with("--") => (TokenKind::Blank, until(|c| c == '\n')),
        ':' if rest.starts_with("::") => (TokenKind::Cast, 2),
        '$' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let end = rest[1..].find(|c: char| !c.is_ascii_digit());
            (TokenKind::Parameter, end.map_or(rest.len(), |end| end + 1))
        }
        c if c.is_whitespace() => (TokenKind::Blank, until(|c| !c.is_whitespace())),
        c if c.is_alphanumeric() || c == '_' => {
            (TokenKind::Word, until(|c| !c.is_alphanumeric() && c != '_'))
        }
        c => (TokenKind::Symbol, c.len_utf8()),
    };
    Token { kind, text: &rest[..length] }
}

/// The length of a quoted run; a doubled quote stands for the quote itself.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut length = 1;
    while let Some(end) = rest[length..].find(quote) {
        length += end + 1;
        if !rest[length..].starts_with(quote) {
            return length;
        }
        length += 1;
    }
    rest.len()
}

/// A statement for SQLite.
pub fn statement_to_sqlite(sql: &str) -> String {
    let tokens = tokens(sql);
    let mut out = String::with_capacity(sql.len());
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        let rest = &tokens[index..];
        let dropped = match token.kind {
            TokenKind::Cast => Some(1),
            TokenKind::Word if token.is_word("for") => row_lock_length(rest),
            TokenKind::Word if token.is_word("collate") => c_collation_length(rest),
            _ => None,
        };
        match (dropped, token.kind) {
            (Some(length), _) => index += length,
            (None, TokenKind::Parameter) => {
                out.push('?');
                out.push_str(&token.text[1..]);
            }
            (None, _) => out.push_str(token.text),
        }
    }
    out
}

/// How many tokens after `collate` name PostgreSQL's order of bytes, if they do.
fn c_collation_length(after_collate: &[Token<'_>]) -> Option<usize> {
    let blanks = after_collate.iter().take_while(|token| token.is_blank()).count();
    after_collate.get(blanks).filter(|token| token.text == "\"C\"").map(|_| blanks + 1)
}

/// How many tokens after `for` belong to a row lock, if it is one.
fn row_lock_length(after_for: &[Token<'_>]) -> Option<usize> {
    let mut length = next_word(after_for, 0, &["update", "share"])?;
    if let Some(end) = next_word(after_for, length, &["of"]) {
        let is_name = |token: &&Token<'_>| token.kind == TokenKind::Word || token.is_blank();
        length = end + after_for[end..].iter().take_while(is_name).count();
    }
    if let Some(end) = next_word(after_for, length, &["nowait"]) {
        return Some(end);
    }
    let skip = next_word(after_for, length, &["skip"]);
    Some(skip.and_then(|end| next_word(after_for, end, &["locked"])).unwrap_or(length))
}

/// The position after the next word, if that word is one of `words`.
fn next_word(tokens: &[Token<'_>], from: usize, words: &[&str]) -> Option<usize> {
    let blanks = tokens.get(from..)?.iter().take_while(|token| token.is_blank()).count();
    let token = tokens.get(from + blanks)?;
    words.iter().any(|word| token.is_word(word)).then_some(from + blanks + 1)
}

/// One statement of a migration, and where it runs.
#[derive(Debug, PartialEq, Eq)]
pub struct MigrationStatement<'a> {
    pub sql: Cow<'a, str>,
    pub only: Option<SqlEngine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlEngine {
    Sqlite,
    Postgres,
}

/// Splits a migration into statements. A comment line `-- only: postgres` or `-- only: sqlite`
/// before a statement restricts it to that engine.
pub fn split_migration(text: &str) -> Result<Vec<MigrationStatement<'_>>, String> {
    let mut statements = Vec::new();
    let (mut start, mut position, mut only) = (0, 0, None);
    let mut has_content = false;
    for token in tokens(text) {
        let end = position + token.text.len();
        match token.text {
            comment if token.is_blank() => match comment.strip_prefix("-- only:").map(str::trim) {
                Some("postgres") => only = Some(SqlEngine::Postgres),
                Some("sqlite") => only = Some(SqlEngine::Sqlite),
                Some(other) => {
                    return Err(format!("-- only: {other:?} is neither postgres nor sqlite"));
                }
                None => {}
            },
            ";" => {
                if has_content {
                    let sql = Cow::Borrowed(text[start..position].trim());
                    statements.push(MigrationStatement { sql, only: only.take() });
                }
                start = end;
                has_content = false;
            }
            _ => has_content = true,
        }
        position = end;
    }
    if has_content {
        return Err("the last statement does not end with a semicolon".to_owned());
    }
    Ok(statements)
}

/// A definition for SQLite: types mapped, tables strict.
pub fn definition_to_sqlite(sql: &str) -> Result<String, String> {
    let all = tokens(sql);
    let words: Vec<&Token<'_>> = all.iter().filter(|token| !token.is_blank()).collect();
    let begins = |expected: &[&str]| {
        words.len() >= expected.len() && words.iter().zip(expected).all(|(t, w)| t.is_word(w))
    };
    if begins(&["create", "table"]) {
        return table_to_sqlite(&all);
    }
    if begins(&["alter", "table"]) && words.iter().any(|token| token.is_word("add")) {
        return added_column_to_sqlite(&all);
    }
    Ok(statement_to_sqlite(sql))
}

/// The identity column is the only definition whose words change as a whole.
const IDENTITY: [&str; 6] = ["generated", "always", "as", "identity", "primary", "key"];

fn table_to_sqlite(all: &[Token<'_>]) -> Result<String, String> {
    let mut out = String::new();
    let (mut depth, mut words_in_item, mut is_column) = (0, 0, false);
    let mut index = 0;
    while let Some(token) = all.get(index) {
        index += 1;
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 1 && matches!(token.text, "(" | ",") {
            words_in_item = 0;
        }
        if token.kind != TokenKind::Word {
            out.push_str(token.text);
            continue;
        }
        words_in_item += 1;
        if depth == 1 && words_in_item == 1 {
            let table_constraints = ["constraint", "primary", "unique", "check", "foreign"];
            is_column = !table_constraints.iter().any(|name| token.is_word(name));
        }
        if depth == 1 && is_column && words_in_item == 2 {
            if let Some(length) = identity_length(&all[index..]) {
                out.push_str("INTEGER primary key autoincrement");
                index += length;
            } else {
                out.push_str(sqlite_type(token.text)?);
            }
            continue;
        }
        out.push_str(token.text);
    }
    out.push_str(" strict");
    Ok(out)
}

fn identity_length(after_type: &[Token<'_>]) -> Option<usize> {
    IDENTITY.iter().try_fold(0, |from, word| next_word(after_type, from, &[word]))
}

fn added_column_to_sqlite(all: &[Token<'_>]) -> Result<String, String> {
    let words = all.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Word);
    // `column`, its name, its type.
    let of_type = words.skip_while(|(_, token)| !token.is_word("column")).nth(2);
    let type_at = of_type.map(|(index, _)| index);
    let mut out = String::new();
    for (index, token) in all.iter().enumerate() {
        out.push_str(if Some(index) == type_at { sqlite_type(token.text)? } else { token.text });
    }
    Ok(out)
}

pub(crate) fn sqlite_type(postgres: &str) -> Result<&'static str, String> {
    Ok(match postgres.to_ascii_lowercase().as_str() {
        "uuid" | "bytea" => "BLOB",
        "timestamptz" | "boolean" | "bigint" | "integer" | "smallint" => "INTEGER",
        "text" | "jsonb" => "TEXT",
        other => {
            return Err(format!(
                "type {other:?} has no SQLite form; use uuid, timestamptz, bigint, integer, \
                 smallint, boolean, text, jsonb or bytea (limit a text's length by a check)"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_statement(postgres: &str, sqlite: &str) {
        assert_eq!(statement_to_sqlite(postgres), sqlite);
    }

    #[test]
    fn parameters_keep_their_numbers() {
        check_statement("select $2, $1, $12", "select ?2, ?1, ?12");
    }

    #[test]
    fn literals_and_quoted_names_are_left_alone() {
        check_statement(
            "select '$1 it''s ::text for update' as \"for update $1\"",
            "select '$1 it''s ::text for update' as \"for update $1\"",
        );
        check_statement("select '안녕 $1', $1", "select '안녕 $1', ?1");
    }

    #[test]
    fn casts_are_dropped() {
        check_statement("select sum(price)::bigint, $1::uuid", "select sum(price), ?1");
    }

    #[test]
    fn row_locks_are_dropped() {
        check_statement(
            "select id from t where a = $1 for update",
            "select id from t where a = ?1 ",
        );
        check_statement("select id from t for update skip locked", "select id from t ");
        check_statement("select id from t for update of t nowait", "select id from t ");
        check_statement(
            "update t set x = 1 where id in (select id from t for update skip locked) returning id",
            "update t set x = 1 where id in (select id from t ) returning id",
        );
    }

    #[test]
    fn the_order_of_bytes_is_sqlites_own() {
        check_statement("order by a collate \"C\" limit 1", "order by a  limit 1");
        check_statement("order by a collate nocase", "order by a collate nocase");
    }

    #[test]
    fn the_word_for_alone_is_not_a_lock() {
        check_statement("select substring(a for 3)", "select substring(a for 3)");
    }

    #[test]
    fn tables_get_strict_types() {
        let table = "create table seats (\n  id uuid primary key,\n  price bigint not null \
                     constraint seats_price check (price >= 0),\n  data jsonb, made timestamptz, \
                     sold boolean not null default false, uuid bytea,\n  primary key (a, text),\n  \
                     constraint x check (text in ('uuid', 'b'))\n)";
        let expected = "create table seats (\n  id BLOB primary key,\n  price INTEGER not null \
                        constraint seats_price check (price >= 0),\n  data TEXT, made INTEGER, \
                        sold INTEGER not null default false, uuid BLOB,\n  primary key (a, text),\n  \
                        constraint x check (text in ('uuid', 'b'))\n) strict";
        assert_eq!(definition_to_sqlite(table).as_deref(), Ok(expected));
    }

    #[test]
    fn an_identity_column_counts_up_for_ever() {
        assert_eq!(
            definition_to_sqlite(
                "create table t (n bigint generated always as identity primary key)"
            )
            .as_deref(),
            Ok("create table t (n INTEGER primary key autoincrement) strict")
        );
    }

    #[test]
    fn added_columns_are_mapped_too() {
        assert_eq!(
            definition_to_sqlite("alter table t add column made timestamptz").as_deref(),
            Ok("alter table t add column made INTEGER")
        );
    }

    #[test]
    fn renamed_columns_have_no_type() {
        let rename = "alter table t rename column a to b";
        assert_eq!(definition_to_sqlite(rename).as_deref(), Ok(rename));
    }

    #[test]
    fn types_without_a_counterpart_are_refused_with_advice() {
        let error = definition_to_sqlite("create table t (a varchar(20))").unwrap_err();
        assert!(error.contains("varchar") && error.contains("text"), "{error}");
    }

    #[test]
    fn a_migration_is_split_at_its_semicolons() {
        let text = "-- Seats; and more.\ncreate table a (b text default ';');\n\n\
                    -- only: postgres\ncreate extension x;\n";
        let statements = split_migration(text).unwrap();
        assert_eq!(statements.len(), 2);
        assert!(statements[0].sql.ends_with("create table a (b text default ';')"));
        assert_eq!(statements[0].only, None);
        assert_eq!(statements[1].only, Some(SqlEngine::Postgres));
        assert!(split_migration("select 1").is_err());
        assert!(split_migration("-- only: mysql\nselect 1;").is_err());
    }
}
