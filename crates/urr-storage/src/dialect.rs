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
enum Token<'a> {
    Word(&'a str),
    /// A literal or a quoted name, quotes included.
    Quoted(&'a str),
    /// The digits of `$1`.
    Parameter(&'a str),
    /// White space or a comment.
    Blank(&'a str),
    Cast,
    Symbol(&'a str),
}

impl Token<'_> {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (token, length) = next_token(rest, first);
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn next_token(rest: &str, first: char) -> (Token<'_>, usize) {
    let run = |accept: fn(char) -> bool| rest.find(|c| !accept(c)).unwrap_or(rest.len());
    match first {
        '\'' | '"' => {
            let length = quoted_length(rest, first);
            (Token::Quoted(&rest[..length]), length)
        }
        '-' if rest.starts_with("--") => {
            let length = rest.find('\n').unwrap_or(rest.len());
            (Token::Blank(&rest[..length]), length)
        }
        ':' if rest.starts_with("::") => (Token::Cast, 2),
        '$' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
            (Token::Parameter(&rest[1..=digits]), digits + 1)
        }
        c if c.is_whitespace() => {
            let length = run(char::is_whitespace);
            (Token::Blank(&rest[..length]), length)
        }
        c if c.is_alphanumeric() || c == '_' => {
            let length = run(|c| c.is_alphanumeric() || c == '_');
            (Token::Word(&rest[..length]), length)
        }
        c => (Token::Symbol(&rest[..c.len_utf8()]), c.len_utf8()),
    }
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
        match token {
            Token::Parameter(number) => {
                out.push('?');
                out.push_str(number);
            }
            Token::Cast => index += 1,
            Token::Word(_) if token.is_word("for") => match row_lock_length(&tokens[index..]) {
                Some(length) => index += length,
                None => out.push_str("for"),
            },
            Token::Word(_) if token.is_word("collate") => {
                match c_collation_length(&tokens[index..]) {
                    Some(length) => index += length,
                    None => out.push_str("collate"),
                }
            }
            Token::Word(text) | Token::Quoted(text) | Token::Blank(text) | Token::Symbol(text) => {
                out.push_str(text);
            }
        }
    }
    out
}

/// How many tokens after `collate` name PostgreSQL's order of bytes, if they do.
fn c_collation_length(after_collate: &[Token<'_>]) -> Option<usize> {
    let blanks = after_collate.iter().take_while(|t| matches!(t, Token::Blank(_))).count();
    (after_collate.get(blanks) == Some(&Token::Quoted("\"C\""))).then_some(blanks + 1)
}

/// How many tokens after `for` belong to a row lock, if it is one.
fn row_lock_length(after_for: &[Token<'_>]) -> Option<usize> {
    let mut length = next_word(after_for, 0, &["update", "share"])?;
    if let Some(end) = next_word(after_for, length, &["of"]) {
        let names = |token: &Token<'_>| matches!(token, Token::Word(_) | Token::Blank(_));
        length =
            after_for.iter().skip(end).position(|t| !names(t)).map_or(after_for.len(), |n| end + n);
    }
    if let Some(end) = next_word(after_for, length, &["nowait"]) {
        return Some(end);
    }
    let skip = next_word(after_for, length, &["skip"]);
    Some(skip.and_then(|end| next_word(after_for, end, &["locked"])).unwrap_or(length))
}

/// The position after the next word, if that word is one of `words`.
fn next_word(tokens: &[Token<'_>], from: usize, words: &[&str]) -> Option<usize> {
    let blanks = tokens.get(from..)?.iter().take_while(|t| matches!(t, Token::Blank(_))).count();
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
        let end = position + token_length(&token);
        match token {
            Token::Blank(comment) if comment.starts_with("-- only:") => {
                only = Some(match comment["-- only:".len()..].trim() {
                    "postgres" => SqlEngine::Postgres,
                    "sqlite" => SqlEngine::Sqlite,
                    other => {
                        return Err(format!("-- only: {other:?} is neither postgres nor sqlite"));
                    }
                });
            }
            Token::Blank(_) => {}
            Token::Symbol(";") => {
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

fn token_length(token: &Token<'_>) -> usize {
    match token {
        Token::Cast => 2,
        Token::Parameter(digits) => digits.len() + 1,
        Token::Word(text) | Token::Quoted(text) | Token::Blank(text) | Token::Symbol(text) => {
            text.len()
        }
    }
}

/// A definition for SQLite: types mapped, tables strict.
pub fn definition_to_sqlite(sql: &str) -> Result<String, String> {
    let all = tokens(sql);
    let words: Vec<&Token<'_>> = all.iter().filter(|t| !matches!(t, Token::Blank(_))).collect();
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
        match token {
            Token::Symbol("(") => depth += 1,
            Token::Symbol(")") => depth -= 1,
            Token::Symbol(",") if depth == 1 => words_in_item = 0,
            _ => {}
        }
        if matches!(token, Token::Symbol("(")) && depth == 1 {
            words_in_item = 0;
        }
        let Token::Word(word) = token else {
            push_token(&mut out, token);
            continue;
        };
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
                out.push_str(sqlite_type(word)?);
            }
            continue;
        }
        out.push_str(word);
    }
    out.push_str(" strict");
    Ok(out)
}

fn identity_length(after_type: &[Token<'_>]) -> Option<usize> {
    IDENTITY.iter().try_fold(0, |from, word| next_word(after_type, from, &[word]))
}

fn added_column_to_sqlite(all: &[Token<'_>]) -> Result<String, String> {
    let mut out = String::new();
    let mut words_since_column = None;
    for token in all {
        if let (Token::Word(word), Some(2)) =
            (token, words_since_column.map(|n| n + usize::from(matches!(token, Token::Word(_)))))
        {
            out.push_str(sqlite_type(word)?);
            words_since_column = None;
            continue;
        }
        if token.is_word("column") {
            words_since_column = Some(0);
        } else if matches!(token, Token::Word(_)) {
            words_since_column = words_since_column.map(|count| count + 1);
        }
        push_token(&mut out, token);
    }
    Ok(out)
}

fn push_token(out: &mut String, token: &Token<'_>) {
    match token {
        Token::Cast => out.push_str("::"),
        Token::Parameter(digits) => {
            out.push('$');
            out.push_str(digits);
        }
        Token::Word(text) | Token::Quoted(text) | Token::Blank(text) | Token::Symbol(text) => {
            out.push_str(text);
        }
    }
}

fn sqlite_type(postgres: &str) -> Result<&'static str, String> {
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
