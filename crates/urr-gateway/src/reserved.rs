//! What a client may not say itself: who it is, that it is one of our services, what we tell them.

use axum::http::{HeaderMap, HeaderName};

const PREFIXES: [&str; 2] = ["x-user-", "x-urr-"];

/// Removes it, before anything looks at it.
pub fn remove(headers: &mut HeaderMap) {
    if !headers.keys().any(is_reserved) {
        return;
    }
    let reserved: Vec<HeaderName> = headers.keys().filter(|n| is_reserved(n)).cloned().collect();
    for name in reserved {
        headers.remove(name);
    }
}

/// Some servers read `x_user_id` as `x-user-id`; so do we, to be on the safe side of them.
fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let begins_with = |prefix: &&str| {
        name.len() >= prefix.len()
            && prefix
                .bytes()
                .zip(name)
                .all(|(expected, found)| expected == *found || expected == b'-' && *found == b'_')
    };
    PREFIXES.iter().any(begins_with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_say_who_it_is() {
        let mut headers = HeaderMap::new();
        for name in [
            "x-user-id",
            "X-User-Role",
            "x_user_role",
            "X_USER-ID",
            "x-urr-caller",
            "x-urr-credential",
            "x_urr_entry_event",
            "accept",
            "x-username",
            "x-users",
        ] {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), "x".parse().unwrap());
        }
        headers.append("x-user-id", "twice".parse().unwrap());
        remove(&mut headers);
        let mut kept: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["accept", "x-username", "x-users"]);
    }
}
