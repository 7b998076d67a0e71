//! Whether a statement is bound to one tenant: each mention of a table that holds what tenants have stored has the tenant
//! in its own predicate. Looked at as text, so that nobody has to think of it: a statement that is not bound is on its
//! backend's list of those that look after all tenants, with the reason, or the test fails.

/// What tenants have stored.
const TABLES: [&str; 10] =
    ["segment", "item", "response", "settings", "conversation", "event", "log", "job", "idempotency", "notice"];

/// What may follow a table and is no name for it.
const WORDS: [&str; 22] = [
    "WHERE",
    "SET",
    "ON",
    "INDEXED",
    "ORDER",
    "CROSS",
    "JOIN",
    "LEFT",
    "LIMIT",
    "USING",
    "UNION",
    "RETURNING",
    "FOR",
    "VALUES",
    "SELECT",
    "DEFAULT",
    "AND",
    "OR",
    "OFFSET",
    "GROUP",
    "DO",
    "ELSE",
];

/// The mentions that are not bound, each as the table and what it is called.
fn loose(sql: &str) -> Vec<String> {
    let sql = sql.replace("godex.", "");
    let tokens = tokens(&sql);
    let mut loose = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let from = at.checked_sub(1).map_or("", |before| tokens[before]);
        if !TABLES.contains(token) || !["FROM", "JOIN", "UPDATE", "INTO", "USING"].contains(&from) {
            continue;
        }
        let rest = &tokens[at + 1..];
        if from == "INTO" {
            // The columns of what is new begin with whose it is.
            let columns = rest.iter().position(|token| *token == "(").map(|open| rest[open + 1]);
            if columns != Some("tenant") {
                loose.push(format!("{token}, new"));
            }
            continue;
        }
        let named = rest
            .iter()
            .find(|token| **token != "AS")
            .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !WORDS.contains(name));
        let name = named.copied().unwrap_or(token);
        if !is_bound(scope(&tokens, at), name, named.is_none()) {
            loose.push(format!("{token} as {name}"));
        }
    }
    loose
}

fn tokens(sql: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for word in sql.split_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(['(', ')', ',']) {
            tokens.extend(Some(&rest[..at]).filter(|token| !token.is_empty()));
            tokens.push(&rest[at..=at]);
            rest = &rest[at + 1..];
        }
        tokens.extend(Some(rest).filter(|token| !token.is_empty()));
    }
    tokens
}

/// The one query that the token is in: up to its parentheses, or to the next part of a union.
fn scope<'t, 's>(tokens: &'t [&'s str], at: usize) -> &'t [&'s str] {
    let (mut first, mut depth) = (at, 0);
    while first > 0 {
        match tokens[first - 1] {
            ")" => depth += 1,
            "(" | "UNION" if depth == 0 => break,
            "(" => depth -= 1,
            _ => {}
        }
        first -= 1;
    }
    let (mut last, mut depth) = (at, 0);
    while last < tokens.len() {
        match tokens[last] {
            "(" => depth += 1,
            ")" | "UNION" if depth == 0 => break,
            ")" => depth -= 1,
            _ => {}
        }
        last += 1;
    }
    &tokens[first..last]
}

/// Whether a query says of whom the table is: the tenant that asks, or the one that another row of its is of. Only in the
/// query itself, not in those within it.
fn is_bound(query: &[&str], name: &str, bare: bool) -> bool {
    let mut depth = 0;
    query.windows(3).any(|words| {
        match words[0] {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        let is_theirs = words[0] == format!("{name}.tenant") || bare && words[0] == "tenant";
        let who = words[2].ends_with(".tenant") || matches!(words[2], "?1" | "$1");
        depth == 0 && is_theirs && words[1] == "=" && who
    })
}

/// Every statement is bound, or looks after all tenants for a reason; and every reason is needed.
pub(crate) fn check(statements: &[(&str, &str)], for_all: &[(&str, &str)]) {
    for (name, sql) in statements {
        let loose = loose(sql);
        // A few rows of one tenant, which the query within has found.
        if ["rowid IN (SELECT rowid FROM", "IN (SELECT tenant, ", "ctid = ANY (ARRAY(SELECT ctid FROM"]
            .iter()
            .any(|rows| sql.contains(rows))
            && ["WHERE tenant = ?1 ", "WHERE tenant = $1 "].iter().any(|bound| sql.contains(bound))
        {
            continue;
        }
        let reason = for_all.iter().find(|(of, _)| of == name);
        assert!(loose.is_empty() || reason.is_some(), "{name} reads or writes what is any tenant's: {loose:?}\n{sql}");
        assert!(!loose.is_empty() || reason.is_none(), "{name} is bound to one tenant and needs no reason");
    }
    for (name, _) in for_all {
        assert!(statements.iter().any(|(of, _)| of == name), "{name} is no statement");
    }
}

#[test]
fn what_is_not_bound_is_found() {
    for (sql, expected) in [
        ("SELECT body FROM item WHERE tenant = ?1 AND id = ?2", vec![]),
        ("SELECT body FROM godex.item WHERE tenant = $1 AND id = $2", vec![]),
        ("SELECT body FROM item WHERE id = ?2", vec!["item as item"]),
        ("SELECT i.body FROM item i WHERE tenant = ?1", vec!["item as i"]),
        ("DELETE FROM response WHERE id = ?1 RETURNING tenant", vec!["response as response"]),
        ("UPDATE job SET state = 1 WHERE number = ?1", vec!["job as job"]),
        ("INSERT INTO log (tenant, response) VALUES (?1, ?2)", vec![]),
        ("INSERT INTO log (response, tenant) VALUES (?1, ?2)", vec!["log, new"]),
        ("SELECT 1 FROM item i JOIN segment s ON s.tenant = i.tenant WHERE i.tenant = ?1", vec![]),
        ("SELECT 1 FROM item i JOIN segment s ON s.segment = i.segment WHERE i.tenant = ?1", vec!["segment as s"]),
        (
            "SELECT 1 FROM item WHERE tenant = ?1 AND EXISTS (SELECT 1 FROM response WHERE id = ?2)",
            vec!["response as response"],
        ),
        ("SELECT 1 FROM item WHERE EXISTS (SELECT 1 FROM response WHERE tenant = ?1)", vec!["item as item"]),
        ("SELECT 1 FROM item WHERE tenant = ?1 UNION ALL SELECT 1 FROM item", vec!["item as item"]),
        ("SELECT 1 FROM item WHERE tenant = tenant", vec!["item as item"]),
        ("SELECT value FROM secret", vec![]),
    ] {
        assert_eq!(loose(sql), expected, "{sql}");
    }
}
